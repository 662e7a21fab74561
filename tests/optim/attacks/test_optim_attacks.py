"""Attacks on what optimizers release: they prove no more than is claimed, and find each mistake."""

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.optim import FromGradients, Huber, attacks
from dpcal.optim.boundary import noise as noise_module
from dpcal.optim.boundary.batches import Parts
from dpcal.optim.first_order.jl_glm import embedding

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

N, DELTA = 1_000, 1e-5
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, gap=0.7)


def shared(self, query, count, spent):
    """The mistake of parts that are not disjoint: all begin with the same records."""
    rows = np.arange(query.batch_size, dtype=np.intp)
    self._waiting[query.name].extend([rows] * count)
    self._allotted[query.name] = spent + count


def test_parts_that_share_records_are_found():
    plan = calibrate.tree_spider(CONSTANTS, n=N, dimension=2, epsilon=2.0, delta=DELTA)
    # The tree goes on until its pass is over: no estimate is small enough to end it.
    plan = dataclasses.replace(plan, parameters={**plan.parameters, "threshold": 1e-300})
    table = attacks.random_table(N, 2, seed=3)

    def run(records):
        objective = optim.Logistic(*records, fit_intercept=False, classes_from_data=True)
        return optim.tree_spider(objective, plan)

    assert attacks.replay(run, table, table, price=False, seed=1).holds
    with mock.patch.object(Parts, "allot", shared):
        found = attacks.replay(run, table, table, price=False, seed=1)
    assert "sampler" in found.violations
    assert "a record is in two parts" in str(found)


# -- embedded models: a record along the row of the matrix, which lengthens it most


def silent(out, standard_deviation, generator):
    """The mistake of a sensitivity that comes out as zero."""


def averages_clipped(table, max_norm):
    """The mistake of clipping an average: one record may move it by the whole bound."""
    mean = table.mean(axis=0)
    return len(table) * mean * min(1.0, max_norm / max(float(np.linalg.norm(mean)), 1e-300))


def embedded_badly(mistake, scale=1.0):
    """Return an embedding of records whose signed gradients a mistake sums up."""

    def embedded(self, matrix):
        table = -np.sign(self.kernel.targets)[:, np.newaxis] * self.kernel.features @ matrix.T
        table *= scale
        objective = FromGradients(lambda w, rows: table[rows], n=self.n, dimension=len(matrix))
        objective.checked = True
        objective.clipped_sum = lambda w, rows, max_norm: mistake(table[rows], max_norm)
        return objective

    return embedded


def trusting(table, max_norm):
    """The mistake of trusting the lemma that embedding keeps lengths, of every record."""
    return table.sum(axis=0)


def test_embedded_models_keep_their_bound_and_each_mistake_is_found():
    n, d = 8, 150
    plan = calibrate.jl_glm(
        CONSTANTS,
        n=n,
        dimension=d,
        epsilon=1.0,
        delta=DELTA,
        inner="noisy_gd",
        embedding_dimension=1,
        neighboring_relation="replace-one",
        steps=2,
    )
    X = np.zeros((n, d))
    (X[0],) = embedding(plan, d)
    X[0] /= np.linalg.norm(X[0])
    # Residuals so large that the slope is 1 or -1 throughout.
    tables = [Huber(X, np.full(n, sign * 1e6), fit_intercept=False) for sign in (-1, 1)]

    def found():
        return attacks.replay(lambda table: optim.jl_glm(table, plan), *tables, seed=1)

    honest = found()
    assert honest.holds, str(honest)
    assert honest.largest == pytest.approx(1.0)
    for place, name, mistake, violation in (
        (noise_module, "add_gaussian", silent, "noise"),
        (Huber, "embedded", embedded_badly(trusting), "sensitivity"),
        (Huber, "embedded", embedded_badly(averages_clipped, 1e6), "sensitivity"),
    ):
        with mock.patch.object(place, name, mistake):
            assert violation in found().violations, mistake
    # The row of the matrix is longer than its lemma says of most records.
    assert np.linalg.norm(embedding(plan, d)) > math.sqrt(2)
