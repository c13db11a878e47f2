"""The panoramic warp on tensors: the equations of `panoramic_warp_kernels` once more."""

from __future__ import annotations

from typing import Any

from cmaxslam_fbp.arrays import FloatArray, SingleArray
from cmaxslam_fbp.backend.panoramic_warp import PanoramicWarp
from cmaxslam_fbp.backend.region import Region
from cmaxslam_fbp.fbp.torch_module import to_host, torch
from cmaxslam_fbp.geometry.equirectangular import MIN_COS_LATITUDE

_TINY = 1e-30  # no direction is that short


class TensorPanoramicWarp:
    """The events of a `PanoramicWarp` on a device; see there. Tensors of events are float32, results for edges float64.

    Parameters
    ----------
    warp : the events
    device : where the tensors live
    """

    def __init__(self, warp: PanoramicWarp, device: Any) -> None:
        self._device, self._projection, self._edges = device, warp.projection, len(warp.edges_ns)
        slots, place, bearings = (torch.as_tensor(array, device=device) for array in warp.arrays())
        self._slots, self._place, self._bearings = slots, place, bearings

    def directions(self, rotations: SingleArray) -> Any:
        """Return the directions (3, N) in the world: `((1 - s) R_m + s R_{m+1}) b`, for the edges' `R` (S + 1, 9)."""
        edges = torch.as_tensor(rotations, device=self._device).T.reshape(3, 3, -1)
        change = edges[..., 1:] - edges[..., :-1]
        matrices = edges[..., :-1][..., self._slots] + self._place * change[..., self._slots]
        return (matrices * self._bearings).sum(1)

    def points(self, directions: Any, region: Region) -> Any:
        """Return the row and column (N, 2) of directions (3, N) in the frame of a region."""
        (x, y, z), focal, width = directions, self._projection.focal_px, self._projection.width
        column = width / 2 + focal * torch.atan2(x, z)
        column = torch.where(column >= width, column - width, column) - region.left
        column = torch.where(column < 0, column + width, column) + region.padding
        row = self._projection.height / 2 + focal * torch.atan2(y, torch.hypot(x, z)) - region.top
        return torch.stack([row, column], dim=-1)

    def pullback(self, directions: Any, points_bar: Any) -> FloatArray:
        """Return the gradient (S + 1, 3) for left turns of the edges, from that by the points (N, 2)."""
        by_event = torch.einsum("nca,nc->na", self._jacobians(directions), points_bar).double()
        return self._to_edges(by_event, self._place.double()[:, None])

    def pullback_curvature(self, directions: Any, curvatures: Any) -> FloatArray:
        """Return `sum_i A_i^T C_i A_i` (S + 1, 3, 3), lumped at the edges by slot; see `PanoramicWarp`."""
        A, C = self._jacobians(directions), curvatures[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
        by_event = torch.einsum("nca,ncd,ndb->nab", A, C, A).reshape(-1, 9).double()
        sums = torch.zeros(self._edges - 1, dtype=torch.float64, device=self._device)
        totals = sums.index_add(0, self._slots, self._place.double())
        counts = sums.index_add(0, self._slots, torch.ones_like(self._place).double())
        share = (totals / counts.clamp(min=1))[self._slots, None]
        return self._to_edges(by_event, share).reshape(-1, 3, 3)

    def _jacobians(self, directions: Any) -> Any:
        """`d(row, column)/d phi` (N, 2, 3) for turns `exp(phi) P`; see `Equirectangular`."""
        x, y, z = directions
        square = x * x + z * z
        bounded = torch.maximum(square, MIN_COS_LATITUDE**2 * (square + y * y))
        rho = torch.sqrt(square.clamp(min=_TINY))
        row = torch.stack([-z / rho, torch.zeros_like(x), x / rho], dim=-1)
        column = torch.stack([-x * y / bounded, torch.ones_like(x), -y * z / bounded], dim=-1)
        return self._projection.focal_px * torch.stack([row, column], dim=1)

    def _to_edges(self, by_event: Any, share: Any) -> FloatArray:
        """Return the sums (S + 1, D) of what events (N, D) give to the edges before and, by a share, after them."""
        sums = torch.zeros((self._edges, by_event.shape[1]), dtype=by_event.dtype, device=self._device)
        sums.index_add_(0, self._slots, by_event * (1 - share))
        sums.index_add_(0, self._slots + 1, by_event * share)
        return to_host(sums)
