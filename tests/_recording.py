"""Does an optimizer do what its plan promises? The recorder of attacks, on the run's own numbers.

``record`` runs an optimizer on an objective, and returns its result and the tape of all that its
oracles did. ``check_promises`` holds the tape against the plan, as attacks do
(:mod:`dpcal.optim.attacks.promises`), and beyond:

* no record moves a sum by more than the bound (a few records of every tenth sum, by brute force);
* counts equal the plan's for complete runs, parameters are finite, and the result verifies.
"""

import numpy as np

from dpcal.optim.attacks.promises import broken_promises
from dpcal.optim.attacks.recording import Recorder, Tape, play
from dpcal.optim.boundary.seeds import Streams


class Alike:
    """Equal streams whatever the digest of the records is, to compare two ways to hold them."""

    def streams(self, seed, plan, digest):
        return Streams(5, plan, lambda: b"any records")

    def watched(self, mechanism, plan, ledger):
        return mechanism

    def choosing(self, plan, ledger):
        return lambda query, at, scores, choose: choose()


class _Faithful(Recorder):
    """A recorder whose runs draw what they would draw if nobody watched."""

    def __init__(self, noiseless):
        super().__init__(Tape(salt=b""))
        self._noiseless = noiseless

    def streams(self, seed, plan, digest):
        made = Streams(seed, plan, digest)
        self._opening.secret = made.root["secret"]
        return made

    def take(self, due, query, release, **about):
        def bare():
            release()
            return due.total / about["size"]

        return super().take(due, query, bare if self._noiseless else release, **about)


def record(optimizer, objective, plan, *, noiseless=False, **options):
    """Run ``optimizer(objective, plan, **options)``; return its result and the tape."""
    run = _Faithful(noiseless)
    tape = play(lambda records: optimizer(records, plan, **options), objective, run)
    if tape.failure is not None:
        raise tape.failure
    return tape.outcome, tape


def check_promises(optimizer, objective, plan, **options):
    """Assert that what ``plan`` promises is what ``optimizer`` does; return its result."""
    result, tape = record(optimizer, objective, plan, **options)
    findings = list(broken_promises(tape, price=False))
    assert not findings, "\n".join(map(str, findings))
    for answer in tape.answers[::10]:
        _sensitivity(answer)
    for query in plan.queries:
        asked = result.ledger.count(query.name)
        exact = result.complete and not result.early and query.budget is None
        kept = asked == query.count if exact else asked <= query.count
        assert kept, f"query {query.name!r} was asked {asked} times, planned {query.count}"
    result.verify()
    assert np.isfinite(result.w).all()
    return result


def _sensitivity(answer):
    """Take a few records out of a sum, one at a time."""
    asked = {
        "gradient": answer.objective.clipped_sum,
        "gradient difference": answer.objective.clipped_difference_sum,
        "scalar": answer.objective.clipped_loss_sum,
    }.get(answer.kind)
    if asked is None:
        return
    whole = asked(*answer.at, answer.rows, answer.bound)
    for gone in range(0, len(answer.rows), max(1, len(answer.rows) // 5)):
        without = asked(*answer.at, np.delete(answer.rows, gone), answer.bound)
        rounding = 1e-12 * (1 + len(answer.rows)) * answer.bound
        assert np.linalg.norm(whole - without) <= answer.bound + rounding
