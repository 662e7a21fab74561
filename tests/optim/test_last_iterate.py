"""Runs of which the last iterate alone leaves: the steps, attacks on it, doors that are closed."""

import dataclasses
import math

import numpy as np
import pytest
from _built_plans import noise_again, plan_of, query, records

from dpcal import calibrate, optim
from dpcal._ext.sums import grid_step
from dpcal.accountants import delta, epsilon, events
from dpcal.accountants.mechanisms.last_iterate import amplitude
from dpcal.calibrate import Constants
from dpcal.calibrate.descent import Descent
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim.attacks.recording import record
from dpcal.optim.boundary.sealed import LastIterate
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.objectives.linear import as_smooth_as
from dpcal.report import verify
from dpcal.report.saving import document_of

RNG = np.random.default_rng(0)
N, D = 200, 4
X, Y = records(N)
L2 = 0.1
OBJECTIVE = optim.Logistic(X, Y, l2=L2, fit_intercept=False, classes=[False, True])
CONSTANTS = optim.Logistic.constants_for(row_norm=1.0, l2=L2, fit_intercept=False)


GIVEN = {"n": N, "dimension": D, "epsilon": 1.0, "delta": 1e-6}
# Steps are contractions by a half, and gradients are clipped: a normal law with a shift.
HALVING = Descent(steps=4, learning_rate=1.0, smoothness=1.0, l2=0.5, strong_convexity=0.5)
FAR = optim.Squared(np.ones((4, 1)), np.full(4, 1e6), l2=0.5, fit_intercept=False)


def plan_for(**options):
    return calibrate.noisy_gd(CONSTANTS, release="last", **{**GIVEN, "steps": 40, **options})


def sealed(descent, *, n, count=1, noise_multiplier=2.0, max_norm=1.0):
    """A plan of a given noise, for whatever it costs."""
    given = {"count": count, "noise_multiplier": noise_multiplier, "max_norm": max_norm}
    asked = query("last iterate", descent=descent, **given)
    return plan_of(
        asked, n=n, optimizer="noisy_gd", epsilon=50.0, neighboring_relation="replace-special"
    )


# -- the steps


def test_steps_are_the_textbook_algorithm():
    plan = plan_for()
    (one,) = plan.queries
    shorter = LastIterate.planned(one, OBJECTIVE, np.zeros(D), N).max_norm
    noise, eta = Streams(3, plan, OBJECTIVE.digest).noise, one.descent.learning_rate
    w = np.zeros(D)
    for _ in range(40):
        w = w - eta * (OBJECTIVE.clipped_sum(w, np.arange(N), shorter) / N + L2 * w)
        w = w + noise_again(noise, one.noise_multiplier, eta / N, D)
    assert 1 - 1e-5 < shorter < 1
    result = optim.noisy_gd(OBJECTIVE, plan, seed=3)
    # Each step is rounded, and its noise is; no step makes them longer.
    off = 40 * math.sqrt(D) * grid_step(one.max_norm * eta / N)
    np.testing.assert_allclose(result.w, w, rtol=1e-12, atol=off)


def test_gradients_are_clipped_shorter_by_rounding_and_by_a_margin():
    descent = dataclasses.replace(HALVING, radius=2.0)
    (one,) = sealed(descent, n=4).queries
    lost = LastIterate.planned(one, FAR, np.zeros(1), 4).lost
    error = 2.0**-53 * (104 * (2.0 + 1.0) + 4 * 1.0)
    assert lost - 2 * (error + grid_step(1 / 4)) / (1 / 4) == pytest.approx(2.0**-40, rel=0.01)


def test_a_plan_costs_its_target_and_less_noise_than_all_iterates():
    for relation in ("add-or-remove-one", "replace-special", "replace-one"):
        given = {**GIVEN, "steps": 40, "neighboring_relation": relation}
        plan = plan_for(neighboring_relation=relation)
        every = calibrate.noisy_gd(CONSTANTS, **given)
        assert 1 - 1e-5 < plan.price() <= 1.0
        (one,) = plan.queries
        ratio = every.query("gradient").noise_multiplier / one.noise_multiplier
        expected = math.sqrt(40) / amplitude(40, one.descent.contraction)
        assert ratio == pytest.approx(expected, rel=1e-5)
        assert ratio > 3


def test_the_number_of_steps_is_the_best_in_the_bound():
    def bound(steps):
        (one,) = plan_for(steps=steps).queries
        c, eta = one.descent.contraction, one.descent.learning_rate
        variance = D * (one.noise_multiplier * eta / N) ** 2
        left = c ** (2 * one.descent.steps)
        return left * 2 * CONSTANTS.gap / L2 + variance * (1 - left) / (1 - c * c)

    best = plan_for(steps=None).parameters["steps"]
    assert bound(best) <= min(bound(best - 2), bound(best + 2), bound(3 * best))


