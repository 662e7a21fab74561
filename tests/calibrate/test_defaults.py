"""Settings that nobody chose: near the best in hindsight, and probabilities that are true."""

import dataclasses
import warnings

import numpy as np
import pytest

import dpcal
from dpcal import calibrate, optim
from dpcal.calibrate.defaults import Defaults, full_steps
from dpcal.estimators import LogisticRegression
from dpcal.optim.first_order.dpsgd import default_steps, regret_rate

TARGET = {"epsilon": 1.0, "delta": 1e-6, "neighboring_relation": "replace-special"}


# Columns in [-4, 4]: far from the ends mostly, anywhere, and at the ends.
DRAWN = {
    "tails": lambda rng, size: np.clip(rng.standard_normal(size), -4, 4),
    "filled": lambda rng, size: rng.uniform(-4, 4, size),
    "ends": lambda rng, size: rng.choice([-4.0, 4.0], size),
}


def problem(n=10_000, d=12, prior=-3.2, seed=0, columns="tails"):
    """Records and labels of a logistic model, of which few are of the second class."""
    rng = np.random.default_rng(seed)
    X = DRAWN[columns](rng, (n, d))
    w = rng.standard_normal(d)
    w *= 1.3 / np.linalg.norm(w) / X.std()
    return X, rng.random(n) < 1 / (1 + np.exp(-(X @ w + prior)))


def test_settings_follow_from_what_is_given():
    sizes = {"n": 20_000, "dimension": 11, "row_norm": 3.3, "release": 4.22}
    tuned = Defaults.of("logistic", **sizes, passes=60.0)
    assert (tuned.steps, tuned.batch_size, tuned.max_norm) == (1000, 1200, 3.3)
    # Where nothing is given, steps are on all records, unless these are very many.
    every = Defaults.of("logistic", **sizes)
    asked = {name: sizes[name] for name in ("n", "dimension", "release")}
    assert (every.steps, every.batch_size) == (full_steps("logistic", **asked), 20_000)
    many = Defaults.of("logistic", **{**sizes, "n": 10**7})
    assert (many.steps, many.batch_size) == (1000, 600_000)
    assert Defaults.of("logistic", **sizes, steps=100).batch_size == 12_000
    assert Defaults.of("logistic", **sizes, batch_size=1000).steps == 1200
    full = Defaults.of("logistic", **sizes, steps=60, batch_size=20_000)
    assert (full.steps, full.batch_size) == (60, 20_000)
    # Where noise drowns all, the clip is smaller, and the step too.
    few = Defaults.of("logistic", **{**sizes, "n": 500}, passes=60.0)
    assert few.clip == pytest.approx((0.006 * 500 / (4.22 * 11)) ** 0.2)
    assert few.learning_rate(4.0) < tuned.learning_rate(4.0)
    # Without noise and samples, smoothness alone limits the step.
    assert full.learning_rate(1e-9) == pytest.approx(16 / 3.3**2)
    # Rows of twice the norm give the same scores, at half the parameters.
    wide = Defaults.of("logistic", **{**sizes, "row_norm": 6.6})
    assert wide.max_norm == 2 * every.max_norm
    assert wide.learning_rate(3.0) == pytest.approx(every.learning_rate(3.0) / 4)
    with pytest.raises(ValueError, match="loss must be"):
        Defaults.of("hinge", **sizes)


