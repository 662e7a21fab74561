"""The transformation for JAX: clipped sums, noise of the plan, a ledger, and a stop."""

import importlib
import inspect
import json
from contextlib import suppress

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

contrib = importlib.import_module("optax.contrib")

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


def sgd():
    return optax.sgd(0.1)


def scaled(transformation):
    return lambda scale: optax.chain(transformation, optax.scale(scale))


# Public wrappers of optax: how they go around a transformation, and what comes of it around the
# guard. "passes": updates are functions of the private mean. "refused": with a sentence of the
# guard. "reads": they use the gradients of single records, which nobody can see from inside; the
# page names them.
AROUND = {
    "apply_if_finite": (lambda t: optax.apply_if_finite(t, 2), "what compiles its inside"),
    "chain": (optax.chain, "passes"),
    "conditionally_mask": (
        lambda t: optax.conditionally_mask(t, lambda step: step >= 0),
        "what compiles its inside",
    ),
    "conditionally_transform": (
        lambda t: optax.conditionally_transform(t, lambda step: step >= 0),
        "what compiles its inside",
    ),
    "flatten": (optax.flatten, "a tree like params"),
    "inject_hyperparams": (
        lambda t: optax.inject_hyperparams(scaled(t))(scale=1.0),
        "passes",
    ),
    "inject_stateful_hyperparams": (
        lambda t: optax.inject_stateful_hyperparams(lambda s: optax.chain(t, optax.scale(s)))(
            s=1.0
        ),
        "passes",
    ),
    "lookahead": (lambda t: optax.lookahead(t, 2, 0.5), "passes"),
    "masked": (lambda t: optax.masked(t, {"w": True, "b": False}), "hides"),
    "masked, with all": (lambda t: optax.masked(t, {"w": True, "b": True}), "passes"),
    "MultiSteps": (
        lambda t: optax.MultiSteps(t, 2).gradient_transformation(),
        "what compiles its inside",
    ),
    "multi_transform": (
        lambda t: optax.multi_transform({"a": t, "z": sgd()}, {"w": "a", "b": "z"}),
        "hides",
    ),
    "partition": (lambda t: optax.partition({"a": t, "z": sgd()}, {"w": "a", "b": "z"}), "hides"),
    "named_chain": (lambda t: optax.named_chain(("name", t)), "passes"),
    "selective_transform": (
        lambda t: optax.selective_transform(t, freeze_mask={"w": False, "b": True}),
        "hides",
    ),
    "with_extra_args_support": (optax.with_extra_args_support, "passes"),
    "mechanize": (contrib.mechanize, "reads"),
    "sam": (
        lambda t: contrib.sam(t, optax.chain(contrib.normalize(), sgd())),
        "reads",
    ),
    "scale_by_galore": (lambda t: contrib.scale_by_galore(rank=1, base_optimizer=t), "reads"),
    "schedule_free": (lambda t: contrib.schedule_free(t, 0.1), "passes"),
    "split_real_and_imaginary": (contrib.split_real_and_imaginary, "passes"),
}


def test_every_public_wrapper_of_optax_is_in_the_table():
    """By a parameter of a transformation's type; ``monitor`` measures, and three are optimizers."""
    found = set()
    for each in (optax, contrib):
        for name in dir(each):
            made = getattr(each, name)
            if callable(made) and not name.startswith("_") and "GradientT" not in name:
                with suppress(ValueError, TypeError):
                    taken = str(inspect.signature(made)).partition("->")[0]
                    if "GradientTransformation" in taken:
                        found.add(name)
    assert found - {"monitor", "galore", "lbfgs", "sophia"} == {
        name.partition(",")[0] for name in AROUND
    }


def steps_of(wrap, tables, transformation_of, params):
    """Return the updates of some steps of a wrapped transformation."""
    wrapped, updates = wrap(transformation_of()), []
    state = wrapped.init(params)
    for table_of in tables:
        found, state = wrapped.update(table_of(), state, params)
        updates.append(jax.tree.map(np.asarray, found))
    return updates


def tables_of(guard, spread):
    """Yield gradients, whose norms are above the bound: with another spread, of the same answer."""
    for step in range(3):

        def drawn(step=step):
            rows, rng = guard.draw(), np.random.default_rng(step)
            stretch = 10.0 ** np.random.default_rng(9).uniform(1, 1 + spread, size=len(rows))
            w, b = rng.normal(size=(len(rows), 3, 2)), rng.normal(size=(len(rows), 2))
            scaled = {"w": w * stretch[:, None, None], "b": b * stretch[:, None]}
            return jax.tree.map(jnp.asarray, scaled)

        yield drawn


