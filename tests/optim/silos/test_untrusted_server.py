"""A server that nobody trusts misuses every call of a silo: what may it learn in the silo's life?

It opens again and with other plans, repeats, reorders and drops questions, chooses parameters and
seeds, closes, asks from many threads, and kills the silo's process.
"""

import copy
import dataclasses
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from _cluster import Elsewhere
from saddles import Trigonometric

from dpcal import accountants, calibrate, optim
from dpcal.errors import BudgetExceeded, DpcalError, VacuousSchedule
from dpcal.optim.boundary.store import read_ledger
from dpcal.optim.silos import Silo, SiloOracle

D, N, DELTA = 2, 600, 1e-6


def records(number=0):
    return Trigonometric.drawn(N, D, seed=500 + number)


def planned(epsilon=4.0, silos=1):
    sizes = {"batch_size": 100, "difference_batch_size": 10, "drift": 0.05, "passes": 3}
    target = {"n": N, "dimension": D, "epsilon": epsilon, "delta": DELTA}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousSchedule)
        return calibrate.distributed_psgd(records().constants, silos=silos, **target, **sizes)


PLAN = planned()
# As good as the records: a silo can only refuse it if its owner set a limit.
LOUD = dataclasses.replace(
    PLAN, queries=tuple(dataclasses.replace(each, noise_multiplier=1e-9) for each in PLAN.queries)
)
OTHER = planned(3.0)
REFUSALS = (DpcalError, ValueError, TypeError)
FIRST = PLAN.queries[0]


def asked_out(silo):
    """Open a silo and ask its first query until it refuses; return the answers."""
    got = []
    with suppress(ValueError):
        silo.open(PLAN)
    with suppress(BudgetExceeded):
        for _ in range(FIRST.count + 1):
            got.append(tuple(silo.answer("gradient", FIRST.name, np.zeros(D))))
    return got


class Server:
    """Calls of a silo in an order that chance gives; what it got, and how often it was refused."""

    def __init__(self, make, plans, seed):
        self.make, self.plans = make, plans
        self.rng = np.random.default_rng(seed)
        self.silo = make()
        self.answers, self.opened, self.ledgers, self.refused = [], [], [], 0

    def open(self):
        plan = self.plans[self.rng.integers(len(self.plans))]
        self.silo.open(plan)
        self.opened.append(plan)
        self.ledgers.append(self.silo.ledger())

    def open_with_a_seed(self):
        self.silo.open(self.plans[0], seed=11)
        raise AssertionError("a silo took a seed from outside")

    def answer(self):
        """Any query, again or out of turn, at a place that asks for the same or for overflows."""
        names = [query.name for query in self.plans[0].queries]
        query = names[self.rng.integers(len(names))]
        kind = ("gradient", "difference", "norm")[self.rng.integers(3)]
        scale = (0.0, 1.0, 1e300, np.nan, np.inf)[self.rng.choice(5, p=(0.6, 0.2, 0.1, 0.05, 0.05))]
        w, v = scale * self.rng.normal(size=(2, D))
        got = self.silo.answer(kind, query, w, None if self.rng.random() < 0.3 else v)
        self.answers.append((query, tuple(map(float, got))))

    def several_at_once(self):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self.quietly, ["answer"] * 4))

    def close(self):
        self.silo.close()

    def look(self):
        described = self.silo.describe()
        assert (described.n, described.dimension) == (N, D)
        assert self.silo.ledger().n == N

    def digests(self):
        self.silo.fingerprints(b"key")
        raise AssertionError("a silo gave digests of its records without its owner's word")

    def quietly(self, name):
        try:
            getattr(self, name)()
        except REFUSALS:
            self.refused += 1

    def misuse(self, calls, kills=False):
        names = ["open", "answer", "answer", "answer", "answer", "several_at_once", "look"]
        names += ["close", "open_with_a_seed", "digests"] if self.rng.random() < 0.5 else []
        self.quietly("open")
        for _ in range(calls):
            if kills and self.rng.random() < 0.05:
                self.silo = self.make()
                self.quietly("open")
            self.quietly(names[self.rng.integers(len(names))])
        return self


def within(server, plan):
    """Whether a server got no more different answers to any query than the plan has."""
    assert server.refused
    for query in plan.queries:
        # A difference between equal parameters is zero without noise, and costs an answer.
        got = {each for name, each in server.answers if name == query.name and any(each)}
        assert len(got) <= query.count, query.name
    for ledger in server.ledgers:
        assert ledger.epsilon(DELTA) <= plan.price(DELTA)


@pytest.mark.parametrize("seed", range(8))
def test_a_silo_without_a_file_gives_one_plan_in_its_life(seed):
    server = Server(lambda: Silo(records()), [PLAN, OTHER, PLAN], seed).misuse(150)
    assert len(server.opened) <= 1
    within(server, (server.opened or [PLAN])[0])
    assert server.silo.ledger().answers >= len(set(server.answers))


