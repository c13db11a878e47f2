"""The SLAM: recording, frontend, backend, result."""

from __future__ import annotations

from dataclasses import replace

from cmaxslam_fbp.choices import MODELS, REFINEMENTS
from cmaxslam_fbp.config import Config
from cmaxslam_fbp.errors import ConfigError, RecordingError
from cmaxslam_fbp.io.recording import Recording
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.slam_run import SlamRun
from cmaxslam_fbp.pipeline.step import OnStep


class Slam:
    """Estimates the orientation of a rotating event camera over time, and a panoramic map.

    Parameters
    ----------
    config : Config, optional
        All settings.

    Examples
    --------
    >>> from cmaxslam_fbp import Slam, open_recording                       # doctest: +SKIP
    >>> result = Slam().run(open_recording("boxes_rotation.bag"))           # doctest: +SKIP
    >>> result.trajectory().rotation_at(t_ns)                               # doctest: +SKIP
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        model = self.config.frontend.model
        if MODELS[model].kind != "angular":
            angular = ", ".join(name for name in MODELS.names() if MODELS[name].kind == "angular")
            raise ConfigError(
                f"frontend.model: {model} has no angular velocity, which a rotation is made of; choose {angular}, or "
                "use `cmaxslam-fbp velocity`"
            )

    def check(self, recording: Recording, *, refine: bool | str | None = False, start_s: float | None = None) -> None:
        """Raise an error where a run cannot refine so, or needs more passes over a recording than it can give."""
        if isinstance(refine, str) and refine not in REFINEMENTS:
            raise ConfigError(f"there is no refinement '{refine}': choose {' or '.join(REFINEMENTS)}")
        if refine == "photometric" and self.config.events.subsample > 1:
            raise ConfigError("--refine photometric needs events in a row: leave events.subsample at 1")
        if recording.live is None:
            return
        for name, wanted in (
            ("--refine", bool(refine)),
            ("--start", bool(start_s)),
        ):
            if wanted:
                raise RecordingError(
                    f"{recording.path} can be read only once, which is not enough for {name}: leave that out, or keep "
                    "the stream in a file (tee) and run on the file"
                )

    def run(
        self,
        recording: Recording,
        *,
        start_s: float | None = None,
        duration_s: float | None = None,
        refine: bool | str | None = False,
        on_step: OnStep | None = None,
        keep_events_s: float = 0.0,
    ) -> SlamResult:
        """Process a recording, or a range of it; Ctrl-C ends the work early and keeps what there is.

        Parameters
        ----------
        recording : Recording
            With a calibrated camera.
        start_s, duration_s : float, optional
            Range in seconds from the first event.
        refine : bool, "contrast" or "photometric"
            After the first pass, adjust all windows against the whole map, until they do not move any more. Where
            `backend.translation` has found one, everything is adjusted to all events at once instead. With
            "photometric" control rotations and the gradient of the brightness are then adjusted together to all events.
        on_step : callable, optional
            Called with a `Step` after each window.
        keep_events_s : float
            How much of the recording before the end of a window `Step.events` gives.
        """
        self.check(recording, refine=refine, start_s=start_s)
        run = SlamRun(self.config, recording, start_s, duration_s, on_step or (lambda step: None), keep_events_s)
        interrupted = False
        try:
            run.first_pass()
            moves, model = run.translation.decide(), self.config.backend.translation
            if moves and model != "none":
                if refine or (model == "auto" and recording.live is None):
                    run.refine_hand_held()
            elif refine:
                run.refine()
                if refine == "photometric":
                    run.refine_photometric()
        except KeyboardInterrupt:
            if not run.has_result:
                raise
            interrupted = True
            run.translation.keep()
        return run.evaluated(replace(run.result(), interrupted=interrupted))
