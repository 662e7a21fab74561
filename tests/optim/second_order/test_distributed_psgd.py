"""Silos: one is Algorithm 2, each has its own ledger, and one that dies leaves a true ledger."""

import math
import os
import signal
import time
from functools import partial
from unittest import mock

import numpy as np
import pytest
from _cluster import Elsewhere
from saddles import Trigonometric
from scipy import stats

import dpcal
from dpcal import calibrate, optim, report
from dpcal.errors import LedgerMismatch
from dpcal.optim.boundary.store import read_ledger
from dpcal.optim.silos import Silo, SiloLost, SiloOracle, averaging
from dpcal.optim.silos.overlap import check_distinct

pytestmark = pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")

D, N = 3, 4_000
SADDLE = math.pi * np.eye(D)[0]


def records(number, n=N):
    return Trigonometric.drawn(n, D, seed=100 + number)


def planned(silos, *, build=calibrate.distributed_psgd, n=N, **changes):
    given = {"batch_size": 400, "difference_batch_size": 40, "drift": 0.05}
    given |= {"epsilon": 4.0, "delta": 1e-6, **changes}
    given |= {} if silos is None else {"silos": silos}
    return build(records(0, 10).constants, n=n, dimension=D, **given)


def same(one, other):
    """Whether two runs released the same numbers."""
    return (
        np.array_equal(one.w, other.w)
        and np.array_equal(one.end, other.end)
        and one.status == other.status
        and one.ledger.totals == other.ledger.totals
    )


def test_one_silo_is_algorithm_2_bit_for_bit():
    plan = planned(None, build=calibrate.gauss_psgd)
    alone = optim.gauss_psgd(records(0), plan, seed=7, initial=SADDLE)
    given = [Silo(records(0), seed=7)]
    silo = optim.distributed_psgd(given, plan, initial=SADDLE)
    assert same(alone, silo)
    assert alone.difference_calls == silo.difference_calls > 0


def test_numbers_do_not_depend_on_threads():
    plan = planned(3)
    given = [records(j) for j in range(3)]
    first = optim.distributed_psgd(given, plan, seed=1, initial=SADDLE)
    with mock.patch.object(averaging, "_WORK", 0):  # no batch is too small for threads
        again = optim.distributed_psgd(given, plan, seed=1, initial=SADDLE)
    assert same(first, again)


