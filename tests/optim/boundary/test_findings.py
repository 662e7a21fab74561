"""What an adversarial review found around the mechanism, and that it is so no more."""

import dataclasses
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from _built_plans import theory_of
from _stored_runs import SAMPLED, D, N, X, Y, gaussian

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.errors import BrokenObjective, VacuousSchedule

CONSTANTS = Constants(lipschitz=1.0, smoothness=1.0, strong_convexity=0.1, gap=1.0)
TARGET = {"n": N, "dimension": D, "epsilon": 4.0, "delta": 1e-5}
FOUR = np.arange(N) % 4
TWO = {"classes": [0, 1]}


def test_errors_do_not_hold_values_of_records():
    told = optim.FromGradients(lambda w, rows: ["secret"], n=1, dimension=1)
    for make in (
        lambda: optim.Logistic([["secret", 1.0]], [0, 1], **TWO),
        lambda: optim.Squared([[1.0]], np.array(["secret"])),
        lambda: optim.Softmax([[1.0], [2.0]], ["secret", None], classes_from_data=True),
        lambda: told.clipped_sum(np.zeros(1), np.array([0]), 1.0),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            make()
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["noisy_gd", "spiderboost"])
def test_the_regulariser_counts_in_the_step_size(name):
    """With l2 = 1 the loss was 1e298, and the run called itself complete."""
    optimizer, start = getattr(optim, name), np.full(D, 5.0)
    plan = getattr(calibrate, name)(CONSTANTS, steps=200, **TARGET)
    for l2 in (0.0, 1.0, 1e4):
        objective = optim.Squared(X, Y.astype(float), l2=l2, fit_intercept=False)
        result = optimizer(objective, plan, initial=start)
        assert result.complete
        assert objective.loss(result.w) < objective.loss(start)
        if l2:
            with pytest.raises(ValueError, match="learning_rate must be below 2 / l2"):
                optimizer(objective, plan, learning_rate=2.1 / l2)


def test_a_run_that_goes_nowhere_says_so():
    """On few records it spent its budget, returned its start, and said nothing."""
    given = {**TARGET, "n": 40, "epsilon": 0.05, "gamma": 1.0}
    with pytest.warns(VacuousSchedule, match="takes no step at n=40 but by chance"):
        theory_of("adaptive_gd", CONSTANTS, neighboring_relation="replace-special", **given)


class Shifted(optim.PrivateOracle):
    """Moves the answer of one number, as another draw of its noise would."""

    number, asked = None, 0

    def gradient(self, w, query, *, noise_multiplier=None):
        answer = super().gradient(w, query, noise_multiplier=noise_multiplier)
        self.asked += 1
        return answer + (self.asked == self.number)


def test_no_answer_is_paid_for_and_thrown_away():
    """The last answer of each round of recursive regularisation moved nothing."""
    given = {"distance": 3.0, "subsolver": "noisy_gd", "neighboring_relation": "replace-one"}
    plan = calibrate.recursive_regularization(CONSTANTS, **given, **TARGET)
    slopes = optim.FromGradients(lambda w, rows: X[rows] * (X[rows] @ w)[:, None], n=N, dimension=D)
    first, second = (Shifted(slopes, plan, seed=5) for _ in range(2))
    before = optim.recursive_regularization(first, plan).w
    second.number = first.asked
    assert first.asked == sum(query.count for query in plan.queries)
    assert np.linalg.norm(optim.recursive_regularization(second, plan).w - before) > 1e-6


def test_objectives_and_their_kernels_pickle():
    rows = np.arange(0, N, 3)
    for objective in (
        optim.Huber(X, X[:, 0], width=0.7),
        optim.Cauchy(X, X[:, 1], width=0.3, fit_intercept=False),
        optim.Softmax(X, FOUR, classes=range(4)),
    ):
        again = pickle.loads(pickle.dumps(objective))
        w = np.linspace(-1, 1, objective.dimension)
        assert (again.clipped_sum(w, rows, 0.2) == objective.clipped_sum(w, rows, 0.2)).all()
        assert again.digest() == objective.digest()


def test_blocks_of_wide_gradients_are_sized_by_bytes():
    asked = []

    def gradients(w, rows):
        asked.append(len(rows))
        return np.zeros((len(rows), 100_000))

    wide = optim.FromGradients(gradients, n=100, dimension=100_000)
    wide.clipped_sum(np.zeros(100_000), np.arange(100), 1.0)
    assert max(asked) * 8 * 100_000 <= 1 << 24
    assert sum(asked) == 100


def test_objectives_take_little_room_beside_the_records():
    """Multinomial models took 2.1 times the records, embedded ones 3.6 times."""
    wide = np.random.default_rng(5).standard_normal((10_000, 50))
    labels = np.arange(len(wide)) % 2
    for make, most in (
        (lambda: optim.Softmax(wide, 2 * labels, classes=range(4)), 1.25),
        (lambda: optim.Logistic(wide, labels, **TWO), 1.25),
        (lambda: optim.Huber(wide, wide[:, 0]), 1.2),
        (lambda: optim.Huber(wide, wide[:, 0], fit_intercept=False).embedded(np.eye(50)[::2]), 2.0),
    ):
        tracemalloc.start()
        made = make()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert made.n == len(wide)
        assert peak <= most * wide.nbytes


