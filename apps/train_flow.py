"""Train a network that sees optical flow in events, from events alone: no label, no image.

Without --dsec it learns from simulated recordings, which are made once beside the network. The same command goes on
where an interrupted one stopped.
"""

import argparse
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cmaxslam_fbp.experiments.flow.losses import FOCUS, LossSettings
from cmaxslam_fbp.experiments.flow.sample_sets import dsec_sets, load_groups, load_samples, simulated_sets
from cmaxslam_fbp.experiments.flow.training import Look, Training, TrainingSettings, middle_crop
from cmaxslam_fbp.experiments.settings import StudySettings
from cmaxslam_fbp.experiments.workbench import Workbench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", type=Path, help="the file of the network, e.g. flow.pt")
    parser.add_argument("--dsec", type=Path, metavar="DIR", help="folder with DSEC's events and flow")
    parser.add_argument("--quick", action="store_true", help="few simulated recordings")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--crop", type=int, default=128, metavar="PX")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--channels", type=int, default=16, help="of the first level of the U-Net")
    parser.add_argument("--degree", type=int, default=1, help="of trajectories; 2 for a flow that changes")
    parser.add_argument("--kernel", default="rect", help="of the binning: rect, linear, gauss")
    parser.add_argument("--reconstruction", default="linear", help="linear, cubic, lanczos; none for plain gradients")
    parser.add_argument("--focus", default="gradient", choices=FOCUS, help="what tells how sharp events are")
    parser.add_argument("--references", type=int, default=1, help="times that events are carried to, per step")
    parser.add_argument("--patience", type=int, metavar="N", help="end after N looks without a lower held-out loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    reconstruction = None if options.reconstruction == "none" else options.reconstruction
    loss = LossSettings(options.kernel, reconstruction, focus=options.focus)
    names = "seed", "steps", "batch", "crop", "learning_rate", "channels", "degree", "references", "patience"
    settings = TrainingSettings(loss, **{name: getattr(options, name) for name in names})
    folder = options.network.parent / f"{options.network.stem}_samples"
    bench = Workbench(StudySettings(folder, quick=options.quick))
    learned, held_out = dsec_sets(options.dsec) if options.dsec else simulated_sets(bench)
    judged = [middle_crop(sample, 128) for group in load_groups(held_out.places, folder) for sample in group][::4]
    samples = load_samples(learned.places, folder)
    training = Training(settings, samples, judged, checkpoint=options.network, device=options.device)

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    with Progress(*columns) as progress:
        task = progress.add_task("", total=settings.steps, completed=training.step)

        def show(step: int, loss: float, look: Look | None) -> None:
            progress.update(task, completed=step, description=f"loss {loss:.3f}")
            if look is not None:
                words = f"step {step}: loss {look.training_loss:.3f}, held out {look.held_out_loss:.3f}"
                progress.console.print(f"{words}, error {look.errors.epe_px:.2f} px", highlight=False)

        training.run(show)
    print(f"the network is in {options.network}")


if __name__ == "__main__":
    main()
