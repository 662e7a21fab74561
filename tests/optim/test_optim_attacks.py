"""Attacks on what runs release: they prove no more than is claimed, and find too little noise."""

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from dpcal import calibrate, optim
from dpcal._ext.noise import add_gaussian
from dpcal.calibrate import Constants
from dpcal.optim import FromGradients, Huber, PrivateOracle
from dpcal.optim.boundary import noise as noise_module
from dpcal.optim.boundary.batches import Parts
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.jl_glm import embedding

N, RUNS, DELTA = 16, 700, 1e-3
# Each bound of a rate is wrong with this chance, so a false alarm has one of 4e-6 over both plans.
CHANCE = 1e-6

OPTIONS = {
    "noisy_gd": {"steps": 3},
    "recursive_regularization": {},
}


def logistic(flipped):
    """As many records pull one way as the other, but for one, which changes sides."""
    labels = np.ones(N, dtype=int)
    labels[: N // 2] = 0
    labels[0] = 1 if flipped else 0
    return optim.Logistic(np.ones((N, 2)) / math.sqrt(2), labels, fit_intercept=False)


def released(name, plan, flipped):
    """The mean iterate along the records, as far as the run shows it, for many seeds."""
    optimizer, objective = getattr(optim, name), logistic(flipped)
    found = np.empty(RUNS)
    for seed in range(RUNS):
        path = []
        result = optimizer(
            objective,
            plan,
            seed=seed + RUNS * flipped,
            callback=lambda progress, path=path: path.append(progress.w.sum()),
            callback_every=1,
        )
        found[seed] = (sum(path) if path else 0.0) + 1e-6 * result.w.sum()
    return found


def proved(first, second):
    """A lower bound on epsilon: half of the runs choose a threshold, the others test it."""
    half = len(first) // 2

    def bound(level, low, high):
        hits, alarms = int((high > level).sum()), int((low > level).sum())
        least = stats.beta.ppf(CHANCE, hits, half - hits + 1) if hits else 0.0
        most = stats.beta.ppf(1 - CHANCE, alarms + 1, half - alarms) if alarms < half else 1.0
        return math.log((least - DELTA) / most) if least > DELTA else -math.inf

    levels = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.02, 0.98, 49))
    best = max(levels, key=lambda level: bound(level, first[:half], second[:half]))
    return bound(best, first[half:], second[half:])


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_attacks_stay_below_the_claim_and_find_too_little_noise(name):
    constants = Constants(lipschitz=1.0, smoothness=0.25, gap=0.7)

    def shown(epsilon):
        plan = getattr(calibrate, name)(
            constants,
            n=N,
            dimension=2,
            epsilon=epsilon,
            delta=DELTA,
            neighboring_relation="replace-one",
            **OPTIONS[name],
        )
        return proved(*(released(name, plan, flipped) for flipped in (False, True)))

    assert shown(2.0) <= 2.0
    # A small part of the noise that a claim of 2 needs.
    assert shown(400.0) > 2.0


# -- one record that is all that is left of a sum

# What follows is evidence in proportion to the log-likelihood ratio of all that a run releases: no
# attack tells the two data sets apart more often. It is told from the claim and from its exact law,
# -1 or 1 plus normal noise, whose Kolmogorov test is wrong with a chance of 1e-6 as
# well, so that a test has a false alarm with one of 4e-6.


def quieter(out, standard_deviation, generator):
    """The mistake of a sensitivity that is a tenth of what it is."""
    add_gaussian(out, standard_deviation / 10, generator)


def averages_clipped(table, max_norm):
    """The mistake of clipping an average: one record may move it by the whole bound."""
    mean = table.mean(axis=0)
    return len(table) * mean * min(1.0, max_norm / max(float(np.linalg.norm(mean)), 1e-300))


def follows(evidence, multiplier):
    """Whether pairs of evidence have the law of one Gaussian release."""
    return all(
        stats.kstest(found, stats.norm(sign, multiplier).cdf).pvalue > CHANCE
        for sign, found in zip((-1, 1), evidence, strict=True)
    )


# -- the tree: in whichever node the public partition has put the record


FAR = np.array([1e9, 0.0])


def dominated(sign, n):
    """All gradients are zero but for record 0's, which clipping always acts on.

    So are all differences, and hers points along that of the iterates, or against it.
    """
    return FromGradients(
        lambda w, rows: np.where((rows == 0)[:, np.newaxis], sign * 1e9 * (FAR + w), 0.0),
        n=n,
        dimension=2,
    )


def shared(self, query, count, spent):
    """The mistake of parts that are not disjoint: all begin with the same records."""
    rows = np.arange(query.batch_size, dtype=np.intp)
    self._waiting[query.name].extend([rows] * count)


