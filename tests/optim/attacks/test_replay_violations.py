"""Each kind of violation is planted, and found by its name."""

import dataclasses
import math
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from _built_plans import rounding
from _recording import record
from contracts._runs import CONSTANTS

from dpcal import calibrate
from dpcal._ext.sums import grid_step
from dpcal.estimators import LogisticRegression
from dpcal.optim import FromGradients, Huber, Logistic, PrivateOracle, attacks, dpsgd, jl_glm
from dpcal.optim.attacks.promises import broken_promises
from dpcal.optim.boundary.batches import Batches
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.ledger import Admits
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.first_order.jl_glm import embedding
from dpcal.optim.objectives.contributions import Asked, trusted

N, D = 200, 3
RNG = np.random.default_rng(1)
X = RNG.standard_normal((N, D))
Y = (X[:, 0] > 0).astype(int)
SAMPLED = calibrate.dpsgd(n=N, batch_size=80, steps=30, epsilon=2.0, delta=1e-4)
LONG = calibrate.dpsgd(n=N, batch_size=80, steps=300, epsilon=2.0, delta=1e-4)
WHOLE = calibrate.dpsgd(n=N, batch_size=N, steps=12, epsilon=2.0, delta=1e-4)


def honest(table, plan=SAMPLED, **options):
    options = {"learning_rate": 0.5, **options}
    return dpsgd(Logistic(*table, classes=[0, 1]), plan, **options)


def found(run, **options):
    """What replays on all neighbours find, together."""
    replays = attacks.replay_table(run, X, Y, seed=2, trials=2, **options)
    return frozenset().union(*(each.violations for each in replays))


def test_an_honest_run_is_not_accused():
    assert found(honest) == set()


def test_one_batch_that_has_its_expected_size_is_no_evidence():
    once = calibrate.dpsgd(n=N, batch_size=80, steps=1, epsilon=2.0, delta=1e-4)
    sizes = set()
    for seed in range(40):
        _, tape = record(dpsgd, Logistic(X, Y, classes=[0, 1]), once, learning_rate=0.5, seed=seed)
        assert not list(broken_promises(tape, price=False))
        sizes.update(len(answer.rows) for answer in tape.answers)
    assert 80 in sizes


# -- what a user's objective does


def summed(table, sums):
    """Return an objective with these gradients, whose sums are somebody's own, and trusted."""
    made = trusted(type("Summed", (FromGradients,), {}))
    objective = made(lambda w, rows: table[rows], n=len(table), dimension=table.shape[1])
    objective.checked = True

    def handed(rows, w):
        asked = lambda bound: sums(table[rows], bound)  # noqa: E731
        whole = lambda bound: np.rint(asked(bound) / grid_step(bound)).astype(np.int64)  # noqa: E731
        return Asked(table.shape[1], asked, whole)

    objective.contributions = handed
    return objective


def averages_clipped(table, max_norm):
    """Clips the average of a batch, not its records: one may move it by the whole bound."""
    mean = table.mean(axis=0)
    return len(table) * mean * min(1.0, max_norm / max(float(np.linalg.norm(mean)), 1e-300))


def unclipped(table, max_norm):
    """Sums whole gradients, and says that they are clipped."""
    return table.sum(axis=0)


def with_sums(sums):
    return lambda table: dpsgd(summed(table[0], sums), WHOLE, learning_rate=0.1)


def regularises_by_records(table):
    strength = abs(float(table[0].mean()))
    objective = Logistic(*table, l2=strength, fit_intercept=False, classes=[0, 1])
    return dpsgd(objective, WHOLE, learning_rate=0.1)


def centres_by_the_mean(table):
    return honest((table[0] - table[0].mean(axis=0), table[1]))


def remembers(table):
    """Keeps the longest record it has seen, and scales others by it."""
    longest = [1.0]

    def gradients(w, rows):
        longest[0] = max(longest[0], float(np.abs(table[0][rows]).max(initial=0.0)))
        return table[0][rows] / longest[0]

    objective = FromGradients(gradients, n=N, dimension=D)
    objective.checked = True
    return dpsgd(PrivateOracle(objective, SAMPLED), SAMPLED, learning_rate=0.1)


