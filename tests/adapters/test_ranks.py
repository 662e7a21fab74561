"""One run on several ranks releases the bits of one process. Ranks are threads here."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from _steps import planned

import dpcal
from dpcal import calibrate
from dpcal.accountants.matrix import BISR, BLT, Banded, LambdaCGD
from dpcal.adapters import ranks as module
from dpcal.adapters.ranks import Alone, RankedOracle, RanksDisagree, check_same
from dpcal.errors import BudgetExceeded, LedgerMismatch, NoiseReused, UnsupportedEvent
from dpcal.optim.boundary.store import read_ledger

N, SHAPES, STEPS = 60, {"weights": (5, 2), "bias": (3,)}, 6
TABLE = np.random.default_rng(0).standard_normal((N, 13)) * 0.4


@pytest.fixture(autouse=True)
def blocks_of_four(monkeypatch):
    """Thirteen parameters in four blocks, so that ranks own some each."""
    monkeypatch.setattr(module, "_BLOCK", 4)


class Threads:
    """Ranks that are threads of this process; each puts what it has where all others see it."""

    def __init__(self, rank, places, barrier):
        self.rank, self.size, self._places, self._barrier = rank, len(places), places, barrier

    def _all(self, value):
        self._places[self.rank] = value
        self._barrier.wait()
        found = list(self._places)
        self._barrier.wait()
        return found

    def told(self, make):
        made = (None, None)
        if self.rank == 0:
            try:
                made = (None, make())
            except Exception as error:
                made = (error, None)
        error, value = self._all(made)[0]
        if error is not None:
            raise error
        return value

    def same(self, **values):
        check_same(self._all(values))

    def total(self, whole):
        return sum(self._all(whole.copy()))


def on_ranks(size, work):
    """Return what ``work(ranks)`` returns on each rank."""
    places, barrier = [None] * size, threading.Barrier(size, timeout=20)
    with ThreadPoolExecutor(size) as pool:
        jobs = [pool.submit(work, Threads(j, places, barrier)) for j in range(size)]
        return [job.result() for job in jobs]


def plan_of(strategy=None, **changes):
    changes = {"sampling_probability": 0.3, **changes} if "sampler" not in changes else changes
    return planned(strategy, n=N, **{"count": STEPS, **changes})


def trained(ranks, plan, *, steps=STEPS, start=0, w=None, rate=0.1, table=TABLE, **options):
    """Return all iterates of gradient descent from step ``start`` on."""
    path = [np.zeros(13) if w is None else w]
    options = {"seed": 0, **options}
    oracle = RankedOracle(plan, ranks, SHAPES, lambda: path[-1].tobytes(), **options)
    if start:
        oracle.restored({"plan": json.loads(plan.to_json()), "answers": start})
    for _ in range(steps - start):
        for _, rows in oracle.pieces(4):
            oracle.add(table[rows] - 0.1 * path[-1])
        path.append(path[-1] - rate * oracle.answer())
    return path, oracle


PLANS = {
    "independent": plan_of(),
    "shuffled": plan_of(sampler="shuffled-epochs", epoch=3),
    "lambda": plan_of(LambdaCGD(STEPS, 0.5)),
    "BISR": plan_of(BISR(STEPS, 2)),
    "BLT": plan_of(BLT(STEPS, (0.9, 0.5), (0.3, 0.1))),
    "bands": plan_of(Banded(STEPS, 3, [0.7, 0.4, 0.2])),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_bits_do_not_depend_on_the_number_of_ranks(plan):
    alone, _ = trained(Alone(), plan)
    assert np.abs(alone[-1]).max() > 1e-3

    def work(ranks):
        path, oracle = trained(ranks, plan)
        with pytest.raises(BudgetExceeded):
            oracle.pieces()
        return path, oracle.ledger.count("gradient")

    for size in (2, 4):
        for path, count in on_ranks(size, work):
            assert np.array_equal(path, alone)
            assert count == STEPS


def test_noise_of_many_blocks_has_the_standard_deviation_of_the_plan():
    """4,000 numbers of 2 / 18: within 6 standard errors, one in 10^8."""
    oracle = RankedOracle(plan_of(count=1), Alone(), {"w": (4000,)}, lambda: b"", seed=3)
    oracle.draw()
    noise = oracle.answer()
    assert np.std(noise) * 18 == pytest.approx(2.0, rel=6 / np.sqrt(8000))
    assert len(np.unique(noise)) > 3990


@pytest.mark.parametrize("name", ["independent", "shuffled", "lambda", "BLT"])
def test_a_killed_job_goes_on_from_its_checkpoint_with_the_same_bits(name, tmp_path):
    """Answers 2 and 3 are given a second time: the file holds them once."""
    plan, store = PLANS[name], tmp_path / "run.db"
    whole, _ = trained(Alone(), plan)
    on_ranks(2, lambda ranks: trained(ranks, plan, steps=4, store=store))
    held = read_ledger(store)
    assert held.count("gradient") == 4
    for size in (1, 4):
        again = on_ranks(
            size, lambda ranks: trained(ranks, plan, start=2, w=whole[2], store=store, seed=None)
        )
        assert all(np.array_equal(path, whole[2:]) for path, _ in again)
    assert read_ledger(store).count("gradient") == STEPS
    assert oct(store.stat().st_mode)[-2:] == "00"


def test_other_questions_and_other_records_have_no_second_answer(tmp_path):
    plan, store = PLANS["independent"], tmp_path / "run.db"
    whole, _ = trained(Alone(), plan, steps=3, store=store)
    with pytest.raises(LedgerMismatch, match=r"answer 1 in store .* is to other parameters"):
        trained(Alone(), plan, rate=0.2, store=store)
    with pytest.raises(LedgerMismatch, match=r"answer 0 .* It was not released"):
        on_ranks(2, lambda ranks: trained(ranks, plan, table=TABLE[::-1], store=store))
    assert read_ledger(store).count("gradient") == 3
    again, _ = trained(Alone(), plan, store=store)
    assert np.array_equal(again[:4], whole)


def test_the_ledger_is_written_before_a_batch_is_known(tmp_path, monkeypatch):
    store, seen = tmp_path / "run.db", []
    draw = type(PLANS["independent"].queries[0].sampling).draw

    def watched(self, n, generator):
        seen.append(read_ledger(store).count("gradient"))
        return draw(self, n, generator)

    monkeypatch.setattr(type(PLANS["independent"].queries[0].sampling), "draw", watched)
    trained(Alone(), PLANS["independent"], steps=2, store=store)
    assert seen == [1, 2]


def test_a_store_has_one_run_at_a_time_and_of_one_plan(tmp_path):
    plan, store = PLANS["independent"], tmp_path / "run.db"
    _, first = trained(Alone(), plan, steps=1, store=store)
    RankedOracle(plan, Alone(), SHAPES, lambda: np.zeros(13).tobytes(), store=store)
    with pytest.raises(LedgerMismatch, match="opened by another run"):
        first.pieces()
    with pytest.raises(ValueError, match="holds a run with other plan"):
        trained(Alone(), PLANS["lambda"], store=store)
    with pytest.raises(ValueError, match="holds a run with other parameters"):
        RankedOracle(plan, Alone(), {"w": (13,)}, bytes, store=store)
    refused = tmp_path / "refused.db"
    with pytest.raises(UnsupportedEvent, match="negative entries"):
        trained(Alone(), plan_of(Banded(STEPS, 2, [1.0, -0.5])), store=refused)
    assert not refused.exists()


def test_ranks_that_disagree_are_told_by_name_and_nothing_is_spent():
    plan = PLANS["independent"]

    def disagree(plans=(plan, plan), shapes=(SHAPES, SHAPES), questions=(b"", b""), most=(4, 4)):
        def work(ranks):
            mine, made = ranks.rank, []

            def ask():
                made.append(
                    RankedOracle(plans[mine], ranks, shapes[mine], lambda: questions[mine], seed=0)
                )
                made[0].pieces(most[mine])

            with pytest.raises(RanksDisagree) as caught:
                ask()
            assert [oracle.ledger.answers for oracle in made] in ([], [0])
            return str(caught.value)

        (told,) = {*on_ranks(2, work)}
        return told

    assert "same plan, and that of rank 1" in disagree(plans=(plan, PLANS["lambda"]))
    assert "same shapes of parameters" in disagree(shapes=(SHAPES, {"w": (13,)}))
    assert "same parameters" in disagree(questions=(b"a", b"b"))
    assert "same at most, got 4 on rank 0 and 5 on rank 1" in disagree(most=(4, 5))
    with pytest.raises(RanksDisagree, match=r"version of dpcal, got '1' on rank 0 and '2' on rank"):
        check_same([{"version_of_dpcal": "1"}, {"version_of_dpcal": "2"}])
    on_ranks(2, lambda ranks: trained(ranks, plan if ranks.rank == 0 else None, steps=1))
    with pytest.raises(ValueError, match="must be given on rank 0"):
        trained(Alone(), None)


@pytest.mark.parametrize("n", [5, 1000])
def test_ranks_whose_records_are_in_another_order_are_told_before_a_batch(n, monkeypatch):
    """By permutations of each rank's own; what ranks exchange is not the same twice, nor a record.

    Of 1,000 records in two orders 64 are compared: all agree with probability 1e-192.
    """
    plan, digests, same = planned(n=n), [], Threads.same

    def watched(ranks, **values):
        digests.extend(values.get("records_in_the_same_order", "").split())
        same(ranks, **values)

    monkeypatch.setattr(Threads, "same", watched)

    def asked(shift):
        """Return the rows that each rank reads, of records that are shifted on rank 1."""

        def ask(ranks):
            oracle = RankedOracle(plan, ranks, SHAPES, lambda: b"", seed=0)
            rows, read = np.roll(np.arange(n), shift * ranks.rank), []
            try:
                oracle.check_records(lambda row: read.append(row) or b"record %d" % rows[row])
            finally:
                assert oracle.ledger.answers == 0
                assert len(set(read)) == len(read) == min(n, 64)
            return sorted(read)

        return on_ranks(2, ask)

    for _ in range(2):
        one, other = asked(0)
        assert one == other
    assert len(digests) == 4
    assert len(set(digests)) == 2
    for shift in (1, n - 1):
        with pytest.raises(RanksDisagree, match="must have the same records in the same order, an"):
            asked(shift)
    alone = RankedOracle(plan, Alone(), SHAPES, lambda: b"", seed=0)
    alone.check_records(lambda row: pytest.fail("one process reads nothing"))


def test_a_budget_is_charged_once_for_all_ranks():
    plan = calibrate.dpsgd(n=N, batch_size=10, steps=4, epsilon=1.0, delta=1e-6)
    with dpcal.budget(epsilon=1.2, delta=1e-6) as shared:
        on_ranks(2, lambda ranks: trained(ranks, plan, steps=1))
    assert shared.spent == pytest.approx(plan.price())


def test_without_a_store_no_step_is_answered_again():
    plan = PLANS["lambda"]
    _, oracle = trained(Alone(), plan, steps=3)
    state = {**oracle.state(), "answers": 2}
    with pytest.raises(LedgerMismatch, match="without a store"):
        oracle.restored(state)
    assert oracle.restored(oracle.state()) is oracle


def test_a_seed_serves_one_run_same_noise_is_refused():
    trained(Alone(), plan_of(count=3), steps=1, seed=12345)
    with pytest.raises(NoiseReused):
        trained(Alone(), plan_of(count=3), steps=1, seed=12345)