def test_rows_that_are_too_long_do_not_expand_distances():
    far = X * 10.0 ** RNG.integers(-2, 7, (N, 1))
    descent = Descent(steps=1, learning_rate=2 / 0.45, smoothness=0.25, l2=L2, strong_convexity=L2)
    objective = optim.Logistic(far, Y, l2=L2, fit_intercept=False, classes=[False, True])
    (one,) = sealed(descent, n=N, max_norm=0.3).queries
    step = LastIterate.planned(one, objective, np.zeros(D), N)
    rows, smooth = np.arange(N, dtype=np.intp), as_smooth_as(objective.kernel, 0.25)
    assert np.linalg.norm(smooth.features, axis=1).max() <= 1
    assert as_smooth_as(objective.kernel, 1e14) is objective.kernel
    worst = plain = 0.0
    for _ in range(100):
        w = RNG.standard_normal(D) * 10.0 ** RNG.integers(-4, 2)
        v = w + RNG.standard_normal(D) * 10.0 ** RNG.integers(-6, 2)
        apart = np.linalg.norm(w - v)
        for each in (smooth, objective.kernel):
            same = dataclasses.replace(step, kernel=each)
            moved = same.mean_iterate(objective, w, rows) - same.mean_iterate(objective, v, rows)
            if each is smooth:
                worst = max(worst, np.linalg.norm(moved) / apart)
            else:
                plain = max(plain, np.linalg.norm(moved) / apart)
    assert worst <= descent.contraction * (1 + 1e-9)
    # Without it, they do.
    assert plain > 1


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 2.0**-63, reason="no wider floats here")
def test_rounding_moves_a_step_by_less_than_clipping_is_shortened_for():
    plan = plan_for()
    (one,) = plan.queries
    step = LastIterate.planned(one, OBJECTIVE, np.full(D, 30.0), N)
    signs, table = np.where(Y, 1, -1), X.astype(np.longdouble)
    for _ in range(20):
        w = RNG.standard_normal(D) * 10
        wide = w.astype(np.longdouble)
        slopes = -signs / (1 + np.exp(signs * (table @ wide)))
        longest = step.max_norm / np.sqrt((table * table).sum(axis=1))
        gradient = np.clip(slopes, -longest, longest) @ table / N + L2 * wide
        exact = wide - np.longdouble(one.descent.learning_rate) * gradient
        computed = step.mean_iterate(OBJECTIVE, w, np.arange(N, dtype=np.intp))
        assert np.linalg.norm((computed - exact).astype(float)) < step.lost * step.bound / 2


# -- attacks


def blanked(objective):
    """The neighbour whose first record is blank."""
    table, targets = objective.kernel.features.copy(), objective.kernel.targets.copy()
    table[0] = math.nan
    return type(objective)(table, targets, l2=objective.l2, fit_intercept=False)


def test_an_attack_on_a_quadratic_reaches_the_price_and_not_more():
    runs = 600
    plan = sealed(HALVING, n=4, noise_multiplier=1.0, count=runs)
    oracles = [optim.PrivateOracle(each, plan) for each in (FAR, blanked(FAR))]
    found = [
        [oracle.last_iterate([0.0], "last iterate")[0] for _ in range(runs)] for oracle in oracles
    ]
    first, second = map(np.array, found)
    mu = (first.mean() - second.mean()) / math.sqrt((first.var() + second.var()) / 2)
    # Five errors of mu, each about sqrt(2 / runs) of 1.
    error = 5 * math.sqrt((2 + mu**2 / 2) / runs)
    assert mu == pytest.approx(amplitude(4, 0.5), abs=error)


def law(objective, descent, sigma, max_norm, *, nodes=601, width=9.0):
    """The density of the last iterate in one dimension, by quadrature, and mass at both ends."""
    (one,) = sealed(descent, n=objective.n, max_norm=max_norm, noise_multiplier=sigma).queries
    step = LastIterate.planned(one, objective, np.zeros(1), objective.n)
    deviation, rows = sigma * step.bound, np.arange(objective.n, dtype=np.intp)
    radius = math.inf if descent.radius is None else descent.radius
    reach = min(radius, width * deviation * math.sqrt(descent.steps) + 3.0)
    grid = np.linspace(-reach, reach, nodes)
    weights = np.full(nodes, grid[1] - grid[0])
    weights[[0, -1]] /= 2
    places = np.append(grid, [-radius, radius]) if math.isfinite(radius) else grid
    means = np.array([step.mean_iterate(objective, np.array([w]), rows)[0] for w in places])

    def after(mean):
        z = (grid - mean) / deviation
        density = np.exp(-z * z / 2) / (deviation * math.sqrt(2 * math.pi))
        ends = [
            0.5 * math.erfc((mean + radius) / (deviation * math.sqrt(2))),
            0.5 * math.erfc((radius - mean) / (deviation * math.sqrt(2))),
        ]
        return np.append(density * weights, ends) if math.isfinite(radius) else density * weights

    kernel = np.array([after(mean) for mean in means])
    mass = after(step.mean_iterate(objective, np.zeros(1), rows)[0])
    for _ in range(descent.steps - 1):
        mass = mass @ kernel
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    return mass


