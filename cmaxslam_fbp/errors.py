"""The errors that a user can cause. Each carries one line: what is wrong, where, and what to do."""

_LONGEST_LINE = 290


class CmaxSlamError(Exception):
    """Root of all errors that the command line prints as one line, without a traceback."""

    def __str__(self) -> str:
        """Return the message on one line that fits a terminal: names and lists in it can be of any length."""
        return short_line(super().__str__())


def short_line(text: str) -> str:
    """Return a text on one line of fewer than 300 characters, `warning: ` included; a longer one loses its middle."""
    line = " ".join(text.splitlines())
    return line if len(line) < _LONGEST_LINE else f"{line[:155]} ... {line[-125:]}"


class ConfigError(CmaxSlamError):
    """A configuration file, preset name or `--set` option that cannot be used."""


class ChoiceError(ConfigError, ValueError):
    """A name that stands for nothing that can be chosen."""


class RecordingError(CmaxSlamError):
    """A recording that cannot be read, or whose contents cannot be right."""


class CalibrationError(CmaxSlamError):
    """A camera calibration that is missing or unusable."""


class TrajectoryError(CmaxSlamError):
    """A trajectory that cannot be read, or cannot be compared."""


class SimulationError(CmaxSlamError):
    """A simulation that was asked for something impossible."""


class BinningError(CmaxSlamError, ValueError):
    """A binning that does not exist, or input whose shape does not fit it."""


class MissingExtraError(CmaxSlamError, ImportError):
    """An optional library that the request needs and that is not installed."""


class OutputError(CmaxSlamError):
    """A file or folder that cannot be written."""