# -- what an optimizer does


def steps_until_it_fits(table):
    objective = Logistic(*table, classes=[0, 1])
    oracle, w = PrivateOracle(objective, WHOLE), np.zeros(D + 1)
    while oracle.remaining("gradient") and np.linalg.norm(objective.gradient(w)) > 1:
        w = w - 0.5 * oracle.gradient(w, "gradient")
    return w


def chooses_its_rate(table):
    return honest(table, WHOLE, learning_rate=1 / np.abs(table[0]).max())


def returns_the_best(table):
    objective, path = Logistic(*table, classes=[0, 1]), []
    dpsgd(objective, WHOLE, learning_rate=0.5, callback=lambda p: path.append(p.w))
    return min(path, key=objective.loss)


def tells_the_mean(table):
    return {"w": honest(table).w, "mean": table[0].mean()}


def refusing(wrong):
    def run(table):
        if wrong(*table):
            raise ValueError("a record is wrong.")
        return honest(table)

    return run


def warns_of_large_squares(table):
    if np.abs(table[0][np.isfinite(table[0])]).max() > 1e300:
        warnings.warn("overflow encountered in square", RuntimeWarning, stacklevel=1)
    return honest(table)


def keeps_an_exact_attribute(table):
    model = LogisticRegression(classes=[0, 1], steps=5).fit(*table)
    model.largest_ = np.nanmax(table[0], axis=0)
    return model


def minds_the_order(table):
    return honest(table), table[1][0]


def plans_by_the_longest(table):
    longest = float(np.linalg.norm(table[0], axis=1).max())
    plan = calibrate.dpsgd(n=N, batch_size=80, steps=10, epsilon=2.0, delta=1e-4, max_norm=longest)
    return honest(table, plan)


def claims_half(table):
    return honest(table, dataclasses.replace(SAMPLED, epsilon=1.0))


def runs_twice_on_one_seed(table):
    return [honest(table, WHOLE, seed=5).w, honest(table, WHOLE, seed=5).w]


# -- what an oracle does


class Long(PrivateOracle):
    """Clips to twice the bound that its noise is for."""

    def _sum(self, query, bound, rows, *at):
        return super()._sum(query, 2 * bound, rows, *at)


class Bare(PrivateOracle):
    """Takes a sum that it adds no noise to, before the one that it does."""

    def _sum(self, *about):
        super()._sum(*about)
        return super()._sum(*about)


class Inner(PrivateOracle):
    """Samples the records that are near the origin."""

    @property
    def _batches(self):
        rows = np.flatnonzero(np.abs(self.objective.kernel.features[:, :D]).max(axis=1) < 2)
        return SimpleNamespace(sample=lambda query: rows.astype(np.intp))


def asked_of(made):
    return lambda table: dpsgd(
        made(Logistic(*table, classes=[0, 1]), SAMPLED), SAMPLED, learning_rate=0.5
    )


def patched(place, name, mistake, plan=SAMPLED):
    def run(table):
        with mock.patch.object(place, name, mistake):
            return honest(table, plan)

    return run


ADD_NOISE = Mechanism.add_noise


def quieter(self, total, query, bound, moved=None):
    less = dataclasses.replace(query, noise_multiplier=query.noise_multiplier / 2)
    ADD_NOISE(self, total, less, bound, moved)


def the_same(self, total, query, bound, moved=None):
    sigma = query.noise_multiplier * (bound / grid_step(bound))
    DiscreteNormals.covering(sigma, bytes(32)).add(total)


LAST = np.random.default_rng(0).standard_normal(D + 1)