def test_steps_on_all_records_are_as_many_as_noise_and_smoothness_allow():
    """There the longest smooth step is the step that noise allows; more change no distance."""
    sizes = {"n": 20_000, "dimension": 8, "release": 4.22}
    steps = full_steps("logistic", **sizes)
    assert 120 < steps < 1000

    def rate(steps):
        full = {**sizes, "row_norm": 1.0, "batch_size": 20_000, "steps": steps}
        tuned = Defaults.of("logistic", **full)
        return tuned.learning_rate(4.22 * steps**0.5)

    assert rate(steps) == pytest.approx(16, rel=0.01)
    assert rate(steps // 2) == rate(steps // 3) == 16
    assert 2 * rate(2 * steps) == pytest.approx(16, rel=0.01)
    assert full_steps("logistic", **{**sizes, "n": 500}) == 120
    assert full_steps("logistic", **{**sizes, "release": 0.1}) == 1000
    # Where reading records takes long, no more than that many entries are read.
    assert full_steps("logistic", **{**sizes, "n": 10**7, "dimension": 100}) == 120


def test_a_clip_is_longer_than_typical_rows_where_noise_is_small_and_rows_may_be():
    sizes = {"n": 20_000, "dimension": 5, "row_norm": 2.0}
    assert Defaults.of("logistic", release=1.19, **sizes).clip == 1
    assert Defaults.of("logistic", release=1.19, bound=2.2, **sizes).clip == pytest.approx(1.1)
    assert Defaults.of("logistic", release=1.19, bound=9.0, **sizes).clip == 1.2
    loud = Defaults.of("logistic", release=8.06, bound=9.0, **sizes).clip
    assert loud**2 - 1 == pytest.approx(0.002 * 20_000 / (8.06**2 * 5))
    assert Defaults.of("squared", release=1.19, bound=9.0, **sizes).clip == 1


def test_a_run_that_nobody_tuned_is_near_the_minimum_where_the_optimum_is_far():
    """Rows of norm 1, |w*| = 8.7: the rate of a regret bound leaves an excess of .06."""
    n, rng = 16_000, np.random.default_rng(16)
    X = rng.standard_normal((n, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.standard_normal(8)
    w *= 8.7 / np.linalg.norm(w)
    y = rng.random(n) < 1 / (1 + np.exp(-X @ w))
    objective = optim.Logistic(X, y, fit_intercept=False, classes=[False, True])
    target = {**TARGET, "neighboring_relation": "replace-one"}
    plan = calibrate.dpsgd(n=n, batch_size=n // 25, epochs=20, **target)
    fresh = np.random.default_rng(1).standard_normal((40_000, 8))
    fresh /= np.linalg.norm(fresh, axis=1, keepdims=True)
    p = 1 / (1 + np.exp(-fresh @ w))

    def loss(v):
        """Return the mean loss on records that nobody saw."""
        return np.mean(np.logaddexp(0, fresh @ v) - p * (fresh @ v))

    ends = [optim.dpsgd(objective, plan, seed=seed).w for seed in range(2)]
    excess = np.mean([loss(end) for end in ends]) - loss(w)
    # The minimiser of the records, which is not private, has 2.5e-4 on average.
    assert excess < 7e-4
    rate = regret_rate(dimension=8, query=plan.query("gradient"), n=n)
    old = optim.dpsgd(objective, plan, seed=9, learning_rate=rate, output="tail").w
    assert loss(old) - loss(w) > 20 * excess


def test_a_default_is_the_same_about_an_oracle_and_follows_weights_and_penalties():
    X, y = problem(n=300, d=3)
    weights = {False: 1.0, True: 4.0}
    plain = optim.Logistic(X, y, classes=[False, True])
    plan = calibrate.dpsgd(n=300, batch_size=30, steps=9, epsilon=5.0, delta=1e-4)
    query = plan.query("gradient")
    rate, reach = default_steps(plain, query=query, n=300)
    assert default_steps(optim.PrivateOracle(plain, plan), query=query, n=300) == (rate, reach)
    # Losses four times as steep, with clips four times as large, are the same problem.
    weighted = optim.Logistic(X, y, class_weights=weights)
    wider = dataclasses.replace(query, max_norm=4.0)
    assert default_steps(weighted, query=wider, n=300) == pytest.approx((rate / 4, reach))
    pulled = optim.Logistic(X, y, classes=[False, True], l2=3.0)
    shorter = rate / (1 + 3 * rate)
    assert default_steps(pulled, query=query, n=300) == pytest.approx((shorter, reach))
    near, within = default_steps(plain, query=query, n=300, radius=1e-3)
    assert near < rate / 100
    assert within == 5e-4
    # Of losses that are not known, the regret bound's.
    other = optim.Cauchy(X, X[:, 0])
    regret = regret_rate(dimension=4, query=query, n=300)
    assert default_steps(other, query=query, n=300) == (regret, np.inf)


@pytest.mark.slow
def test_training_is_near_the_best_in_hindsight():
    """Of 12 settings; the rate of the regret bound at a clip of 1 is ten times as far."""
    X, y = problem(n=6000, d=8, prior=-2.5)
    objective = optim.Logistic(X, y, classes=[False, True])
    n, d = objective.n, objective.dimension
    least = objective.loss(objective.minimize())
    norm = float(np.sqrt((X**2).sum(axis=1).mean() + 1))

    def excess(plan, seeds=range(6), **how):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = [optim.dpsgd(objective, plan, seed=seed, **how) for seed in seeds]
        return np.mean([objective.loss(run.w) - least for run in runs])

    best = np.inf
    for clip in (1.0, 0.5, 0.25):
        plan = calibrate.dpsgd(n=n, batch_size=n // 16, epochs=20, max_norm=clip * norm, **TARGET)
        for rate in 4 / norm**2 * 4.0 ** np.arange(-3, 1):
            best = min(best, excess(plan, seeds=(7, 8, 9), learning_rate=rate, output="linear"))
    release = dpcal.noise_multiplier(dpcal.events.GaussianDpEvent, **TARGET)
    tuned = Defaults.of("logistic", n=n, dimension=d, row_norm=norm, release=release)
    assert tuned.batch_size == n
    plan = calibrate.dpsgd(n=n, batch_size=n, steps=tuned.steps, max_norm=tuned.max_norm, **TARGET)
    rate = tuned.learning_rate(plan.query("gradient").noise_multiplier)
    ours = excess(plan, learning_rate=rate, output="linear")
    assert ours < 2.5 * best
    before = calibrate.dpsgd(n=n, batch_size=int(3 * n**0.5), epochs=20, **TARGET)
    far = regret_rate(dimension=d, query=before.query("gradient"), n=n)
    assert excess(before, learning_rate=far, output="tail") > 8 * ours


@pytest.mark.slow
@pytest.mark.parametrize("columns", DRAWN)
def test_probabilities_of_a_rare_class_are_true(columns):
    """A clip far below the rows' norm had said a quarter of the prevalence, or twice as much."""
    X, y = problem(d=20, columns=columns)
    model = LogisticRegression(classes=[False, True], bounds=(-4, 4), epsilon=1.0, delta=1e-6)
    said = model.fit(X, y).predict_proba(X)[:, 1]
    assert 0.05 < y.mean() < 0.12
    assert 0.8 < said.mean() / y.mean() < 1.25
    # Of those that are told one in five or more, about as many are of the class.
    likely = said > 0.2
    assert 0.75 < said[likely].mean() / y[likely].mean() < 1.35


def test_the_mean_of_iterates_has_growing_weights():
    X, y = problem(n=300, d=3, prior=0.0)
    plan = calibrate.dpsgd(n=300, batch_size=300, steps=9, epsilon=5.0, delta=1e-4)
    objective, seen = optim.Logistic(X, y, classes=[False, True]), []
    how = {"output": "linear", "callback": lambda now: seen.append(now.w.copy())}
    kept = optim.dpsgd(objective, plan, seed=3, **how)
    weights = np.arange(1, 10) / 45
    assert kept.w == pytest.approx(weights @ np.array(seen[-9:]), rel=1e-12)
