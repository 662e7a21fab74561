"""What an adversarial review found around the mechanism, and that it is so no more."""

import dataclasses
import inspect
import math
import pickle
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.calibrate import Constants, Plan, Query
from dpcal.errors import BrokenObjective, BudgetExceeded, VacuousSchedule
from dpcal.optim import (
    KAN,
    MLP,
    Cauchy,
    FromGradients,
    Huber,
    Ledger,
    Logistic,
    PrivateOracle,
    Sigmoid,
    Softmax,
    Squared,
    Welsch,
    adaptive_gd,
    check_objective,
    dpsgd,
    kl_spider,
    noisy_gd,
    proximal_point,
    recursive_regularization,
    spiderboost,
)

RNG = np.random.default_rng(0)
N, D = 300, 3
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X[:, 0] > 0
WIDE = np.random.default_rng(5).standard_normal((10_000, 50))
OF_TWO, OF_FOUR = np.arange(len(WIDE)) % 2, np.arange(len(WIDE)) % 4
CONSTANTS = Constants(lipschitz=1.0, smoothness=1.0, strong_convexity=0.1, gap=1.0)


def plan_of(name, **options):
    target = {"n": N, "epsilon": 4.0, "delta": 1e-5}
    if name == "dpsgd":
        return calibrate.dpsgd(batch_size=60, steps=20, **target)
    return getattr(calibrate, name)(CONSTANTS, dimension=D, **target, **options)