# -- constants


def test_constants_that_were_read_off_records_make_no_plan():
    """The plan's max_norm was the longest record's norm, which told whether it was there."""
    lengths = np.where(np.arange(N) == 11, 57.0, 1.0)[:, np.newaxis]
    measured = optim.Huber(X * lengths, X[:, 0], l2=0.1, fit_intercept=False).constants
    assert measured.measured
    measured, kl = dataclasses.replace(measured, gap=1.0), {"gamma": 2.0, "kappa": 2.0}
    for build, more in (
        (calibrate.noisy_gd, {}),
        (calibrate.spiderboost, {}),
        (calibrate.tree_spider, {"neighboring_relation": "replace-one"}),
        (calibrate.kl_spider, kl),
        (calibrate.proximal_point, kl),
        (calibrate.adaptive_gd, {}),
    ):
        with pytest.raises(ValueError, match="must be known without a look at the records"):
            build(measured, **TARGET, **more)
        assert build(measured, public=True, **TARGET, **more).queries[0].max_norm > 57 / 2


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constants_from_a_declared_norm_hold_for_all_records_within_it(fit_intercept):
    bounded = {"target_bound": 3.0}
    slack = 1 + 1e-9
    for family, targets, known in (
        (partial(optim.Logistic, **TWO), Y, {}),
        (partial(optim.Sigmoid, **TWO), Y, {}),
        (partial(optim.Softmax, classes=range(4)), FOUR, {"classes": 4}),
        *(
            (each, 3 * X[:, 1], bounded)
            for each in (optim.Squared, optim.Huber, optim.Cauchy, optim.Welsch)
        ),
    ):
        objective = family(X, targets, fit_intercept=fit_intercept)
        public = type(objective).constants_for(row_norm=1.0, fit_intercept=fit_intercept, **known)
        measured = objective.constants
        assert not public.measured
        assert measured.lipschitz <= public.lipschitz * slack
        assert public.lipschitz <= measured.lipschitz * slack or public.lipschitz == np.inf
        assert measured.smoothness <= public.smoothness * slack <= measured.smoothness * slack**3
        assert objective.loss(np.zeros(objective.dimension)) <= public.gap * slack
    constants = optim.Logistic.constants_for(row_norm=1.0, l2=0.1, fit_intercept=False)
    assert constants.strong_convexity == 0.1


# -- objectives of users


class Averaging(optim.Logistic):
    """The mistake of clipping an average."""

    def contributions(self, rows, *at):
        total = super().contributions(rows, *at).clipped(np.inf)
        return np.tile(total, (len(rows), 1))


class Remembering(optim.Logistic):
    """Contributions that depend on the call before."""

    before = 0.0

    def contributions(self, rows, *at):
        self.before += 1e-3
        ask = super().contributions
        found = [ask(rows[i : i + 1], *at).clipped(np.inf) for i in range(len(rows))]
        return np.array(found) + self.before


def test_what_no_class_may_override_is_told_when_it_is_written():
    for name, told in (
        ("regularizer_gradient", "a regulariser is data"),
        ("clipped_sum", "override record_gradients or contributions"),
        ("clipped_loss_sum", "override record_losses"),
    ):
        with pytest.raises(TypeError, match=f"Peeking.{name} must not be overridden: .*{told}"):
            type("Peeking", (optim.Logistic,), {name: lambda self, *given: 0.0})
    with pytest.raises(TypeError, match=r"Peeking\.l2 must be a number"):
        type("Peeking", (optim.Logistic,), {"l2": property(lambda self: 1.0)})


@pytest.mark.parametrize("family", [Averaging, Remembering])
def test_objectives_that_break_the_claim_are_found(family):
    with pytest.raises(BrokenObjective):
        optim.check_objective(family(X, Y, **TWO))
    # Nobody needs to ask: a run does it, and is told to leave it.
    told = family(X, Y, fit_intercept=False, **TWO)
    with pytest.raises(BrokenObjective, match="checked to True"):
        optim.dpsgd(told, SAMPLED)
    told.checked = True
    assert optim.dpsgd(told, SAMPLED).complete


def test_functions_that_mix_records_are_refused_by_every_run():
    def centred(w, rows):
        """The mistake of a function that normalises the rows it is asked for."""
        table = X[rows] * (1 + X[rows] @ w)[:, np.newaxis]
        return table - table.mean(axis=0)

    with pytest.raises(BrokenObjective, match="on most of 5 groups of 3 random rows they are not"):
        optim.noisy_gd(optim.FromGradients(centred, n=N, dimension=D), gaussian(count=3))


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
        objective = optim.FromGradients(partial(gradients, odd=odd), n=N, dimension=D)
        assert not objective.checked
        optim.dpsgd(objective, SAMPLED)
        assert objective.checked
    # It is cheap, and done once.
    called.clear()
    optim.dpsgd(objective, SAMPLED)
    assert len(called) == SAMPLED.queries[0].count
