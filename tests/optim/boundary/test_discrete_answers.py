"""Oracles with discrete noise: answers of the law that is priced, on the grid that is proved."""

import dataclasses

import numpy as np
import pytest
from _answers import N, W, X, Y, oracle_for, plan_for, query
from scipy import stats

from dpcal import calibrate, optim
from dpcal._ext.sums import grid_step
from dpcal.accountants.matrix import Banded
from dpcal.calibrate import Correlation
from dpcal.errors import UnsupportedEvent
from dpcal.optim import FromGradients, Logistic
from dpcal.optim.boundary.exact import DiscreteMechanism

LOGISTIC = Logistic(X, Y, l2=0.2, classes=[0, 1])
EVERYONE = np.arange(N, dtype=np.intp)


@pytest.mark.parametrize("kind", ["gradient", "gradient norm", "scalar"])
def test_answers_have_the_law_that_the_plan_prices(kind):
    """2,000 answers, seed 1; a right law is rejected for one seed in a million."""
    oracle = oracle_for(query(kind=kind, count=2_000), seed=1, noise="discrete")
    slope = LOGISTIC.clipped_sum(W, EVERYONE, 0.5) / N + LOGISTIC.regularizer_gradient(W)
    loss = LOGISTIC.clipped_loss_sum(W, EVERYONE, 0.5) / N + LOGISTIC.regularizer(W)
    ask, mean = {
        "gradient": (oracle.gradient, slope),
        "gradient norm": (oracle.norm, np.linalg.norm(slope)),
        "scalar": (oracle.scalar, loss),
    }[kind]
    answers = np.array([ask(W, "q") for _ in range(2_000)])
    noise = (answers - mean).ravel() * N / (2.0 * 0.5)
    assert stats.kstest(noise, stats.norm.cdf).pvalue > 1e-6
    if kind == "gradient":
        steps = (answers - LOGISTIC.regularizer_gradient(W)) * N / grid_step(0.5)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-4)


def test_what_is_released_is_a_whole_number_of_steps():
    """One step of descent without a regulariser: the iterate is a multiple of the grid's step."""
    objective = Logistic(np.eye(4), [0, 1, 0, 1], fit_intercept=False, classes=[0, 1])
    plan = calibrate.dpsgd(n=4, batch_size=4, steps=1, epsilon=1.0, delta=1e-3)
    off = {}
    for noise in ("discrete", "gaussian"):
        w = optim.dpsgd(objective, plan, learning_rate=4.0, noise=noise, seed=2).w
        steps = w / grid_step(plan.queries[0].max_norm)
        off[noise] = np.abs(steps - np.rint(steps)).max()
    assert off["discrete"] < 1e-6
    assert off["gaussian"] > 1e-3


def test_one_record_of_many_moves_an_exact_sum_by_the_bound():
    n = 4_000
    objective = FromGradients(lambda w, rows: np.ones((len(rows), 1)), n=n, dimension=1)
    rows = np.arange(n, dtype=np.intp)
    totals = [
        DiscreteMechanism.gradient_sum(objective, np.zeros(1), some, 1.0)
        for some in (rows, rows[1:], rows[:-1], np.delete(rows, n // 2))
    ]
    for without in totals[1:]:
        assert 1 - 1e-5 < int((totals[0] - without)[0]) * grid_step(1.0) <= 1


def test_noise_without_a_proof_is_refused_and_leaves_no_file(tmp_path):
    one = query(count=1)
    # Of mixed signs on samples, for which rows of whole numbers have no proof.
    signs = Correlation(strategy=Banded(5, 2, [1.0, -0.5]))
    sampled = query(count=5, sampler="poisson", sampling_probability=0.1, correlation=signs)
    for asked, changes, told in (
        (query(kind="selection", count=1), {}, "noise='discrete' is for sums"),
        (query(count=10**23), {}, r"numbers within 2\^-\d+ of their law"),
        (one, {"delta": 1e-28}, "got delta=1e-28"),
        (sampled, {"neighboring_relation": "add-or-remove-one"}, "correlated noise"),
    ):
        plan = dataclasses.replace(plan_for(asked), **changes)
        with pytest.raises(UnsupportedEvent, match=told):
            optim.PrivateOracle(LOGISTIC, plan, noise="discrete")
    plan = dataclasses.replace(plan, optimizer="correlated_dpsgd", parameters={"learning_rate": 1})
    with pytest.raises(UnsupportedEvent, match="correlated noise"):
        optim.correlated_dpsgd(LOGISTIC, plan, noise="discrete", store=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()
