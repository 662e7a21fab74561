"""Private selection: prices, thresholds and their coverage, comparisons on neighbours."""

import math

import numpy as np
import pytest
from _recording import record
from saddles import Trigonometric
from scipy import stats

from dpcal import accountants, calibrate, report
from dpcal.accountants import events
from dpcal.calibrate.plans.common import single_release
from dpcal.errors import BudgetExceeded, UnsupportedEvent, VacuousSchedule
from dpcal.optim import Result, gauss_psgd, select_point
from dpcal.optim.attacks.promises import broken_promises
from dpcal.optim.second_order.oracle import SecondOrderOracle

PHI = math.sin(1.0)
SADDLE = math.pi * np.eye(5)[0]
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def planned(n=20_000, d=5, **changes):
    given = {"candidates": 50, "accuracy": 0.5, **TARGET, **changes}
    return calibrate.select_point(
        Trigonometric(np.zeros((1, d))).constants, n=n, dimension=d, **given
    )


def passes(w, alpha):
    """Whether a point is an alpha-second-order point of the exact population risk."""
    slope = np.linalg.norm(PHI * np.sin(w))
    return slope <= alpha and (PHI * np.cos(w)).min() >= -math.sqrt(alpha)


# -- prices


def test_algorithm_4_costs_exactly_what_is_asked_for():
    plan = planned()
    gradient, hessian = plan.queries
    z = single_release(1.0, 1e-6, "replace-one")
    # T (1 / z_g)^2 + T (1 / z_H)^2 = 1 / z^2.
    spent = 50 / gradient.noise_multiplier**2 + 50 / hessian.noise_multiplier**2
    assert spent == pytest.approx(z**-2, rel=1e-9)
    assert hessian.max_norm == pytest.approx(math.sqrt(5))


@pytest.mark.parametrize("method", ["above-threshold", "report-noisy-max"])
def test_comparisons_are_pure_whatever_the_number_of_candidates(method):
    for relation, moved in (("replace-special", 1), ("replace-one", 2)):
        plan = planned(method=method, candidates=1000, neighboring_relation=relation)
        (query,) = plan.queries
        assert query.noise_multiplier == pytest.approx(2 * moved)
        # Pure: at a delta that nothing but certainty leaves room for, the epsilon is the same.
        assert 0.999 < plan.price(1e-30) <= 1.0


# -- saddle scores


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["zeroed", "replaced"])
def test_scores_move_by_one_contribution(relation):
    rng = np.random.default_rng(0)
    plan = planned(n=6, d=3, method="above-threshold", candidates=1)
    limits = (0.3, 0.2), (math.sqrt(3), 1.0)
    rows, moved = np.arange(6), 2 if relation == "replaced" else 1
    largest = 0.0
    for trial in range(120):
        Z = rng.uniform(-4, 4, (6, 3))
        if trial % 3 == 0:
            Z[:] = rng.choice([0.0, math.pi / 2, math.pi])
        other = Z.copy()
        other[0] = rng.uniform(-4, 4, 3) if trial % 2 else Z[0] + math.pi
        w = rng.choice([0.0, math.pi, 1.0], 3)
        scores = []
        for table in (Z, other):
            objective = Trigonometric(table)
            oracle = SecondOrderOracle(objective, plan, seed=0)
            asked = rows if relation == "replaced" or table is Z else rows[1:]
            scores.append(oracle._score(w, asked, *limits) / 2**20)
        largest = max(largest, abs(scores[0] - scores[1]))
    assert largest <= moved * (1 + 1e-9)
    assert largest > 0.9 * moved


def test_above_threshold_stops_at_its_first_acceptance():
    plan = planned(method="above-threshold", candidates=4)
    holdout = Trigonometric.drawn(20_000, 5, seed=3)
    chosen = select_point(holdout, [SADDLE, SADDLE, np.zeros(5), SADDLE], plan, seed=1)
    assert (chosen.index, chosen.tested, chosen.status) == (2, 3, "accepted")
    assert chosen.ledger.count("score") == 3
    assert chosen.epsilon(1e-6) == plan.price(1e-6)
    assert (chosen.message, len(chosen.trace.step)) == ("accepted after 3 candidates", 0)
    none = select_point(holdout, [SADDLE, np.full(5, 1.2)], plan, seed=1)
    assert (none.index, none.w, none.status) == (None, None, "none")


# -- thresholds


