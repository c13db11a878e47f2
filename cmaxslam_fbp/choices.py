"""What can be chosen by name, and where it is written: the one line that a new score, kernel, model or format needs.

The configuration, the command line, Torch and the documentation read their choices here. Nothing is imported before it
is chosen. A program can add its own: `SCORES.add("entropy", Entropy)`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cmaxslam_fbp.errors import ChoiceError

REFINEMENTS = ("contrast", "photometric")


class Choices:
    """Things by name, each given as itself or as the place where it is written, `module:name`."""

    def __init__(self, what: str, things: Mapping[str, Any]) -> None:
        self.what = what
        self._things = dict(things)

    def add(self, name: str, thing: Any) -> None:
        """Add a thing, or the place of one; a name that is taken is refused."""
        if name in self._things:
            raise ChoiceError(f"there is a {self.what} '{name}' already")
        self._things[name] = thing

    def remove(self, name: str) -> None:
        """Take a thing away again."""
        del self._things[self.check(name)]

    def names(self) -> tuple[str, ...]:
        """Return all names, in their order."""
        return tuple(self._things)

    def check(self, name: str) -> str:
        """Return the name; a `ChoiceError` that lists the others where there is no such thing."""
        if name not in self._things:
            close = difflib.get_close_matches(str(name), self._things, n=1)
            hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(self._things)}"
            raise ChoiceError(f"there is no {self.what} '{name}'; {hint}")
        return name

    def __getitem__(self, name: str) -> Any:
        thing = self._things[self.check(name)]
        if isinstance(thing, str):
            module, _, attribute = thing.partition(":")
            thing = self._things[name] = getattr(import_module(module), attribute)
        return thing


KERNELS = Choices(
    "binning kernel",
    {
        "rect": "cmaxslam_fbp.fbp.kernels:RECT",
        "linear": "cmaxslam_fbp.fbp.kernels:LINEAR",
        "gauss": "cmaxslam_fbp.fbp.kernels:GAUSS",
    },
)
RECONSTRUCTIONS = Choices(
    "reconstruction kernel",
    {
        "linear": "cmaxslam_fbp.fbp.reconstructions:LINEAR",
        "cubic": "cmaxslam_fbp.fbp.reconstructions:CUBIC",
        "lanczos": "cmaxslam_fbp.fbp.reconstructions:LANCZOS",
    },
)
SURROGATES = Choices(
    "surrogate",
    {
        "ste": "cmaxslam_fbp.fbp.surrogates:STE",
        "sigmoid": "cmaxslam_fbp.fbp.surrogates:SIGMOID",
    },
)
SCORES = Choices(
    "score",
    {
        "variance": "cmaxslam_fbp.contrast.scores:Variance",
        "mean_square": "cmaxslam_fbp.contrast.scores:MeanSquare",
        "negative_binomial": "cmaxslam_fbp.contrast.scores:NegativeBinomial",
    },
)
SOLVERS = Choices(
    "solver",
    {
        "newton": "cmaxslam_fbp.contrast.solvers.newton:Newton",
        "lbfgsb": "cmaxslam_fbp.contrast.solvers.scipy_solvers:Lbfgsb",
        "trust_ncg": "cmaxslam_fbp.contrast.solvers.scipy_solvers:TrustNcg",
        "fletcher_reeves": "cmaxslam_fbp.contrast.solvers.fletcher_reeves:FletcherReeves",
        "quasi_newton": "cmaxslam_fbp.contrast.solvers.quasi_newton:QuasiNewton",
    },
)
MODELS = Choices(
    "motion model",
    {
        "rotation": "cmaxslam_fbp.frontend.motion_models:FirstOrderRotation",
        "exact_rotation": "cmaxslam_fbp.frontend.motion_models:ExactRotation",
        "translation": "cmaxslam_fbp.frontend.motion_models:PlaneTranslation",
    },
)
FORMATS = Choices(
    "format",
    {
        "rosbag": "cmaxslam_fbp.io.rosbag.bag_recording:BagRecording",
        "text": "cmaxslam_fbp.io.text.text_recording:TextRecording",
        "npz": "cmaxslam_fbp.io.npz_recording:NpzRecording",
        "aedat4": "cmaxslam_fbp.io.aedat.aedat4_recording:Aedat4Recording",
        "aedat3": "cmaxslam_fbp.io.aedat.aedat3_recording:Aedat3Recording",
        "aedat2": "cmaxslam_fbp.io.aedat.aedat2_recording:Aedat2Recording",
        "raw": "cmaxslam_fbp.io.raw_recording:RawRecording",
        "packed": "cmaxslam_fbp.io.packed_recording:PackedRecording",
        "dat": "cmaxslam_fbp.io.dat_recording:DatRecording",
        "es": "cmaxslam_fbp.io.es_recording:EsRecording",
        "csv": "cmaxslam_fbp.io.text.csv_recording:CsvRecording",
        "hdf5": "cmaxslam_fbp.io.hdf5.recording:Hdf5Recording",
        "evimo": "cmaxslam_fbp.io.evimo_recording:EvimoRecording",
        "matlab": "cmaxslam_fbp.io.matlab_recording:MatlabRecording",
    },
)
