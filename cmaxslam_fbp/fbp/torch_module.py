"""PyTorch, an optional library: the one module that imports it. All code on tensors takes it from here."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from cmaxslam_fbp.errors import ConfigError, MissingExtraError

try:
    import torch
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "the torch backend needs PyTorch: pip install 'cmaxslam-fbp[torch]', or use backend='numba'"
    ) from error

__all__ = ["Tensor", "find_device", "to_host", "torch"]

Tensor = torch.Tensor


def find_device(name: str) -> torch.device:
    """Return the device of that name; a `ConfigError` where it cannot be used."""
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"the device '{name}' cannot be used: {str(error).splitlines()[0]}") from None


def to_host(tensor: Tensor) -> npt.NDArray[Any]:
    """Return a tensor as an array: the only way by which results leave a device."""
    array: npt.NDArray[Any] = tensor.detach().cpu().contiguous().numpy()
    return array