def test_without_noise_exactly_the_second_order_points_pass():
    """Nearly no noise, many records: points near a threshold are left out."""
    plan = planned(n=40_000, d=3, epsilon=1e4, candidates=200, accuracy=0.5)
    holdout = Trigonometric.drawn(40_000, 3, seed=4)
    rng = np.random.default_rng(5)
    points = [np.array(w) for w in rng.uniform(-4, 4, (40, 3)) * rng.choice([0.1, 1.0], (40, 3))]
    slack = plan.parameters["gradient_threshold"] - 0.5
    assert slack < 0.07
    seen = set()
    for w in points:
        near = abs(np.linalg.norm(PHI * np.sin(w)) - 0.5) < 3 * slack
        near |= abs((PHI * np.cos(w)).min() + math.sqrt(0.5)) < 3 * slack
        if not near:
            chosen = select_point(holdout, [w], plan, seed=6)
            assert (chosen.status == "accepted") == passes(w, 0.5)
            seen.add(chosen.status)
    assert seen == {"accepted", "none"}


REFERENCE = [(5, 0.0677, 0.0642), (20, 0.1565, 0.1559), (80, 0.3976, 0.4648)]


@pytest.mark.parametrize(("d", "e_g", "e_H"), REFERENCE)
def test_the_cost_of_selection_by_dimension(d, e_g, e_H):
    """Section 5.5's numbers, found there by another program: m = 4, T = 50, n = 20,000."""
    parameters = planned(d=d, silos=4, accuracy=0.5).parameters
    assert parameters["gradient_threshold"] - 0.5 == pytest.approx(e_g, abs=6e-5)
    assert parameters["hessian_threshold"] - math.sqrt(0.5) == pytest.approx(e_H, abs=6e-5)
    alpha = max(0.5 + 2 * e_g, (math.sqrt(0.5) + 2 * e_H) ** 2)
    assert parameters["accuracy"] == pytest.approx(alpha, rel=1e-3)
    # One silo's comparisons have no factor of the dimension but the gradient bound's root.
    plan = planned(d=d, method="above-threshold", accuracy=0.5)
    alone, n, log = plan.parameters, plan.n, math.log(4 * 50 / 0.1)
    noise = 3 * plan.queries[0].noise_multiplier * log / n
    distance = math.sqrt(2 * (log + math.log(2 * d)) / n) + 4 * (log + math.log(2 * d)) / (3 * n)
    slack = math.sqrt(d) * ((1 + math.sqrt(2 * log)) / math.sqrt(n) + noise)
    assert alone["gradient_threshold"] - 0.5 == pytest.approx(slack, rel=1e-6)
    assert alone["hessian_threshold"] - math.sqrt(0.5) == pytest.approx(distance + noise, rel=1e-6)
    assert d < 80 or alone["hessian_threshold"] < parameters["hessian_threshold"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gaussian", "gaussian-score", "above-threshold"])
def test_explicit_thresholds_cover(method):
    """60 selections with failure probability 0.1: more than 0.1 + 3 standard errors is refuted.

    Candidates begin at borderline points: just within alpha (must pass) and just outside alpha'
    (must not).
    """
    n, d, alpha = 8_000, 2, 0.3
    plan = planned(n=n, d=d, candidates=4, accuracy=alpha, epsilon=4.0, method=method)
    claimed = plan.parameters["accuracy"]
    inside = np.array([math.asin(0.999 * alpha / PHI), 0.0])
    outside = [SADDLE[:2], np.array([math.asin(1.001 * claimed / PHI), 0.0])]
    assert passes(inside, alpha)
    assert not any(passes(w, claimed) for w in outside)
    failures = 0
    for run in range(60):
        holdout = Trigonometric.drawn(n, d, seed=1000 + run)
        chosen = select_point(holdout, [*outside, inside], plan, seed=run)
        failures += chosen.index != 2
    assert failures / 60 <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 60)


# -- records that were used before


@pytest.fixture(scope="module")
def trained():
    """Return the records of a training, records of others, and what the training returned."""
    objective, other = (Trigonometric.drawn(20_000, 5, seed=seed) for seed in (0, 1))
    with pytest.warns(VacuousSchedule):
        train = calibrate.gauss_psgd(objective.constants, n=20_000, dimension=5, **TARGET)
    return objective, other, gauss_psgd(objective, train, seed=0, initial=SADDLE)


