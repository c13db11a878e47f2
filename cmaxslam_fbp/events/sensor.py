"""The size of a sensor."""

from __future__ import annotations

import re
from typing import NamedTuple


class SensorSize(NamedTuple):
    """Width and height of a sensor in pixels."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width} x {self.height}"

    @staticmethod
    def from_text(text: str) -> SensorSize | None:
        """Return the size that a text such as 640x480 names; None where it does not."""
        match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
        return None if match is None else SensorSize(int(match[1]), int(match[2]))

    def scaled(self, factor: float) -> SensorSize:
        """Return the size of the same sensor at another resolution."""
        return SensorSize(round(self.width * factor), round(self.height * factor))
