"""Limit of processor time for a question, which other work moves little."""

import contextlib
import signal


class TooSlow(BaseException):
    """A question has taken its seconds; not an ``Exception``, which a package might catch."""


@contextlib.contextmanager
def at_most(seconds):
    """Raise TooSlow in the block after so much processor time."""

    def stop(*_):
        raise TooSlow(f"no answer in {seconds:g} s")

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, former)