@pytest.mark.parametrize("name", AROUND)
def test_a_wrapper_around_the_guard_passes_the_mean_on_or_is_refused(name):
    """Two tables of gradients with one answer: what differs was read off single records."""
    wrap, what = AROUND[name]

    def played(spread):
        params = optax.LookaheadParams.init_synced(PARAMS) if name == "lookahead" else PARAMS
        guard = Guard(plan(sampler="full", sampling_probability=None), PARAMS)
        whole = lambda: optax.chain(guard.transformation(), sgd())  # noqa: E731
        return steps_of(wrap, tables_of(guard, spread), whole, params)

    if what == "passes":
        for one, other in zip(played(0), played(2), strict=True):
            for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-9)
    elif what != "reads":
        with pytest.raises((TypeError, ValueError), match=what):
            played(0)


@pytest.mark.parametrize("name", AROUND)
def test_a_wrapper_behind_the_guard_gets_the_private_mean(name):
    """The same updates as of the wrapper alone, at answers that a twin of the guard gives."""
    wrap, _ = AROUND[name]
    params = optax.LookaheadParams.init_synced(PARAMS) if name == "lookahead" else PARAMS
    made = []
    for inside in (True, False):
        guard = Guard(plan(noise_multiplier=1.0), PARAMS, seed=4)
        private, tables = guard.transformation(), tables_of(guard, 0)

        def answered(table_of, private=private):
            return lambda: private.update(table_of(), None)[0]

        if inside:
            around = lambda t, private=private: optax.chain(private, wrap(t))  # noqa: E731
            made.append(steps_of(around, tables, sgd, params))
        else:
            made.append(steps_of(wrap, map(answered, tables), sgd, params))
    for one, other in zip(*made, strict=True):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_leaf_without_numbers_is_no_hindrance():
    params = {"w": jnp.ones((3, 2)), "e": jnp.zeros((0, 4))}
    for q in (0.5, 1e-3):  # a batch, and one without records
        guard = Guard(plan(sampling_probability=q), params, seed=2)
        size = len(guard.draw())
        assert (size == 0) is (q < 0.1)
        each = {"w": jnp.ones((size, 3, 2)), "e": jnp.zeros((size, 0, 4))}
        update, _ = guard.transformation().update(each, None)
        assert update["e"].shape == (0, 4)
        expected = size / np.sqrt(6) / (40 * q)
        np.testing.assert_allclose(update["w"], expected, atol=1e-3)


def test_parameters_without_a_gradient_are_refused():
    for leaf in (jnp.zeros(2, dtype=int), jnp.zeros(2, dtype=complex), jnp.zeros(2, dtype=bool)):
        with pytest.raises(ValueError, match="params must be real floating-point numbers, got"):
            Guard(plan(), {"w": jnp.zeros(3), "x": leaf})
    with pytest.raises(ValueError, match=r"params must be whole, .*optax\.masked"):
        Guard(plan(), {"w": jnp.zeros(3), "x": optax.MaskedNode()})


@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_a_record_moves_an_update_by_at_most_its_bound_over_the_public_size(noise, padding, dtype):
    """One record's gradient is set to zero; both runs have the same draws and noise of 1e-3."""
    params = jnp.zeros(4, dtype)
    for value in (1e30, -1e4, float("nan"), float("inf"), 1e-3):
        updates = []
        for blank in (False, True):
            guard = Guard(plan(noise_multiplier=1e-3, count=1), params, seed=8, noise=noise)
            table = np.random.default_rng(0).normal(size=(40, 4)) * 3
            table[11] = 0.0 if blank else value
            rows = guard.padded(guard.draw()) if padding else guard.draw()
            each = jnp.asarray(table[rows], dtype)
            update = guard.transformation().update(each, None)[0]
            updates.append(np.asarray(update, dtype=np.float64) * 20)
        # The mean is rounded to the parameters' digits at the end, which reveals no more.
        assert np.linalg.norm(updates[0] - updates[1]) <= 1.05 + 4 * 20 * float(
            jnp.finfo(dtype).eps
        )