def mostly_the_same(self, total, query, bound, moved=None):
    """Noise that is a share of the last noise, and new noise, of the planned size together."""
    sigma, fresh = query.noise_multiplier * (bound / grid_step(bound)), np.zeros_like(total)
    ADD_NOISE(self, fresh, query, bound, moved)
    LAST[:] = 0.8 * LAST + 0.6 * fresh / sigma
    total += np.rint(sigma * LAST).astype(np.int64)


def shuffled(self, query):
    """Batches of one size from a shuffle, priced as Poisson samples."""
    state = self.__dict__.setdefault("shuffle", [])
    if not state:
        order = self._streams.sampling.permutation(N)
        state += [np.sort(order[i : i + 80]).astype(np.intp) for i in (0, 80)]
    return state.pop()


def the_first(self, query):
    size = int(self._streams.sampling.binomial(N, query.sampling_probability))
    return np.arange(size, dtype=np.intp)


def unwritten(self, answer):
    """Write every second answer down."""
    self.skipped = not getattr(self, "skipped", False)
    if not self.skipped:
        self.ledger.record(*answer)


def rolls_its_ledger_back(table):
    """Asks on from an older ledger, as a guard that takes any state."""
    admit, older = Admits._admit, []

    def forgetful(self, answer):
        older.append((list(self.ledger._rows), dict(self.ledger._counts)))
        admit(self, answer)
        if len(older) == 5:
            self.ledger._rows, self.ledger._counts = older[1]

    with mock.patch.object(Admits, "_admit", forgetful):
        return honest(table)


# -- what was found in twelve libraries (Cebere, Erb, Desfontaines, Bellet and Fitzsimons 2026): the
# kinds of mistakes that the examples of their package hold, beside sums that are not clipped
# (SmartNoise's covariance)


def scales_by_the_size(table):
    """Counts the records that are there, for a number that all may see (Opacus)."""
    return honest(table, WHOLE, learning_rate=1 / table[0].any(axis=1).sum())


def infers_the_domain(table):
    """Reads the categories off the records (diffprivlib, dpmm)."""
    levels = len(np.unique(np.round(table[0][:, 0])))
    plan = dataclasses.replace(WHOLE, parameters={**WHOLE.parameters, "levels": levels})
    return honest(table, plan)


def silent(self, total, query, bound, moved=None):
    """A sensitivity that comes out as zero, and so no noise (Synthcity's PrivBayes)."""


def names_another_plan(table):
    """A run of a plan with other noise."""
    return dataclasses.replace(honest(table, LONG), plan=SAMPLED)


def spends_twice(table):
    """Two runs for the price of one (MOSTLY AI)."""
    honest(table)
    return honest(table)


def prices_too_low(table):
    """An accountant whose formula lacks a term, as SmartNoise's odometer; here it errs below."""
    return honest(table, dataclasses.replace(SAMPLED, epsilon=0.9 * SAMPLED.epsilon))


PLANTED = {
    "sensitivity": [with_sums(averages_clipped), with_sums(unclipped)],
    "isolation": [centres_by_the_mean, remembers],
    "bound": [asked_of(Long)],
    "noise": [
        patched(Mechanism, "add_noise", quieter),
        patched(Mechanism, "add_noise", silent),
        asked_of(Bare),
    ],
    "reuse": [
        patched(Mechanism, "add_noise", the_same),
        # Of 30 answers, noise of the planned size may go together by chance.
        patched(Mechanism, "add_noise", mostly_the_same, LONG),
        runs_twice_on_one_seed,
    ],
    "sampler": [patched(Batches, "sample", shuffled), patched(Batches, "sample", the_first)],
    "sampling": [asked_of(Inner)],
    "questions": [steps_until_it_fits],
    "parameters": [chooses_its_rate, regularises_by_records, scales_by_the_size],
    "ledger": [
        patched(Admits, "_admit", unwritten),
        rolls_its_ledger_back,
        spends_twice,
        names_another_plan,
    ],
    "plan": [plans_by_the_longest, infers_the_domain],
    "price": [claims_half, prices_too_low],
    "release": [returns_the_best, tells_the_mean, keeps_an_exact_attribute, minds_the_order],
    "failure": [
        refusing(lambda rows, labels: np.abs(rows).max() > 1e6),
        refusing(lambda rows, labels: np.isnan(rows).any()),
        refusing(lambda rows, labels: len(np.unique(labels[np.isin(labels, [0, 1])])) < 2),
        warns_of_large_squares,
    ],
}