RUNS = {
    "dpsgd": (dpsgd, plan_of("dpsgd")),
    "noisy_gd": (noisy_gd, plan_of("noisy_gd", steps=20)),
    "spiderboost": (spiderboost, plan_of("spiderboost", steps=20)),
    "kl_spider": (kl_spider, plan_of("kl_spider", l2=0.1)),
    "adaptive_gd": (adaptive_gd, plan_of("adaptive_gd", steps=20)),
    "proximal_point": (
        proximal_point,
        plan_of("proximal_point", gamma=2.0, kappa=2.0, inner_steps=10),
    ),
    "recursive_regularization": (
        recursive_regularization,
        plan_of(
            "recursive_regularization",
            distance=3.0,
            subsolver="noisy_gd",
            neighboring_relation="replace-one",
        ),
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_record_that_is_not_a_number_away_from_the_start_does_not_stop_a_run(name):
    """Runs with it stopped 40 times of 40, runs without it never."""
    optimizer, plan = RUNS[name]

    def gradients(w, rows):
        table = (X[rows] @ w - Y[rows])[:, np.newaxis] * X[rows]
        if w.any():
            table[rows == 7] = np.nan
        return table

    canary = FromGradients(gradients, n=N, dimension=D, l2=0.1)
    result = optimizer(canary, plan, seed=None)
    assert result.complete
    assert "not finite" not in result.message
    assert "NaN" not in result.message
    result.verify()


# Length of three equal entries whose clip factor is half of the smallest number, and a bit.
WORST = 2.24e183


def test_the_quotient_of_bound_and_norm_is_no_clip_factor():
    """It was once: rounded to the smallest number that there is, it is 1.9 times too large."""
    bound, norm = 1e-140, WORST * math.sqrt(3)
    assert (bound / norm) * norm / bound > 1.9


@pytest.mark.parametrize(
    "family", [Squared, partial(Softmax, classes=[0, 1])], ids=["Squared", "Softmax"]
)
@pytest.mark.parametrize("length", [1e165, 1e175, 1e180, WORST])
def test_no_contribution_exceeds_the_smallest_bound(family, length):
    """Where the clip factor was below the normal range, contributions had 1.93 times the bound."""
    table = np.full((2, 3), length)
    objective = family(table, [1.0, 0.0], fit_intercept=False)
    w = np.zeros(objective.dimension)
    total = objective.clipped_sum(w, np.array([0]), 1e-140)
    # In units of the bound, for squares of so small numbers are zero.
    assert np.linalg.norm(total / 1e-140) <= 1 + 1e-12
    custom = FromGradients(lambda w, rows: table[rows], n=2, dimension=3)
    total = custom.clipped_sum(np.zeros(3), np.array([0]), 1e-140)
    assert np.linalg.norm(total / 1e-140) <= 1 + 1e-12


@pytest.mark.parametrize(
    "make",
    [
        lambda: Logistic([["secret", 1.0]], [0, 1], classes_from_data=True),
        lambda: Squared([[1.0]], np.array(["secret"])),
        lambda: Softmax([[1.0], [2.0]], ["secret", None], classes_from_data=True),
        lambda: FromGradients(lambda w, rows: ["secret"], n=1, dimension=1).clipped_sum(
            np.zeros(1), np.array([0]), 1.0
        ),
    ],
)
def test_errors_do_not_hold_values_of_records(make):
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert "secret" not in str(caught.value)


def test_a_ledger_cannot_be_exchanged_nor_written_beyond_its_plan():
    plan = plan_of("noisy_gd", steps=3)
    oracle = PrivateOracle(Logistic(X, Y, fit_intercept=False, classes_from_data=True), plan)
    with pytest.raises(AttributeError):
        oracle.ledger = Ledger(N)
    query = plan.query("gradient")
    with pytest.raises(BudgetExceeded, match="may be asked 3 times, 0 are spent, 4 more"):
        oracle.ledger.record(query, 4)
    for change in ({"noise_multiplier": 0.1}, {"name": "other"}, {"max_norm": 2.0}):
        with pytest.raises(BudgetExceeded, match="the plan holds no such query"):
            oracle.ledger.record(dataclasses.replace(query, **change))
    assert oracle.ledger.entries == ()
    oracle.ledger.record(query, 3)
    assert oracle.ledger.event == plan.event


def test_an_adaptive_ledger_is_not_written_beyond_its_budget():
    query = Query(
        name="g",
        kind="gradient",
        sampler="full",
        max_norm=1.0,
        noise_multiplier=2.0,
        count=9,
        budget=2.0,
    )
    plan = Plan(optimizer="x", n=N, queries=(query,), epsilon=1.0, delta=1e-5)
    ledger = Ledger.of(plan)
    ledger.record(query.with_noise(4.0), 2)
    with pytest.raises(BudgetExceeded, match="of the adaptive budget"):
        ledger.record(query.with_noise(2.0))
    assert ledger.count("g") == 2


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [noisy_gd, spiderboost])
@pytest.mark.parametrize("l2", [0.0, 1.0, 30.0, 1e4])
def test_the_regulariser_counts_in_the_step_size(optimizer, l2):
    """With l2 = 1 the loss was 1e298, and the run called itself complete."""
    objective = Squared(X, Y.astype(float), l2=l2, fit_intercept=False)
    plan = plan_of(optimizer.__name__, steps=200)
    start = np.full(D, 5.0)
    result = optimizer(objective, plan, seed=None, initial=start)
    assert result.complete
    assert objective.loss(result.w) < objective.loss(start)
    if l2:
        with pytest.raises(ValueError, match="learning_rate must be below 2 / l2"):
            optimizer(objective, plan, learning_rate=2.1 / l2)


def test_adaptive_descent_spends_what_its_algorithm_leaves():
    """A quarter of the budget and more was left, at the end of runs that it cost all of it."""
    objective, plan = (
        Logistic(X, Y, fit_intercept=False, classes_from_data=True),
        plan_of("adaptive_gd"),
    )
    for _ in range(5):
        result = adaptive_gd(objective, plan)
        assert result.ledger.share(plan.query("norm").budget) > 1 - 1e-9
        assert result.epsilon(plan.delta) == plan.price()


class Shifted(PrivateOracle):
    """Moves the answer of one number, as another draw of its noise would."""

    number, asked = None, 0

    def gradient(self, w, query, *, noise_multiplier=None):
        answer = super().gradient(w, query, noise_multiplier=noise_multiplier)
        self.asked += 1
        return answer + (self.asked == self.number)


@pytest.mark.parametrize("name", ["recursive_regularization", "noisy_gd"])
def test_no_answer_is_paid_for_and_thrown_away(name):
    """The last answer of each round of recursive regularisation moved nothing."""
    optimizer, plan = RUNS[name]
    model = Logistic(X, Y, fit_intercept=False, classes_from_data=True)
    objective = FromGradients(
        lambda w, rows: np.array(
            [model.clipped_sum(w, rows[i : i + 1], 1.0) for i in range(len(rows))]
        ),
        n=N,
        dimension=D,
    )
    first, second = (Shifted(objective, plan, seed=5) for _ in range(2))
    before = optimizer(first, plan)
    second.number = first.asked
    assert first.asked == sum(query.count for query in plan.queries)
    assert np.linalg.norm(optimizer(second, plan).w - before.w) > 1e-6


def test_a_run_that_goes_nowhere_says_so():
    """On few records these spent their budget, returned their start, and said nothing."""
    options = {"dimension": D, "epsilon": 0.05, "delta": 1e-5, "preset": "theory"}
    options |= {"neighboring_relation": "replace-special"}
    with pytest.warns(VacuousSchedule, match="takes no step at n=40 but by chance"):
        plan = calibrate.adaptive_gd(CONSTANTS, n=40, **options)
    objective = Logistic(X[:40], Y[:40], fit_intercept=False, classes_from_data=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ends = [optim.adaptive_gd(objective, plan) for _ in range(20)]
    still = [end for end in ends if not end.w.any() and end.ledger.answers]
    assert len([each for each in said if each.category is VacuousSchedule]) >= len(still)


@pytest.mark.parametrize(
    "objective",
    [
        Logistic(X, Y, l2=0.1, classes_from_data=True),
        Huber(X, X[:, 0], width=0.7),
        Cauchy(X, X[:, 1], width=0.3, fit_intercept=False),
        Softmax(X, RNG.integers(4, size=N), classes_from_data=True),
    ],
    ids=lambda each: type(each).__name__,
)
def test_objectives_and_their_kernels_pickle(objective):
    again = pickle.loads(pickle.dumps(objective))
    w = RNG.standard_normal(objective.dimension)
    rows = np.arange(0, N, 3)
    assert (again.clipped_sum(w, rows, 0.2) == objective.clipped_sum(w, rows, 0.2)).all()
    assert again.digest() == objective.digest()
    assert again.loss(w) == objective.loss(w)


def test_blocks_of_wide_gradients_are_sized_by_bytes():
    asked = []

    def gradients(w, rows):
        asked.append(len(rows))
        return np.zeros((len(rows), 100_000))

    wide = FromGradients(gradients, n=100, dimension=100_000)
    wide.clipped_sum(np.zeros(100_000), np.arange(100), 1.0)
    assert max(asked) * 8 * 100_000 <= 1 << 24
    assert sum(asked) == 100


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda table: Softmax(table, OF_FOUR, classes_from_data=True), 1.2),
        (lambda table: Logistic(table, OF_TWO, classes_from_data=True), 1.2),
        (lambda table: Huber(table, table[:, 0]), 1.2),
        (
            lambda table: Huber(table, table[:, 0], fit_intercept=False).embedded(
                np.eye(table.shape[1])[::2]
            ),
            2.0,
        ),
    ],
    ids=["softmax", "logistic", "huber", "embedded"],
)
def test_objectives_take_little_room_beside_the_records(make, most):
    """Multinomial models took 2.1 times the records, embedded ones 3.6 times."""
    tracemalloc.start()
    made = make(WIDE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.n == len(WIDE)
    assert peak <= most * WIDE.nbytes


# -- constants


LOUD = 57.0
LENGTHS = np.ones(N)
LENGTHS[11] = LOUD


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["noisy_gd", "spiderboost", "tree_spider", "kl_spider", "proximal_point", "adaptive_gd"],
)
def test_constants_that_were_read_off_records_make_no_plan(name):
    """The plan's max_norm was the longest record's norm, which told whether it was there."""
    measured = Huber(X * LENGTHS[:, np.newaxis], X[:, 0], l2=0.1, fit_intercept=False).constants
    assert measured.measured
    measured = dataclasses.replace(measured, gap=1.0)
    given = {"n": N, "dimension": D, "epsilon": 4.0, "delta": 1e-5}
    if name == "tree_spider":
        given["neighboring_relation"] = "replace-one"
    if name in ("kl_spider", "proximal_point"):
        given |= {"gamma": 2.0, "kappa": 2.0}
    build = getattr(calibrate, name)
    with pytest.raises(ValueError, match="constants must be known without a look at the records"):
        build(measured, **given)
    assert build(measured, public=True, **given).queries[0].max_norm > LOUD / 2
    assert "public" in inspect.signature(build).parameters


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("family", "targets", "known"),
    [
        (Logistic, Y, {}),
        (Sigmoid, Y, {}),
        (Softmax, RNG.integers(4, size=N), {"classes": 4}),
        (Squared, 3 * X[:, 1], {"target_bound": 3.0}),
        (Huber, 3 * X[:, 1], {"target_bound": 3.0}),
        (Cauchy, 3 * X[:, 1], {"target_bound": 3.0}),
        (Welsch, 3 * X[:, 1], {"target_bound": 3.0}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_constants_from_a_declared_norm_hold_for_all_records_within_it(
    family, targets, known, fit_intercept
):
    labelled = {"classes_from_data": True} if family in (Logistic, Sigmoid, Softmax) else {}
    objective = family(X, targets, fit_intercept=fit_intercept, **labelled)
    public = family.constants_for(row_norm=1.0, fit_intercept=fit_intercept, **known)
    measured = objective.constants
    assert not public.measured
    slack = 1 + 1e-9
    assert measured.lipschitz <= public.lipschitz * slack
    assert public.lipschitz <= measured.lipschitz * slack or not np.isfinite(public.lipschitz)
    assert measured.smoothness <= public.smoothness * slack <= measured.smoothness * slack**3
    origin = objective.loss(np.zeros(objective.dimension))
    assert origin <= public.gap * slack
    with pytest.raises(ValueError, match="row_norm must be a finite number > 0"):
        family.constants_for(row_norm=0.0, **known)


def test_a_plan_needs_nothing_but_a_declared_norm():
    constants = Logistic.constants_for(row_norm=1.0, l2=0.1, fit_intercept=False)
    assert constants.strong_convexity == 0.1
    plan = calibrate.kl_spider(constants, n=20_000, dimension=D, epsilon=1.0, delta=1e-6, l2=0.1)
    assert plan.queries[0].max_norm == 1.0


# -- objectives of users


class Averaging(Logistic):
    """The mistake of clipping an average."""

    def clipped_sum(self, w, rows, max_norm):
        total = super().clipped_sum(w, rows, np.inf)
        return total * min(1.0, max_norm / np.linalg.norm(total / max(1, len(rows))))


class Peeking(Logistic):
    """A regulariser that reads the records."""

    def regularizer_gradient(self, w):
        return self.kernel.features.mean(axis=0)


class Remembering(Logistic):
    """Contributions that depend on the call before."""

    before = 0.0

    def clipped_sum(self, w, rows, max_norm):
        self.before += 1e-3
        return super().clipped_sum(w, rows, max_norm) + self.before


@pytest.mark.parametrize("family", [Averaging, Peeking, Remembering])
def test_objectives_that_break_the_claim_are_found(family):
    with pytest.raises(BrokenObjective):
        check_objective(family(X, Y, classes_from_data=True))
    # Nobody needs to ask: a run does it, and is told to leave it.
    plan = plan_of("dpsgd")
    with pytest.raises(BrokenObjective, match="checked to True"):
        dpsgd(family(X, Y, fit_intercept=False, classes_from_data=True), plan)
    told = family(X, Y, fit_intercept=False, classes_from_data=True)
    told.checked = True
    assert dpsgd(told, plan).complete


def centred(rows_of):
    """Return the mistake of a function that normalises the rows it is asked for."""

    def gradients(w, rows):
        table = rows_of[rows] * (1 + rows_of[rows] @ w)[:, np.newaxis]
        return table - table.mean(axis=0)

    return FromGradients(gradients, n=len(rows_of), dimension=rows_of.shape[1])


def test_functions_that_mix_records_are_refused_by_every_run():
    with pytest.raises(BrokenObjective, match="on most of 5 groups of 3 random rows they are not"):
        noisy_gd(centred(X), plan_of("noisy_gd", steps=3))


def test_no_single_record_decides_whether_an_objective_is_refused():
    """For a record with gradients that differ with each call, a run is neither refused nor told."""
    rng, called = np.random.default_rng(0), []

    def gradients(w, rows, odd):
        called.append(len(rows))
        table = X[rows] * (1 + X[rows] @ w)[:, np.newaxis]
        table[rows == odd] *= rng.uniform(1e9, 1e10)
        return table

    looked_at = np.random.default_rng(1).permutation(N)[:15]
    for odd in (int(looked_at[0]), int(looked_at[7])):
        objective = FromGradients(partial(gradients, odd=odd), n=N, dimension=D)
        assert not objective.checked
        dpsgd(objective, plan_of("dpsgd"))
        assert objective.checked
    # It is cheap, and done once.
    called.clear()
    dpsgd(objective, plan_of("dpsgd"))
    assert len(called) == 20


@pytest.mark.slow
def test_objectives_that_keep_it_pass():
    for objective in (
        Logistic(X, Y, l2=0.3, classes_from_data=True),
        Squared(X, X[:, 1]),
        Softmax(X, RNG.integers(4, size=N), classes_from_data=True),
        MLP(X, Y, width=4, classes_from_data=True),
        KAN(X, Y, width=4, classes_from_data=True),
        FromGradients(lambda w, rows: X[rows] * (X[rows] @ w)[:, np.newaxis], n=N, dimension=D),
    ):
        check_objective(objective)