@pytest.mark.parametrize("seed", range(8))
def test_a_silo_with_a_file_gives_one_plan_however_often_it_is_killed(seed, tmp_path):
    def make():
        return Silo(records(), store=tmp_path / "silo.db")

    server = Server(make, [PLAN], seed).misuse(150, kills=True)
    within(server, PLAN)
    assert read_ledger(tmp_path / "silo.db").epsilon(DELTA) <= PLAN.price(DELTA)
    other = Silo(records(), store=tmp_path / "silo.db")
    for plan in (OTHER, LOUD):
        with pytest.raises(ValueError, match="plan"):
            other.open(plan)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_silo_with_a_book_gives_its_total_for_any_plans(seed, tmp_path):
    """Also for a plan that is as good as the records, and for plans chosen by earlier answers."""
    rules = {"neighboring_relation": "replace-one", "composition": "renyi"}
    book = optim.BudgetBook(tmp_path / "silo.budget", epsilon=8.0, delta=DELTA, **rules)
    server = Server(lambda: Silo(records(), store=book), [PLAN, LOUD, OTHER], seed)
    server.misuse(150, kills=True)
    assert LOUD not in server.opened
    assert len(server.opened) > 1
    runs = [ledger.event for ledger in server.ledgers if ledger.answers]
    together = accountants.events.ComposedDpEvent(runs)
    spent = accountants.epsilon(together, delta=DELTA, neighboring_relation="replace-one")
    assert 0 < spent <= 8.0


def test_opening_again_and_again_gives_no_further_answer():
    """Where a hundred openings once gave a hundred times the plan's answers."""
    silo = Silo(records())
    got = [each for _ in range(5) for each in asked_out(silo)]
    assert len(got) == FIRST.count == silo.ledger().count(FIRST.name)
    with pytest.raises(ValueError, match="answers one plan in its life, and has opened one"):
        silo.open(PLAN)


def test_eight_threads_open_a_silo_once_and_get_no_further_answer():
    silo, opened, got, barrier = Silo(records()), [], [], threading.Barrier(8)

    def misuse(_):
        barrier.wait()
        for _ in range(FIRST.count):
            with suppress(ValueError):
                silo.open(PLAN)
                opened.append(1)
            with suppress(BudgetExceeded, ValueError):
                got.append(tuple(silo.answer("gradient", FIRST.name, np.zeros(D))))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(misuse, range(8)))
    assert len(opened) == 1
    assert len(set(got)) == len(got) <= FIRST.count == silo.ledger().count(FIRST.name)


def test_a_seed_is_the_owners():
    """Whoever knows the records, the plan and all that it sent cannot draw the noise again."""
    plan = planned(silos=2)

    def first(silo):
        return asked_out(silo)[0]

    assert first(Silo(records())) != first(Silo(records()))
    assert first(Silo(records(), seed=3)) == first(Silo(records(), seed=3))
    assert Silo(records(), seed=3).describe().seed_given
    for seed in (0, 11, np.random.SeedSequence(1)):
        with pytest.raises(TypeError, match="seed"):
            Silo(records()).open(PLAN, seed=seed)
        with pytest.raises(TypeError):
            Silo(records()).open(PLAN, seed)
        for silos in ([Silo(records()), Silo(records(1))], [records(), Silo(records(1))]):
            with pytest.raises(ValueError, match="seed is for objectives"):
                SiloOracle(silos, plan, seed=seed)
    result = optim.distributed_psgd([Silo(records()), Silo(records(1), seed=1)], plan)
    assert result.seed_given
    assert not optim.distributed_psgd([Silo(records()), Silo(records(1))], plan).seed_given


def test_a_silo_is_not_copied():
    silo = Silo(records())
    for each in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="is not copied or pickled"):
            each(silo)


def test_an_open_that_is_refused_leaves_the_silo_to_be_opened():
    silo = Silo(records())
    with pytest.raises(ValueError, match="for n=600"):
        silo.open(dataclasses.replace(PLAN, n=N + 1))
    with pytest.raises(ValueError, match="must be opened with a plan"):
        silo.answer("gradient", FIRST.name, np.zeros(D))
    silo.open(PLAN)
    assert silo.answer("gradient", FIRST.name, np.zeros(D)).shape == (D,)
    silo.close()
    with pytest.raises(ValueError, match="must not be closed"):
        silo.answer("gradient", FIRST.name, np.zeros(D))
    assert silo.ledger().answers == 1


def test_silos_in_processes_of_their_own_keep_the_same_rules():
    silos = iter([Elsewhere(lambda: Silo(records())) for _ in range(3)])
    for seed in range(2):
        server = Server(lambda: next(silos), [PLAN, OTHER], seed).misuse(60)
        assert len(server.opened) <= 1
        within(server, (server.opened or [PLAN])[0])
    silo = next(silos)
    got = [each for _ in range(5) for each in asked_out(silo)]
    assert len(set(got)) == FIRST.count