BALL = Descent(steps=25, learning_rate=4.0, smoothness=0.25, radius=1.0)
CONVEX = Descent(steps=8, learning_rate=5.0, smoothness=0.25, l2=0.05, strong_convexity=0.05)


@pytest.mark.parametrize(("descent", "sigma", "near"), [(CONVEX, 1.5, 0.3), (BALL, 4.0, 0.2)])
def test_the_exact_law_of_a_last_iterate_is_within_its_price(descent, sigma, near):
    # Logistic losses of two records in one dimension, of which one is blanked.
    table, labels = np.array([[1.0], [1.0]]), [1, 0]
    there = optim.Logistic(table, labels, l2=descent.l2, fit_intercept=False, classes=[0, 1])
    table = np.array([[math.nan], [1.0]])
    gone = optim.Logistic(table, labels, l2=descent.l2, fit_intercept=False, classes=[0, 1])
    laws = [law(each, descent, sigma, 0.4) for each in (there, gone)]
    event = descent.event(noise_multiplier=sigma, max_norm=0.4, n=2)
    found = 0.0
    for at in (0.1, 0.5, 1.0, 2.0):
        priced = delta(event, epsilon=at, neighboring_relation="replace-special")
        for first, second in (laws, laws[::-1]):
            real = np.maximum(first - math.exp(at) * second, 0).sum()
            assert real <= priced * (1 + 1e-6) + 1e-9
            found = max(found, real / priced)
    # The attack comes near: the price is not far above what is true.
    assert found > near
    # All iterates would cost more than the last one is charged.
    every = events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), descent.steps)
    assert epsilon(every, delta=1e-5) > 1.1 * epsilon(event, delta=1e-5)


# -- doors


def test_every_other_way_out_is_closed(tmp_path):
    for given in (
        *({"output": output} for output in ("linear", "random")),
        {"callback": print},
        {"radius": 1.0},
        {"learning_rate": 0.1},
        {"store": tmp_path / "run.db"},
    ):
        (name,) = given
        with pytest.raises(UnsupportedEvent, match=f"^{name} must be left out with a plan"):
            optim.noisy_gd(OBJECTIVE, plan_for(), **given)
    assert not list(tmp_path.iterdir())


def test_nothing_but_the_last_iterate_leaves():
    plan = plan_for()
    assert plan.evaluations == 40 * N
    result = optim.noisy_gd(OBJECTIVE, plan)
    assert result.trace.step.tolist() == [40]
    assert result.trace.norm == pytest.approx([np.linalg.norm(result.w)])
    assert (result.trace.distance == result.trace.norm).all()
    assert (result.complete, result.early) == (True, False)
    (entry,) = result.ledger.entries
    assert (entry.kind, entry.count, entry.descent) == ("last iterate", 1, plan.queries[0].descent)
    result.verify()
    assert result.epsilon(1e-6) == plan.price()
    oracle = optim.PrivateOracle(OBJECTIVE, plan)
    for ask in (oracle.gradient, oracle.norm, oracle.scalar):
        with pytest.raises(ValueError, match="last iterate"):
            ask(np.zeros(D), "last iterate")
    oracle.last_iterate(np.zeros(D), "last iterate")
    with pytest.raises(BudgetExceeded):
        oracle.last_iterate(np.zeros(D), "last iterate")
    tape = record(lambda objective: optim.noisy_gd(objective, plan), OBJECTIVE)
    assert isinstance(tape.failure, UnsupportedEvent)
    assert "cannot be recorded" in str(tape.failure)
    assert not tape.answers


def test_an_oracle_that_hands_out_answers_is_refused():
    class Answers:
        plan = plan_for()
        dimension, ledger, public = D, None, None
        gradient = difference = norm = scalar = remaining = affords = lambda *_: None

    with pytest.raises(UnsupportedEvent, match="takes all steps itself, got a Answers"):
        optim.noisy_gd(Answers(), Answers.plan)


def test_a_run_that_is_broken_off_is_charged_as_a_whole(monkeypatch):
    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LastIterate, "mean_iterate", broken)
    with pytest.raises(KeyboardInterrupt) as caught:
        optim.noisy_gd(OBJECTIVE, plan_for())
    ledger = caught.value.ledger
    assert ledger.epsilon(1e-6) == plan_for().price()


