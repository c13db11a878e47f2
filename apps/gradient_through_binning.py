"""Replace a histogram by one that has a gradient, and recover a motion by gradient descent.

Events of a moving scene are warped by a candidate velocity and counted in pixels; the sharper the image, the better the
velocity. Counting has no gradient: `torch.histogramdd` cuts the graph. `Binning` counts the same and has one.
"""

import torch

from cmaxslam_fbp.fbp import Binning

TRUE_VELOCITY = torch.tensor([12.0, -20.0])  # pixels per second, along rows and columns


def make_events(count: int = 5_000) -> tuple[torch.Tensor, torch.Tensor]:
    """Return times (N, 1) in seconds and positions (N, 2) in pixels of points that move together."""
    generator = torch.Generator().manual_seed(0)
    time = torch.rand((count, 1), generator=generator) - 0.5
    scene = 20 + 60 * torch.rand((300, 2), generator=generator)
    return time, scene[torch.randint(300, (count,), generator=generator)] + time * TRUE_VELOCITY


def main() -> torch.Tensor:
    time, events = make_events()
    binning = Binning(shape=(100, 100), kernel="rect", reconstruction="linear", backend="torch")
    velocity = torch.zeros(2, requires_grad=True)
    optimiser = torch.optim.Adam([velocity], lr=1.0)
    for _ in range(80):
        optimiser.zero_grad()
        frame = binning(events - time * velocity)  # was: torch.histogramdd(events - time * velocity, ...).hist
        loss = -frame.var()
        loss.backward()
        optimiser.step()
    print(f"true velocity {TRUE_VELOCITY.tolist()} px/s, found {[round(v, 2) for v in velocity.tolist()]} px/s")
    return velocity.detach()


if __name__ == "__main__":
    main()
