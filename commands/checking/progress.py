"""A sign of life: beyond two seconds, a line on standard error says what a command is at.

On a terminal the line is drawn again each second, and erased at the end. Elsewhere, in a log for
instance, one plain line is written, once.

>>> with Progress("compare", after=60.0) as progress:
...     progress.stage("poisson")
>>> progress.drawn
0
"""

from __future__ import annotations

import sys
import threading
import time
from argparse import Namespace
from types import TracebackType
from typing import Self, TextIO

__all__ = ["AFTER", "Progress", "stage"]

# Seconds of silence that nobody wonders about. Half of it would flicker at many answers.
AFTER = 2.0
# Seconds between two drawings.
_EVERY = 1.0


class Progress:
    """Draws what a command is at, while it is at it.

    Parameters
    ----------
    command
        Its name.
    after
        Seconds before the first drawing.
    stream
        Where to draw; standard error when omitted.

    Attributes
    ----------
    drawn
        How often the line was drawn.
    """

    def __init__(self, command: str, *, after: float = AFTER, stream: TextIO | None = None) -> None:
        self._command, self._after = command, after
        self._stream = sys.stderr if stream is None else stream
        self._stage = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.drawn = 0

    def stage(self, text: str) -> None:
        """Say what is done from now on."""
        self._stage = text

    def __enter__(self) -> Self:
        draw = self._draw if self._stream.isatty() else self._tell
        self._thread = threading.Thread(target=draw, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self.drawn and self._stream.isatty():
            self._write("\r\x1b[K")

    def _tell(self) -> None:
        """Write one plain line, if the command takes that long."""
        if not self._ended.wait(self._after):
            self._write(f"dpcal {self._at()}, which takes more than {self._after:g} s ...\n")
            self.drawn += 1

    def _at(self) -> str:
        return f"{self._command}: {self._stage}" if self._stage else self._command

    def _draw(self) -> None:
        began, wait = time.monotonic(), self._after
        while not self._ended.wait(wait):
            self._write(f"\r\x1b[Kdpcal {self._at()}, {time.monotonic() - began:.0f} s")
            self.drawn += 1
            wait = _EVERY

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # The terminal is gone; there is nobody to tell.
            self._ended.set()


def stage(options: Namespace, text: str) -> None:
    """Say what the command of these options is at."""
    progress = getattr(options, "progress", None)
    if progress is not None:
        progress.stage(text)
