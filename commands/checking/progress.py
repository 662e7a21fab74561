"""A sign of life: beyond two seconds, standard error shows what a command does.

On a terminal it is a bar, drawn again each second and erased at the end. Elsewhere, in a log for
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Self, TextIO, TypeVar

__all__ = ["Progress", "counted", "stage"]

Item = TypeVar("Item")
AFTER = 2.0  # seconds of silence before the first drawing
_EVERY = 1.0  # seconds between two drawings
_COUNTED = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"


class Progress:
    """Draws what a command does, while it does it.

    Parameters
    ----------
    command
        Its name.
    after
        Seconds before the first drawing.
    stream
        Where to draw; standard error when omitted.
    quiet
        Whether nothing is drawn.
    clock
        Returns the seconds that have passed, since any moment.
    wait
        Takes an event and seconds, and returns whether the event came before they passed.

    Attributes
    ----------
    done
        Units of the stage that are done.
    drawn
        How often the line was drawn.
    """

    def __init__(
        self,
        command: str,
        *,
        after: float = AFTER,
        stream: TextIO | None = None,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self._quiet, self._clock, self._wait = quiet, clock, wait
        self._command, self._after = command, after
        self._stream = sys.stderr if stream is None else stream
        self._ended = threading.Event()
        draw = self._bar if self._stream.isatty() else self._line
        self._thread = threading.Thread(target=draw, daemon=True)
        self.drawn = 0
        self.stage("")

    def stage(self, text: str, *, total: int | None = None, unit: str = "") -> None:
        """Name what is done from now on, and how many units it is of, if that is known."""
        self._text, self._total, self._unit = text, total, unit
        self._began, self.done = self._clock(), 0

    def update(self, count: int = 1) -> None:
        """Add to the units that are done."""
        self.done += count

    def reach(self, done: int, total: int) -> None:
        """Set how many units are done, of how many."""
        self.done, self._total = done, total

    def __enter__(self) -> Self:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if not self._quiet:
            self._thread.join()

    def _words(self) -> str:
        words = f"dpcal {self._command}" + (f": {self._text}" if self._text else "")
        count = f"{self.done} of {self._total}" if self._total else str(self.done)
        return words + (f", {count} {self._unit}s" if self._unit else "")

    def _line(self) -> None:
        if not self._wait(self._ended, self._after):
            self._stream.write(f"{self._words()}, which takes more than {self._after:g} s ...\n")
            self._stream.flush()
            self.drawn += 1

    def _bar(self) -> None:
        if self._wait(self._ended, self._after):
            return
        from tqdm import tqdm

        # A terminal that is gone shows nothing.
        with suppress(OSError, ValueError), tqdm(file=self._stream, leave=False, delay=1e-9) as bar:
            while not bar.disable:
                bar.total, bar.n, bar.desc = self._total, self.done, self._words()
                # Its own clock is that of the day, which may be set anew.
                bar.start_t = time.time() - (self._clock() - self._began)
                bar.bar_format = _COUNTED if self._total else "{desc}, {elapsed}"
                bar.refresh()
                self.drawn += 1
                if self._wait(self._ended, _EVERY):
                    break


def counted(options: Namespace, text: str, items: Sequence[Item], *, unit: str) -> Iterator[Item]:
    """Yield the items, and count in the command's progress how many of them are done."""
    progress = stage(options, text, total=len(items), unit=unit)
    for item in items:
        yield item
        progress.update()


def stage(options: Namespace, text: str, *, total: int | None = None, unit: str = "") -> Progress:
    """Name what the command of these options does from now on, and return its progress."""
    progress: Progress = getattr(options, "progress", None) or Progress("")
    progress.stage(text, total=total, unit=unit)
    return progress
