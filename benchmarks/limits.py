"""Limit of processor time for a question, which other work moves little."""

import contextlib
import signal


@contextlib.contextmanager
def at_most(seconds):
    """Raise TimeoutError in the block after so much processor time."""

    def stop(*_):
        raise TimeoutError(f"no answer in {seconds:g} s")

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, former)