def test_no_record_makes_it_fail():
    table = X.copy()
    table[:6] = np.array([math.nan, math.inf, 1e308, -1e308, 0.0, 1e-320])[:, np.newaxis]
    hard = optim.Logistic(table, Y, l2=L2, fit_intercept=False, classes=[False, True])
    result = optim.noisy_gd(hard, plan_for())
    assert result.complete
    assert np.isfinite(result.w).all()
    targets = np.resize([1e308, -1e308, math.inf, math.nan, 0.0], N)
    plan = sealed(
        Descent(steps=9, learning_rate=1.0, smoothness=1.0, l2=L2, strong_convexity=L2), n=N
    )
    assert optim.noisy_gd(optim.Squared(table, targets, l2=L2, fit_intercept=False), plan).complete


def test_objectives_that_a_plan_is_not_for_are_refused():
    known, asked = optim.Logistic.constants_for(row_norm=1.0, l2=L2), {**GIVEN, "dimension": D + 1}
    with_intercept = optim.Logistic(X, Y, l2=L2, classes=[False, True])
    weaker = optim.Logistic(X, Y, l2=L2 / 2, fit_intercept=False, classes=[False, True])
    convex = "convex losses of this package's linear models"
    line, far = (
        optim.Squared(np.ones((6, 1)), np.zeros(6), fit_intercept=False),
        {"initial": [1e13]},
    )
    for objective, given, sentence in (
        (optim.FromGradients(lambda w, rows: X[rows], n=N, dimension=D), {}, convex),
        (optim.Softmax(X, np.digitize(X[:, 0], [-0.3, 0.3]), l2=L2, classes=[0, 1, 2]), {}, convex),
        (optim.Cauchy(X, X[:, 0], l2=L2), {}, convex),
        (weaker, {"plan": plan_for()}, "descent is for l2="),
        (with_intercept, {"plan": plan_for()}, "descent is for l2="),
        (line, far, "A radius bounds iterates"),  # rounding would take too much
    ):
        descent = Descent(steps=5, learning_rate=1.0, smoothness=1.0, l2=objective.l2)
        with pytest.raises(UnsupportedEvent, match=sentence):
            optim.noisy_gd(objective, **{"plan": sealed(descent, n=objective.n), **given})
    # An intercept is not regularised: no contraction, and the price of all iterates.
    plan = calibrate.noisy_gd(known, **asked, steps=9, release="last", l2=L2)
    assert optim.noisy_gd(with_intercept, plan).complete
    every = calibrate.noisy_gd(known, **asked, steps=9)
    noise = plan.queries[0].noise_multiplier
    assert noise == pytest.approx(every.queries[0].noise_multiplier, rel=1e-6)


def test_what_does_not_go_together_is_refused():
    steps = {"steps": 5, "learning_rate": 1.0, "smoothness": 0.25, "l2": L2}
    for make, sentence in (
        (lambda: Descent(**{**steps, "learning_rate": 6.0}), "learning_rate must be at most 2 / "),
        (lambda: Descent(**steps, strong_convexity=0.2), "strong_convexity must be 0 or l2=0.1"),
        (lambda: dataclasses.replace(plan_for(), public_n=True), "public_n"),
    ):
        with pytest.raises(ValueError, match=sentence):
            make()


def test_a_report_of_such_a_run_is_verified_and_says_so():
    result = optim.noisy_gd(OBJECTIVE, plan_for())
    document = document_of(result)
    assert document["privacy"]["covered"] == "the released parameters, and no other iterate"
    assert "Bok, Su and Altschuler 2024" in document["privacy"]["mechanism"]
    assert all(row["holds"] for row in verify(document))
    # Steps that are not contractions, or fewer of them, are another plan: the claim fails.
    run = document["runs"][0]
    for part in (run["plan"]["queries"], run["ledger"]["entries"]):
        part[0]["descent"]["strong_convexity"] = 0.0
    assert not any(row["holds"] for row in verify(document))


def test_a_huber_loss_in_a_ball_costs_less_than_its_steps():
    objective = optim.Huber(X, X[:, 0], width=0.1, fit_intercept=False)
    known = Constants(lipschitz=0.1, smoothness=1.0, gap=1.0)
    plan = calibrate.noisy_gd(known, **GIVEN, steps=2_000, release="last", radius=1e-2)
    assert np.linalg.norm(optim.noisy_gd(objective, plan).w) <= 1e-2
    single = plan.queries[0].noise_multiplier / amplitude(2_000, 1.0, 2 * 1e-2 / (0.1 / N))
    one = calibrate.noisy_gd(known, **GIVEN, steps=1)
    assert single == pytest.approx(one.queries[0].noise_multiplier, rel=1e-6)
    assert plan.queries[0].noise_multiplier < 0.5 * math.sqrt(2_000) * single