def test_each_silo_pays_for_itself_alone():
    plan = planned(4)
    silos = [Silo(records(j, n), seed=j) for j, n in enumerate((N, N, N, 6_000))]
    result = optim.distributed_psgd(silos, plan, initial=SADDLE)
    z = planned(1).queries[0].noise_multiplier
    for silo, ledger, own in zip(silos, result.ledgers, result.plans, strict=True):
        # Nothing is amplified by m, and a silo with more records has larger batches.
        assert [query.noise_multiplier for query in own.queries] == [z, z]
        assert [query.batch_size for query in own.queries] == [own.n // 10, own.n // 100]
        assert all(query.count == own.n // query.batch_size for query in own.queries)
        assert silo.ledger().totals == ledger.totals
        assert ledger.epsilon(1e-6) == plan.price(1e-6)
        used = sum(entry.count * entry.batch_size for entry in ledger.totals)
        assert used <= own.n
    assert [own.n for own in result.plans] == [N, N, N, 6_000]
    assert result.epsilon(1e-6) == result.of_silo(3).epsilon(1e-6) == plan.price(1e-6)
    assert result.unit.startswith("one record of one silo")


def test_a_report_of_silos_sums_nothing_over_them(tmp_path):
    plan = planned(3)
    result = optim.distributed_psgd([records(j) for j in range(3)], plan, seed=10, initial=SADDLE)
    document = report.read(report.save(tmp_path / "report", result))
    rows = report.verify(document)
    assert [row["claim"] for row in rows] == [
        *(f"target epsilon 4, silo {j}" for j in range(3)),
        "all runs of each silo",
    ]
    assert all(row["holds"] for row in rows)
    for each in (*document["runs"], document["everything"]):
        assert each["epsilon"]["upper"] == plan.price(1e-6).upper
    assert document["privacy"]["unit"] == "one record of one silo, all other records fixed"
    # Runs about one and the same records are composed, and the claim no longer holds.
    for silos in ((0, 0, 1), (None, None, None)):
        for run, silo in zip(document["runs"], silos, strict=True):
            run.pop("silo", None)
            if silo is not None:
                run["silo"] = silo
        assert not report.verify(document)[-1]["holds"]
    for silo, sentence in ((-1, "silo must be a whole number"), (0, "the silo of each run")):
        document["runs"][0]["silo"] = silo
        with pytest.raises(ValueError, match=sentence):
            report.verify(document)


def test_the_variance_of_a_mean_is_that_of_one_silo_over_m():
    """400 answers of 3 numbers at m = 4; a false alarm happens once in 10,000 times."""
    m, count = 4, 200
    plan = planned(m, n=80_000, batch_size=400)
    # Records without a spread: what varies is noise.
    silos = [Trigonometric(np.full((80_000, D), 0.1 * j)) for j in range(m)]
    with SiloOracle(silos, plan, seed=3) as server:
        answers = np.array([server.gradient(np.zeros(D), "refresh") for _ in range(count)])
    exact = np.mean([math.sin(0.1 * j) for j in range(m)])
    query = plan.query("refresh")
    s = query.noise_multiplier * query.max_norm / query.batch_size
    # A silo that divided its noise by m would be found: its answers are its own.
    with SiloOracle(silos[:1], planned(1, n=80_000), seed=4) as server:
        alone = np.array([server.gradient(np.zeros(D), "refresh") for _ in range(count)])
    for square in (((answers - exact) ** 2).sum() * m / s**2, (alone**2).sum() / s**2):
        assert 2 * min(stats.chi2.cdf(square, count * D), stats.chi2.sf(square, count * D)) > 1e-4


def own_plans(*epsilon, **changes):
    return planned(None, build=calibrate.silo_plans, epsilon=epsilon, **changes)


def test_silos_with_targets_of_their_own_pay_them_and_no_more(tmp_path):
    plans = own_plans(1.0, 8.0, 2.0)
    assert [plan.price() for plan in plans] == pytest.approx([1.0, 8.0, 2.0], rel=1e-6)
    assert all(plan.price() <= plan.epsilon for plan in plans)
    silos = [records(number) for number in range(3)]
    result = optim.distributed_psgd(silos, plans, seed=3, initial=SADDLE)
    spent = [result.of_silo(j).epsilon(1e-6) for j in range(3)]
    assert spent == pytest.approx([1.0, 8.0, 2.0], rel=1e-6)
    # The price of the run is that of the silo that pays most, wherever it stands.
    assert result.epsilon(1e-6) == spent[1]
    saved = report.read(report.save(tmp_path / "r", result))
    assert saved["everything"]["epsilon"]["upper"] == spent[1]
    assert all(row["holds"] for row in report.verify(saved))


def test_the_schedule_of_silos_is_that_of_the_noise_of_their_mean():
    """The mean of answers with noise 3 and 1 errs as the mean of two with the root of 5."""
    plans = own_plans(1.0, 8.0, 2.0, passes=2)
    noises = np.array([plan.queries[0].noise_multiplier for plan in plans])
    release = float(np.sqrt((noises**2).mean() / 2))
    epsilon = dpcal.epsilon(
        dpcal.events.GaussianDpEvent(release), delta=1e-6, neighboring_relation="replace-one"
    )
    shared = planned(3, epsilon=float(epsilon), passes=2)
    assert shared.parameters.keys() == plans[0].parameters.keys()
    for plan in plans:
        for name, value in shared.parameters.items():
            near = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
            assert plan.parameters[name] == near, name
    with SiloOracle([records(j) for j in range(3)], plans, seed=0) as server:
        names = ["refresh 1", "refresh 2"] * 10
        answers = np.array([server.gradient(SADDLE, name) for name in names])
    query = shared.query("refresh 1")
    deviation = query.noise_multiplier * query.max_norm / query.batch_size / 3**0.5
    assert answers.std(axis=0) == pytest.approx(deviation, rel=0.5)


def test_plans_of_silos_differ_in_noise_alone():
    plans, silos = own_plans(1.0, 2.0), [records(0), records(1)]
    with pytest.raises(ValueError, match="as many as the plan says, 2, got 3"):
        SiloOracle([*silos, records(2)], plans)
    with pytest.raises(ValueError, match="must differ in noise and epsilon alone"):
        SiloOracle(silos, [plans[0], own_plans(1.0, 2.0, drift=0.06)[1]])
    with pytest.raises(ValueError, match="a number > 0 for each silo"):
        own_plans()


class Mortal(Silo):
    """A silo that is lost after so many answers."""

    def __init__(self, objective, answers):
        super().__init__(objective, seed=61)
        self.left = answers

    def answer(self, *asked):
        if not self.left:
            raise SiloLost
        self.left -= 1
        return super().answer(*asked)


@pytest.mark.parametrize("answers", [0, 1, 6])
def test_a_lost_silo_stops_the_run_or_does_not(answers):
    plan = planned(3)

    def silos():
        return [Silo(records(0), seed=60), Mortal(records(1), answers), Silo(records(2), seed=62)]

    stopped = optim.distributed_psgd(silos(), plan, initial=SADDLE)
    assert stopped.status == "silo-lost"
    assert stopped.lost == (1,)
    given = silos()
    went_on = optim.distributed_psgd(given, plan, initial=SADDLE, on_lost="continue")
    assert went_on.status in ("certified", "budget-exhausted", "finished")
    assert went_on.lost == (1,)
    for result in (stopped, went_on):
        result.verify()
        assert result.epsilon(1e-6) == plan.price(1e-6)
    assert went_on.ledgers[1].answers == answers + 1
    assert given[1].ledger().answers == answers


def test_a_silo_that_is_lost_at_the_end_takes_no_result_with_it():
    class Gone(Silo):
        def ledger(self):
            raise SiloLost

        def close(self):
            raise SiloLost

    plan = planned(2, steps=4)
    result = optim.distributed_psgd([records(0), Gone(records(1))], plan, initial=SADDLE)
    assert (result.status, result.lost) == ("finished", (1,))
    # What it was asked for is in the ledger that the server kept.
    assert result.ledgers[1].totals == result.ledgers[0].totals
    result.verify()


def test_a_silo_that_released_more_than_it_was_asked_for_is_found():
    class Chatty(Silo):
        def answer(self, *asked):
            super().answer(*asked)
            return super().answer(*asked)

    with pytest.raises(LedgerMismatch, match="silo 1 is not what it was asked for"):
        optim.distributed_psgd([records(0), Chatty(records(1))], planned(2, steps=4))


def test_an_interrupted_run_has_the_ledger_of_its_silos():
    own, interrupt = [Silo(records(0)), Silo(records(1))], mock.Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        optim.distributed_psgd(own, planned(2, steps=4), initial=SADDLE, callback=interrupt)
    ledger = optim.released(caught.value)
    assert ledger.answers > 0
    assert all(ledger.totals == silo.ledger().totals for silo in own)


WRONG = {
    "the same dimension": lambda: [records(0), Trigonometric.drawn(N, D + 1, seed=9)],
    "the same records twice": lambda: [records(0), records(0)],
    "as many as the plan says, 2, got 1": lambda: [records(0)],
    "as many as the plan says, 2, got 0": list,
    "at least the plan's n=4000 records": lambda: [records(0), records(1, N - 1)],
}


@pytest.mark.parametrize("sentence", WRONG)
def test_wrong_silos_are_one_sentence(sentence):
    with pytest.raises(ValueError, match=sentence):
        optim.distributed_psgd(WRONG[sentence](), planned(2))


X = np.random.default_rng(5).uniform(-1, 1, (9, D))
CLASSES = {"classes_from_data": True}


# What holds the records, made of rows of a table; every class that digests records its own way.
HOLDERS = [
    Trigonometric,
    lambda rows: optim.Logistic(rows, np.resize([0.0, 1.0], len(rows)), **CLASSES),
    lambda rows: optim.Squared(rows, rows[:, 0]),
    lambda rows: optim.Softmax(rows, np.resize([0, 1], len(rows)), **CLASSES),
    lambda rows: optim.MLP(rows, np.resize([0, 1], len(rows)), width=2, **CLASSES),
    lambda rows: optim.KAN(rows, np.resize([0, 1], len(rows)), width=2, **CLASSES),
    lambda rows: optim.FromGradients(lambda w, i: w - rows[i], n=len(rows), dimension=D),
    lambda rows: optim.minimax.AUCMaximization(
        rows, np.resize([0, 1], len(rows)), positive_share=0.5, **CLASSES
    ),
]


@pytest.mark.parametrize("made", HOLDERS)
def test_silos_that_share_a_record_are_refused(made):
    """Row 4 of nine is the last of one silo, and the first of another one."""
    check_distinct([Silo(made(X[:4])), Silo(made(X[4:8]))])
    shared = [Silo(made(X[:4])), Silo(made(X[4:5].repeat(2, axis=0))), Silo(made(X[[4, 6, 7, 8]]))]
    with pytest.raises(ValueError, match="got a record of silo 1 in silo 2 too"):
        check_distinct(shared)
    check_distinct(shared, "ignore")


def test_a_digest_is_of_the_numbers_and_of_the_key():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    first, second, third = Trigonometric(rows).fingerprints(b"key")
    assert first == second != third
    assert first not in Trigonometric(rows).fingerprints(b"another")
    assert len({*Trigonometric.drawn(5_000, 2, seed=1).fingerprints(b"key")}) == 5_000


def elsewhere(silo):
    """Return a silo that is not in this process, as far as the server can tell."""
    return mock.Mock(wraps=silo)


def test_records_elsewhere_are_compared_only_where_that_is_asked_for():
    plan, half = planned(2, steps=2), records(0).Z[: N // 2]
    mixed = Trigonometric(np.vstack([half, records(1).Z[: N // 2]]))
    given = [records(0), elsewhere(Silo(mixed, gives_digests=True))]
    optim.distributed_psgd(given, plan, initial=SADDLE)
    given[1].fingerprints.assert_not_called()
    for silos, overlap in (([records(0), mixed], "local"), (given, "all")):
        with pytest.raises(ValueError, match="got a record of silo 0 in silo 1 too"):
            optim.distributed_psgd(silos, plan, initial=SADDLE, overlap=overlap)
    with pytest.raises(ValueError, match="its owner must make it with gives_digests=True"):
        check_distinct([records(0), elsewhere(Silo(mixed))], "all")
    check_distinct([Silo(records(0)), Silo(mixed)], "ignore")
    with pytest.raises(ValueError, match="silo 1 has no method of that name"):
        check_distinct([Silo(records(0)), object()], "all")


# -- on a Dask cluster, in processes of its own


def maker(number, folder=None, pause=0.0, seed=None):
    """Make a silo where it is called; with a file, and slow, if asked for."""
    made = records(number)
    if pause:
        plain = made.contributions

        def slow(*asked):
            time.sleep(pause)
            return plain(*asked)

        made.contributions = slow
    if folder is None and seed is None:
        return made
    return Silo(made, store=folder and f"{folder}/{number}.db", seed=seed)


@pytest.mark.parametrize(("m", "psi"), [(1, 0.295), (2, 0.208), (5, 0.132), (10, 0.093)])
def test_the_error_of_section_5_3_falls_with_silos(m, psi):
    ten = calibrate.Constants(lipschitz=10**0.5, smoothness=1.0, hessian_lipschitz=1.0)
    given = {"n": 20_000, "batch_size": 1_000, "difference_batch_size": 20, "drift": 0.02}
    given |= {"dimension": 10, "epsilon": 1.0, "delta": 1e-6}
    plan = calibrate.distributed_psgd(ten, silos=m, **given)
    assert plan.parameters["error"] == pytest.approx(psi, abs=5e-4)


@pytest.mark.slow
def test_processes_and_threads_release_the_same_numbers():
    plan = planned(3, steps=4)
    here = optim.distributed_psgd([records(j) for j in range(3)], plan, seed=3, initial=SADDLE)
    seeds = np.random.SeedSequence(3).spawn(3)  # those of the objectives of a run
    silos = [Elsewhere(partial(maker, j, seed=seed)) for j, seed in enumerate(seeds)]
    there = optim.distributed_psgd(silos, plan, initial=SADDLE)
    assert same(here, there)
    assert [each.totals for each in there.ledgers] == [each.totals for each in here.ledgers]
    # Digests leave a process only where that is asked for.
    twins = [Elsewhere(partial(maker, 0)) for _ in range(2)]
    with pytest.raises(ValueError, match="got a record of silo 0 in silo 1 too"):
        optim.distributed_psgd(twins, planned(2, steps=4), overlap="all")


@pytest.mark.slow
def test_a_killed_silo_leaves_true_ledgers(tmp_path):
    plan = planned(3, steps=40)
    silos = [Elsewhere(partial(maker, j, str(tmp_path), pause=0.0002)) for j in range(3)]
    steps = []

    def kill(progress):
        steps.append(progress.step)
        if len(steps) == 2:
            os.kill(silos[1].process.pid, signal.SIGKILL)

    result = optim.distributed_psgd(
        silos, plan, initial=SADDLE, on_lost="continue", callback=kill, callback_every=1
    )
    assert result.lost == (1,)
    assert len(steps) > 2, "the run went on"
    for j in range(3):
        released = read_ledger(tmp_path / f"{j}.db")
        for query in plan.queries:
            asked, given = result.ledgers[j].count(query.name), released.count(query.name)
            assert asked == given if j != 1 else given <= asked <= given + 1
        assert released.epsilon(1e-6) <= plan.price(1e-6)
    result.verify()
    assert result.epsilon(1e-6) == plan.price(1e-6)
