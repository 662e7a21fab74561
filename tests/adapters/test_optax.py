"""The transformation for JAX: clipped sums, noise of the plan, a ledger, and a stop."""

import json

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")

import jax.numpy as jnp  # noqa: E402

from dpcal import calibrate  # noqa: E402
from dpcal.accountants.matrix import LambdaCGD  # noqa: E402
from dpcal.adapters.optax import Guard  # noqa: E402
from dpcal.adapters.stepwise import OutOfTurn  # noqa: E402
from dpcal.calibrate import Plan, Query  # noqa: E402
from dpcal.errors import BudgetExceeded  # noqa: E402

PARAMS = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}


def plan(**changes):
    fields = {
        "name": "gradient", "kind": "gradient", "sampler": "poisson", "sampling_probability": 0.5,
        "max_norm": 1.0, "noise_multiplier": 1e-9, "count": 3, **changes,
    }  # fmt: skip
    return Plan(optimizer="dpsgd", n=40, queries=(Query(**fields),), epsilon=1e9, delta=1e-6)


def loss(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(x @ params["w"] + params["b"], y)


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * 3
    return jnp.asarray(X), jnp.asarray((X[:, 0] > X[:, 1]).astype(int))


gradients_of = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))


def test_an_update_is_the_clipped_sum_over_the_expected_size():
    X, y = table()
    guard = Guard(plan(), PARAMS)
    transformation = guard.transformation()
    state = transformation.init(PARAMS)
    while guard.remaining:
        rows = guard.draw()
        each = gradients_of(PARAMS, X[rows], y[rows])
        update, state = transformation.update(each, state, PARAMS)
        flat = np.hstack([np.asarray(each["b"]), np.asarray(each["w"]).reshape(len(rows), -1)])
        norms = np.linalg.norm(flat, axis=1)
        expected = (flat * np.minimum(1, 1 / norms)[:, np.newaxis]).sum(axis=0) / 20
        np.testing.assert_allclose(update["b"], expected[:2], atol=1e-5)
        np.testing.assert_allclose(update["w"], expected[2:].reshape(3, 2), atol=1e-5)
        assert update["w"].dtype == PARAMS["w"].dtype
    assert guard.ledger.count("gradient") == 3
    with pytest.raises(BudgetExceeded):
        guard.draw()


def test_a_chain_learns_within_its_budget_and_costs_what_the_plan_says():
    X, y = table(2000)
    wanted = calibrate.dpsgd(
        n=2000, batch_size=200, epochs=5, epsilon=2.0, delta=1e-6, max_norm=1.0
    )
    guard = Guard(wanted, PARAMS, seed=1)
    optimizer = optax.chain(guard.transformation(), optax.sgd(0.5, momentum=0.5))
    params, state = PARAMS, optimizer.init(PARAMS)
    while guard.remaining:
        rows = guard.draw()
        updates, state = optimizer.update(gradients_of(params, X[rows], y[rows]), state, params)
        params = optax.apply_updates(params, updates)
    right = (X @ params["w"] + params["b"]).argmax(axis=1) == y
    assert right.mean() > 0.9
    assert 1.9 < guard.epsilon(1e-6) <= 2.0


def test_an_empty_batch_is_noise_alone():
    X, y = table()
    guard = Guard(plan(sampling_probability=1e-6, noise_multiplier=2.0), PARAMS)
    rows = guard.draw()
    assert len(rows) == 0
    update, _ = guard.transformation().update(gradients_of(PARAMS, X[rows], y[rows]), None)
    assert np.abs(update["w"]).min() > 0


def test_padded_batches_have_few_lengths_and_the_same_updates():
    X, y = table(n=2000)
    drawn = calibrate.dpsgd(n=2000, batch_size=200, steps=60, epsilon=4.0, delta=1e-6)
    made, lengths = [], set()
    gradients = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))
    for padding in (True, False):
        guard = Guard(drawn, PARAMS, seed=5)
        transformation, updates = guard.transformation(), []
        while guard.remaining and len(updates) < (60 if padding else 5):
            rows = guard.draw()
            inputs = guard.padded(rows) if padding else rows
            assert inputs[: len(rows)].tolist() == rows.tolist()
            if padding:
                lengths.add(len(inputs))
            each = gradients(PARAMS, X[inputs], y[inputs])
            updates.append(transformation.update(each, None)[0])
        made.append(updates)
        if padding:
            assert gradients._cache_size() == len(lengths) <= 6
    for one, other in zip(*made, strict=False):
        np.testing.assert_array_equal(one["w"], other["w"])
    assert len(guard.padded(np.zeros(0, dtype=int))) > 0


def test_what_is_out_of_turn_or_of_another_shape_is_refused():
    X, y = table()
    guard = Guard(plan(), PARAMS)
    update = guard.transformation().update
    whole = gradients_of(PARAMS, X, y)
    with pytest.raises(OutOfTurn, match="must be drawn before"):
        update(whole, None)
    guard.draw()
    with pytest.raises(ValueError, match="single records of the batch"):
        update(whole, None)
    with pytest.raises(ValueError, match="single records of the batch"):
        update(PARAMS, None)
    with pytest.raises(ValueError, match="a tree like params"):
        update({"w": whole["w"]}, None)
    with pytest.raises(TypeError, match=r"outside of jax\.jit"):
        jax.jit(lambda each: update(each, None)[0])(whole)
    with pytest.raises(OutOfTurn, match="must be answered for"):
        guard.draw()
    with pytest.raises(ValueError, match="at least one number"):
        Guard(plan(), {})


def test_correlated_noise_goes_on_where_it_stopped():
    """Whole and interrupted runs of one seed give the same updates."""
    strategy = LambdaCGD(steps=12, decay=0.5)
    wanted = calibrate.correlated_dpsgd(
        strategy, n=40, batch_size=10, epsilon=4.0, delta=1e-5, max_norm=1.0,
        sampler="balls-in-bins",
    )  # fmt: skip
    empty = {"w": jnp.zeros((0, 3, 2)), "b": jnp.zeros((0, 2))}

    def steps(guard, count):
        found = []
        for _ in range(count):
            size = len(guard.draw())
            blank = {name: jnp.zeros((size, *each.shape[1:])) for name, each in empty.items()}
            found.append(np.asarray(guard.transformation().update(blank, None)[0]["w"]))
        return found

    whole = steps(Guard(wanted, PARAMS, seed=3), 4)
    first = Guard(wanted, PARAMS, seed=3)
    begun = steps(first, 2)
    second = Guard(wanted, PARAMS)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for one, other in zip(whole, begun + steps(second, 2), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="same plan and number"):
        Guard(wanted, {"w": jnp.zeros(3)}).load_state_dict(first.state_dict())