def test_every_violation_is_planted():
    assert set(PLANTED) == set(attacks.VIOLATIONS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("violation", "run"),
    [
        pytest.param(violation, run, id=f"{violation} {number}")
        for violation, runs in PLANTED.items()
        for number, run in enumerate(runs)
    ],
)
def test_a_planted_violation_is_found_by_its_name(violation, run):
    assert violation in found(run, price=violation == "price")


def test_what_is_no_evidence_is_refused():
    def random(table):
        return honest(table, learning_rate=np.random.default_rng().random())

    for run, told in (
        (random, "run must be deterministic"),
        (lambda table: table[0].mean(), "run must open an oracle"),
    ):
        with pytest.raises(ValueError, match=told):
            attacks.replay(run, (X, Y), (X, Y))


def test_what_was_found_reads_as_sentences():
    (long,) = [each for each in attacks.neighbours(X, Y) if each.label == "long"]
    found = attacks.replay(
        with_sums(averages_clipped), long.first, long.second, price=False, seed=1
    )
    assert "the record moves the sum by" in str(found)
    assert found.to_dict()["findings"][0]["violation"] == "sensitivity"
    with pytest.raises(ValueError, match="violation must be one of"):
        attacks.Finding(violation="mood", place="", detail="")


def test_nothing_is_observed_outside():
    before = honest((X, Y), WHOLE, seed=1).w
    attacks.replay(honest, (X, Y), (X, Y), price=False)
    assert (honest((X, Y), WHOLE, seed=1).w == before).all()


# -- embedded models


def embedded_badly(mistake, scale=1.0):
    """Return an embedding of records whose signed gradients a mistake sums up."""

    def embedded(self, matrix):
        table = -np.sign(self.kernel.targets)[:, np.newaxis] * self.kernel.features @ matrix.T
        table *= scale
        return summed(table, mistake)

    return embedded


def test_embedded_models_keep_their_bound_and_each_mistake_is_found():
    """A record lies along the row of the matrix, which lengthens it most."""
    n, d = 8, 150
    sizes = {"n": n, "dimension": d, "embedding_dimension": 1, "steps": 2}
    target = {"epsilon": 1.0, "delta": 1e-5, "neighboring_relation": "replace-one"}
    plan = calibrate.jl_glm(CONSTANTS, **sizes, **target, inner="noisy_gd")
    X = np.zeros((n, d))
    (X[0],) = embedding(plan, d)
    X[0] /= np.linalg.norm(X[0])
    # Residuals so large that the slope is 1 or -1 throughout.
    tables = [Huber(X, np.full(n, sign * 1e6), fit_intercept=False) for sign in (-1, 1)]

    def found():
        return attacks.replay(lambda table: jl_glm(table, plan), *tables, seed=1)

    honest = found()
    assert honest.holds, str(honest)
    # Both contributions of one number are shortened and rounded.
    assert honest.largest == pytest.approx(1.0, rel=rounding(1.0, 1, 2))
    for place, name, mistake, violation in (
        (Mechanism, "add_noise", silent, "noise"),
        # Trusting the lemma that embedding keeps lengths, of every record.
        (Huber, "embedded", embedded_badly(unclipped), "sensitivity"),
        (Huber, "embedded", embedded_badly(averages_clipped, 1e6), "sensitivity"),
    ):
        with mock.patch.object(place, name, mistake):
            assert violation in found().violations, mistake
    # The row of the matrix is longer than its lemma says of most records.
    assert np.linalg.norm(embedding(plan, d)) > math.sqrt(2)
