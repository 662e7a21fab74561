"""An entry is in the ledger before the first record is read for it, also in fused loops."""

import inspect
from unittest import mock

import pytest
from _built_plans import CASES, built

from dpcal import optim
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.observers import observing
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.minimax import tracking

FIRST = {}
for case in CASES:
    FIRST.setdefault(case.values[0], case.values)


class Watch:
    """Notes where the streams stand when an entry is written; the oracle's loops stay compiled.

    A sum follows its batch and precedes its noise, so a stream that has moved for an answer tells
    that records may have been read for it.
    """

    def __init__(self):
        self.streams_of, self.written, self._opened = {}, {}, None

    def streams(self, seed, plan, digest):
        self._opened = Streams(seed, plan, digest)
        return self._opened

    def watched(self, mechanism, plan, ledger):
        self.streams_of[id(ledger)] = (ledger, self._opened)
        self.written[id(ledger)] = []
        return mechanism

    def note(self, ledger, count):
        _, streams = self.streams_of[id(ledger)]
        states = (streams.sampling.bit_generator.state, streams.noise.bit_generator.state)
        self.written[id(ledger)] += [str(states)] * count


def watched(name, plan, objective):
    """Return where the streams stood at each entry of a run, ledger by ledger."""
    watch, record = Watch(), Ledger.record

    def noted(ledger, query, count=1):
        if id(ledger) in watch.streams_of:
            watch.note(ledger, count)
        record(ledger, query, count)

    optimizer = getattr(optim, name)
    rarely = "callback_every" in inspect.signature(optimizer).parameters
    options = {"callback_every": 10**9} if rarely else {}
    with optim.replaying(), observing(watch), mock.patch.object(Ledger, "record", noted):
        optimizer(objective, plan, seed=3, **options)
    return list(watch.written.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FIRST)
def test_no_stream_has_moved_for_an_answer_that_is_not_in_the_ledger(name):
    plan, objective = built(*FIRST[name])
    loops = watched(name, plan, objective)
    with (
        mock.patch.object(Loops, "fit", return_value=False),
        mock.patch.object(tracking.PairLoops, "over", return_value=None),
    ):
        one_by_one = watched(name, plan, objective)
    assert [len(entries) for entries in loops] == [len(entries) for entries in one_by_one]
    for entries, before in zip(loops, one_by_one, strict=True):
        assert entries
        reached = {state: answers for answers, state in reversed(list(enumerate(before)))}
        for answers, state in enumerate(entries):
            assert reached[state] <= answers
