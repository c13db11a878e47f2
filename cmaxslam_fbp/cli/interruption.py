"""Ctrl-C, SIGTERM and a closed terminal: they end a run between two windows, and never in the middle of a file."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Turns the signals that end a program into a `KeyboardInterrupt` at the right moment, while in the context.

    Before the first window that is at once. Then it is after the window that is being computed, or at once where the
    signal comes a second time. While results are written it is not at all.

    Parameters
    ----------
    on_signal : called when a signal comes: ends what the run may be waiting for
    """

    def __init__(self, on_signal: Callable[[], None] = lambda: None) -> None:
        self.cause = ""
        self._on_signal = on_signal
        self._is_running = self._is_writing = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup, or of a shell's job in the background
                self._handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise the interruption that has been asked for; called after each window."""
        self._is_running = True
        if self.cause:
            self.hold()
            raise KeyboardInterrupt

    def stop(self, cause: str) -> None:
        """Ask for an interruption after this window."""
        self.cause = cause
        self._on_signal()

    def hold(self) -> None:
        """From now on nothing interrupts."""
        self._is_writing = True

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._is_writing:
            return
        is_second = bool(self.cause)
        self.stop(signal.Signals(number).name)
        if is_second or not self._is_running:
            self._is_writing = self._is_running
            raise KeyboardInterrupt
