"""The configurations of a batch: presets and files, each with every point of a grid of settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.errors import ConfigError

_COMMA = re.compile(r",(?![^\[{]*[\]}])")  # not those inside a list
_MOST_ARMS = 1000


@dataclass(frozen=True)
class Arm:
    """A configuration under its name; `options` are those of the command line that stand for it."""

    name: str
    config: Config
    options: tuple[str, ...] = ()


def make_arms(names: Sequence[str], grid: Sequence[str], assignments: Sequence[str]) -> list[Arm]:
    """Return the configurations, those of one name beside each other.

    Parameters
    ----------
    names : presets or files; those that `+` joins are laid over each other
    grid : texts `section.key=value,value`: each value with each of the others
    assignments : texts `section.key=value` for all
    """
    axes = [_values(text) for text in grid]
    arms = []
    for name in names or ("default",):
        for point in product(*axes):
            label, names_over, settings = ", ".join([name, *point]), name.split("+"), [*assignments, *point]
            options = [word for one in names_over for word in ("--config", one)]
            options += [word for one in settings for word in ("--set", one)]
            try:
                arms.append(Arm(label, load_config(names_over, settings), tuple(options)))
            except ConfigError as error:
                raise ConfigError(f"configuration {label}: {error}") from None
        if len(arms) > _MOST_ARMS:
            raise ConfigError(f"the grid has more than {_MOST_ARMS} configurations; leave some out")
    labels = [arm.name for arm in arms]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ConfigError(f"the configuration {twice} is given twice")
    return arms


def _values(text: str) -> list[str]:
    """Return the assignments of `section.key=value,value`."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise ConfigError(f"--config-grid {text!r} is not of the form section.key=value,value")
    return [f"{key.strip()}={value.strip()}" for value in _COMMA.split(values)]
