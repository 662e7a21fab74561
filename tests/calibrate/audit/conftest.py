"""Searches and checks end after a number of readings of the clock, on any machine alike.

The prover and its kernel read the processor time of their thread before each piece of work. Here
each reading is 50 microseconds after the last one, about what such a piece takes: a limit of one
second is 20,000 pieces, and no verdict depends on how fast a machine is.
"""

import itertools

import pytest

READING = 50e-6  # seconds; shorter makes each limit longer, by as much


@pytest.fixture(scope="module", autouse=True)
def counted():
    """Let the clock of the thread count its readings; return the count."""
    readings = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.thread_time", lambda: next(readings) * READING)
        yield lambda: next(readings)