def tree_evidence(plan, sign, runs):
    """The sum of all answers that record 0 is in, in units of the bound on her contribution.

    Who knows the partition knows which answers these are, and which way her contribution points.
    """
    found, inside = np.zeros(runs), [False]
    sums, differences = FromGradients.clipped_sum, FromGradients.clipped_difference_sum
    gradient, difference = PrivateOracle.gradient, PrivateOracle.difference

    def note(rows):
        inside[0] = 0 in rows

    def seen(run, answer, query, toward):
        distance = np.linalg.norm(toward)
        size = query.batch_size / (query.bound(distance) * distance)
        found[run] += inside[0] * size * (answer @ toward)
        return answer

    objective = dominated(sign, plan.n)
    with (
        mock.patch.multiple(
            FromGradients,
            clipped_sum=lambda self, *at: (note(at[-2]), sums(self, *at))[1],
            clipped_difference_sum=lambda self, *at: (note(at[-2]), differences(self, *at))[1],
        ),
        mock.patch.multiple(
            PrivateOracle,
            gradient=lambda oracle, w, name: seen(
                run, gradient(oracle, w, name), plan.query(name), FAR / FAR[0]
            ),
            difference=lambda oracle, w, v, name: seen(
                run, difference(oracle, w, v, name), plan.query(name), w - v
            ),
        ),
    ):
        for run in range(runs):
            optim.tree_spider(objective, plan, seed=run + runs * (sign > 0))
    return found


def tree_of(depth, claim):
    """A plan of one round in which every record is in one answer, and none ends the run."""
    n, batch = 2 ** (depth - 1) * (depth + 2), 2**depth
    constants = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    plan = calibrate.tree_spider(constants, n=n, dimension=2, epsilon=claim, delta=DELTA)
    root, first, *_ = plan.queries
    nodes = [
        dataclasses.replace(first, name=f"depth {j}", count=2 ** (j - 1), batch_size=batch // 2**j)
        for j in range(1, depth + 1)
    ]
    plan = dataclasses.replace(
        plan,
        queries=(dataclasses.replace(root, count=1, batch_size=batch), *nodes),
        parameters={**plan.parameters, "threshold": 1e-300},
    )
    assert claim * (1 - 1e-4) < plan.price() <= claim
    return plan


@pytest.mark.slow
@pytest.mark.study
def test_attacks_on_a_tree_stay_below_the_claim_and_find_each_mistake():
    claim = 1.5

    def evidence(depth, runs):
        return [tree_evidence(tree_of(depth, claim), sign, runs) for sign in (-1, 1)]

    honest = evidence(2, 600)
    assert proved(*honest) <= claim
    assert follows(honest, tree_of(2, claim).query("root").noise_multiplier)
    with mock.patch.object(noise_module, "add_gaussian", quieter):
        assert proved(*evidence(2, 300)) > claim
    with mock.patch.object(Parts, "allot", shared):
        assert proved(*evidence(6, 200)) > claim


# -- embedded models: a record along the row of the matrix, which lengthens it most


def trusting(self, matrix):
    """The mistake of trusting the lemma that embedding keeps lengths, of every record."""
    table = self.kernel.features @ matrix.T
    signs = np.sign(self.kernel.targets)
    objective = FromGradients(
        lambda w, rows: -signs[rows, np.newaxis] * table[rows], n=self.n, dimension=len(matrix)
    )
    objective.clipped_sum = lambda w, rows, max_norm: -signs[rows] @ table[rows]
    return objective


def averaging(self, matrix):
    """The mistake of clipping an average, here of gradients a million times as long."""
    table = 1e6 * self.kernel.features @ matrix.T
    signs = np.sign(self.kernel.targets)
    objective = FromGradients(lambda w, rows: table[rows], n=self.n, dimension=len(matrix))
    objective.clipped_sum = lambda w, rows, max_norm: averages_clipped(
        -signs[rows, np.newaxis] * table[rows], max_norm
    )
    return objective


def lifted_evidence(plan, objective, first_seed, runs):
    """The sum of a run's two gradients along record 0, in units of the bound on hers."""
    A, (query,) = embedding(plan, objective.dimension), plan.queries
    found = np.empty(runs)
    for run in range(runs):
        w = optim.jl_glm(objective, plan, seed=first_seed + run).w
        (u,) = np.linalg.solve(A @ A.T, A @ w)
        found[run] = u * plan.n / (plan.parameters["learning_rate"] * query.max_norm)
    return found


@pytest.mark.slow
@mock.patch.object(Loops, "fit", staticmethod(lambda *_: False))  # mistakes are in the plain path
def test_attacks_on_embedded_models_stay_below_the_claim_and_find_each_mistake():
    n, d, runs, claim, steps = 8, 150, 400, 1.0, 2
    plan = calibrate.jl_glm(
        Constants(lipschitz=1.0, smoothness=1.0, gap=1.0),
        n=n,
        dimension=d,
        epsilon=claim,
        delta=DELTA,
        inner="noisy_gd",
        embedding_dimension=1,
        neighboring_relation="replace-one",
        steps=steps,
    )
    X = np.zeros((n, d))
    (X[0],) = embedding(plan, d)
    X[0] /= np.linalg.norm(X[0])

    def evidence():
        # Residuals so large that the slope is 1 or -1 throughout.
        return [
            lifted_evidence(plan, Huber(X, sign * far, fit_intercept=False), seed, runs) / steps
            for sign, seed in ((-1, 0), (1, runs))
        ]

    far = np.full(n, 1e6)
    honest = evidence()
    assert proved(*honest) <= claim
    assert follows(honest, plan.queries[0].noise_multiplier / math.sqrt(steps))
    for place, name, mistake in (
        (noise_module, "add_gaussian", quieter),
        (Huber, "embedded", trusting),
        (Huber, "embedded", averaging),
    ):
        with mock.patch.object(place, name, mistake):
            assert proved(*evidence()) > claim, mistake.__doc__
