"""`cmaxslam-fbp config`: look at configurations."""

from __future__ import annotations

from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import Assignments, ConfigNames

config_app = typer.Typer(help="Show configurations and presets.", no_args_is_help=True)


@config_app.command()
def show(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Preset or YAML file.")] = None,
    config: ConfigNames = None,
    assignments: Assignments = None,
) -> None:
    """Print the resolved configuration as YAML, each key with what it means and may be."""
    from cmaxslam_fbp.config import dump_config, load_config

    names = ([name] if name else []) + (config or [])
    typer.echo(dump_config(load_config(names, assignments or ())), nl=False)


@config_app.command("list")
def list_presets() -> None:
    """Print the names of the presets."""
    from cmaxslam_fbp.config import preset_names

    typer.echo("\n".join(preset_names()))