def test_records_of_the_training_are_composed(trained):
    objective, other, result = trained
    plan = planned()
    alone = select_point(other, result, plan, seed=1)
    assert alone.training is None
    assert alone.epsilon(1e-6) == plan.price(1e-6)
    again = select_point(objective, result, plan, seed=1)
    assert isinstance(again.training, Result)
    # Two releases at mu = 1 / z each are as one at sqrt(2) mu.
    z = single_release(1.0, 1e-6, "replace-one")
    both = accountants.epsilon(
        events.GaussianDpEvent(z / math.sqrt(2)), delta=1e-6, neighboring_relation="replace-one"
    )
    assert again.epsilon(1e-6) == pytest.approx(float(both), rel=1e-4)
    # The training's price is part of all questions, and so are their refusals.
    for relation in ("replace-one", "replace-special"):
        price = result.epsilon(1e-6, neighboring_relation=relation)
        assert again.epsilon(1e-6, neighboring_relation=relation) > price
    with pytest.raises(UnsupportedEvent, match="disjoint parts, which needs"):
        again.epsilon(1e-6, neighboring_relation="add-or-remove-one")
    two, of_training = (
        accountants.epsilon(each.event_for(2), delta=1e-6, neighboring_relation="replace-one")
        for each in (again, result)
    )
    assert two > of_training > result.epsilon(1e-6)
    said = select_point(other, [result.w], plan, training=result, seed=2)
    assert said.epsilon(1e-6) == again.epsilon(1e-6)
    # One record of the training among the holdout's is enough, while the training's are here.
    mixed = Trigonometric(np.vstack([other.Z[1:], objective.Z[:1]]))
    assert select_point(mixed, result, plan, seed=3).epsilon(1e-6) == again.epsilon(1e-6)
    alike = select_point(mixed, result, plan, seed=4, overlap="ignore")
    assert alike.training is None


@pytest.mark.parametrize("relation", ["replace-one", "replace-special"])
def test_a_noisy_score_is_one_gaussian_number(relation):
    """300 scores of one point: mean and spread, with a false alarm once in 10,000 times.

    They are whole numbers of steps of 2^-20.
    """
    plan = planned(n=400, candidates=300, method="gaussian-score", neighboring_relation=relation)
    (query,) = plan.queries
    z = single_release(1.0, 1e-6, relation)
    assert query.noise_multiplier == pytest.approx(math.sqrt(300) * z, rel=1e-9)
    objective = Trigonometric.drawn(400, 5, seed=2)
    oracle = SecondOrderOracle(objective, plan, seed=8)
    ask = {"thresholds": (0.4, 0.3), "norms": (math.sqrt(5), 1.0)}
    answers = np.array([oracle.saddle_score(SADDLE, "score", **ask) for _ in range(300)])
    gradient = np.linalg.norm(objective.gradient(SADDLE))
    least = np.cos(objective.Z + SADDLE).mean(axis=0).min()
    exact = max((gradient - 0.4) / math.sqrt(5), -least - 0.3)
    steps = answers * 400 * 2**20
    assert np.abs(steps - np.rint(steps)).max() < 1e-3
    drawn = (answers - exact) * 400 / query.noise_multiplier
    assert abs(drawn.sum()) < 3.9 * math.sqrt(300)
    square = float((drawn**2).sum())
    assert 2 * min(stats.chi2.cdf(square, 300), stats.chi2.sf(square, 300)) > 1e-4
    with pytest.raises(BudgetExceeded):
        oracle.saddle_score(SADDLE, "score", **ask)


@pytest.mark.parametrize(("method", "runs"), [("gaussian-score", 1), ("gaussian", 2)])
def test_what_is_chosen_can_be_checked_from_its_report(tmp_path, trained, method, runs):
    holdout = trained[1] if runs == 1 else trained[0]
    chosen = select_point(holdout, trained[2], planned(method=method), seed=1)
    document = report.read(report.save(tmp_path / method, chosen))
    assert len(document["runs"]) == runs
    assert all(row["holds"] for row in report.verify(document))
    # Plan, ledger and report say one number.
    assert document["everything"]["epsilon"]["upper"] == chosen.epsilon(1e-6).upper
    document["everything"]["epsilon"]["upper"] *= 0.99
    assert not report.verify(document)[-1]["holds"]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "epsilon"), [("gaussian", 4.0), ("power-method", 10.0)])
def test_many_silos(tmp_path, method, epsilon):
    silos = [Trigonometric.drawn(5_000, 5, offset=o, seed=s) for s, o in enumerate(0.2 * np.eye(5))]
    given = {"method": method, "epsilon": epsilon, "candidates": 2, "accuracy": 0.3}
    plan = planned(n=5_000, silos=5, **given)
    assert plan.parameters["accuracy"] < PHI**2

    def choose(first, plan, **how):
        return select_point([first, *silos[1:]], [SADDLE, np.zeros(5)], plan, **how)

    chosen, tape = record(choose, silos[0], plan, seed=0)
    assert not [*broken_promises(tape)]
    assert (chosen.index, len(chosen.ledgers)) == (1, 5)
    for ledger in chosen.ledgers:
        assert ledger.epsilon(1e-6) <= plan.price(1e-6)
    rows = report.verify(report.read(report.save(tmp_path / "report", chosen)))
    assert [row["holds"] for row in rows] == [True] * 6
    with pytest.raises(ValueError, match="the same records twice"):
        select_point([*silos[:4], silos[0]], [SADDLE], plan)
    with pytest.raises(ValueError, match="plan must be for 4 silos"):
        select_point(silos[:4], [SADDLE], plan)
