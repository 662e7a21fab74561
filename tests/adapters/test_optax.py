"""The transformation for JAX beside wrappers of optax: what they pass on, hide, or read."""

import importlib
import inspect
from contextlib import suppress

import numpy as np
import pytest
from _steps import planned

jax = pytest.importorskip("jax", reason="jax is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")

import jax.numpy as jnp  # noqa: E402

from dpcal.adapters.optax import Guard  # noqa: E402

contrib = importlib.import_module("optax.contrib")

PARAMS = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}
PLAN = planned(noise_multiplier=1e-9)


def whole(n):
    """Return gradients of n records."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=(n, *leaf.shape))), PARAMS)


def test_padded_batches_have_few_lengths_and_the_same_updates():
    plan, table = planned(n=2000, sampling_probability=0.1, count=60), whole(2000)
    gradients = jax.jit(lambda leaves: jax.tree.map(lambda each: 2 * each, leaves))
    guard, plain = (Guard(plan, PARAMS, seed=5) for _ in range(2))
    for step in range(60):
        rows = guard.draw()
        inputs = guard.padded(rows)
        assert inputs[: len(rows)].tolist() == rows.tolist()
        each = gradients({name: leaf[inputs] for name, leaf in table.items()})
        update, _ = guard.transformation().update(each, None)
        if step < 5:
            assert plain.draw().tolist() == rows.tolist()
            each = {name: 2 * leaf[rows] for name, leaf in table.items()}
            other, _ = plain.transformation().update(each, None)
            np.testing.assert_array_equal(update["w"], other["w"])
    assert gradients._cache_size() <= 6
    assert len(guard.padded(np.zeros(0, dtype=int))) > 0


def test_what_is_of_another_shape_is_refused():
    guard, each = Guard(PLAN, PARAMS), whole(40)
    update = guard.transformation().update
    guard.draw()
    for wrong in (each, PARAMS):
        with pytest.raises(ValueError, match="single records of the batch"):
            update(wrong, None)
    with pytest.raises(ValueError, match="a tree like params"):
        update({"w": each["w"]}, None)
    with pytest.raises(TypeError, match=r"outside of jax\.jit"):
        jax.jit(lambda each: update(each, None)[0])(each)
    for wrong in (jnp.zeros(2, dtype=kind) for kind in (int, complex, bool)):
        with pytest.raises(ValueError, match="params must be real floating-point numbers, got"):
            Guard(PLAN, {"w": jnp.zeros(3), "x": wrong})
    with pytest.raises(ValueError, match=r"params must be whole, .*optax\.masked"):
        Guard(PLAN, {"w": jnp.zeros(3), "x": optax.MaskedNode()})
    with pytest.raises(ValueError, match="at least one number"):
        Guard(PLAN, {})


def sgd():
    return optax.sgd(0.1)


def always(step):
    return step >= 0


def scaled(transformation):
    return lambda scale: optax.chain(transformation, optax.scale(scale))


def injected(inject):
    return lambda t: inject(scaled(t))(scale=1.0)


def beside(wrapper):
    """Return what gives one leaf to a transformation, and the other one to another."""
    return lambda t: wrapper({"a": t, "z": sgd()}, {"w": "a", "b": "z"})


# How public wrappers of optax go around a transformation, by what comes of it around the guard:
# updates are functions of the private mean; a sentence of the guard refuses them; or they use the
# gradients of single records, which nobody can see from inside, and the page names them.
AROUND = {
    "passes": {
        "chain": optax.chain,
        "inject_hyperparams": injected(optax.inject_hyperparams),
        "inject_stateful_hyperparams": injected(optax.inject_stateful_hyperparams),
        "lookahead": lambda t: optax.lookahead(t, 2, 0.5),
        "masked, with all": lambda t: optax.masked(t, {"w": True, "b": True}),
        "named_chain": lambda t: optax.named_chain(("name", t)),
        "with_extra_args_support": optax.with_extra_args_support,
        "schedule_free": lambda t: contrib.schedule_free(t, 0.1),
        "split_real_and_imaginary": contrib.split_real_and_imaginary,
    },
    "what compiles its inside": {
        "apply_if_finite": lambda t: optax.apply_if_finite(t, 2),
        "conditionally_mask": lambda t: optax.conditionally_mask(t, always),
        "conditionally_transform": lambda t: optax.conditionally_transform(t, always),
        "MultiSteps": lambda t: optax.MultiSteps(t, 2).gradient_transformation(),
    },
    "a tree like params": {"flatten": optax.flatten},
    "hides": {
        "masked": lambda t: optax.masked(t, {"w": True, "b": False}),
        "multi_transform": beside(optax.multi_transform),
        "partition": beside(optax.partition),
        "selective_transform": lambda t: optax.selective_transform(
            t, freeze_mask={"w": False, "b": True}
        ),
    },
    "reads": {
        "mechanize": contrib.mechanize,
        "sam": lambda t: contrib.sam(t, optax.chain(contrib.normalize(), sgd())),
        "scale_by_galore": lambda t: contrib.scale_by_galore(rank=1, base_optimizer=t),
    },
}
WRAPPERS = {name: (wrap, what) for what, found in AROUND.items() for name, wrap in found.items()}
each_wrapper = pytest.mark.parametrize("name", WRAPPERS)


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
        name.partition(",")[0] for name in WRAPPERS
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


@each_wrapper
def test_a_wrapper_around_the_guard_passes_the_mean_on_or_is_refused(name):
    """Two tables of gradients with one answer: what differs was read off single records."""
    wrap, what = WRAPPERS[name]

    def played(spread):
        params = optax.LookaheadParams.init_synced(PARAMS) if name == "lookahead" else PARAMS
        guard = Guard(planned(sampler="full", noise_multiplier=1e-9), PARAMS)
        whole = lambda: optax.chain(guard.transformation(), sgd())  # noqa: E731
        return steps_of(wrap, tables_of(guard, spread), whole, params)

    if what == "passes":
        for one, other in zip(played(0), played(2), strict=True):
            for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-9)
    elif what != "reads":
        with pytest.raises((TypeError, ValueError), match=what):
            played(0)


@each_wrapper
def test_a_wrapper_behind_the_guard_gets_the_private_mean(name):
    """The same updates as of the wrapper alone, at answers that a twin of the guard gives."""
    wrap, _ = WRAPPERS[name]
    params = optax.LookaheadParams.init_synced(PARAMS) if name == "lookahead" else PARAMS
    made = []
    for inside in (True, False):
        guard = Guard(planned(noise_multiplier=1.0), PARAMS, seed=4)
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
        guard = Guard(planned(sampling_probability=q, noise_multiplier=1e-9), params, seed=2)
        size = len(guard.draw())
        assert (size == 0) is (q < 0.1)
        each = {"w": jnp.ones((size, 3, 2)), "e": jnp.zeros((size, 0, 4))}
        update, _ = guard.transformation().update(each, None)
        assert update["e"].shape == (0, 4)
        expected = size / np.sqrt(6) / (40 * q)
        np.testing.assert_allclose(update["w"], expected, atol=1e-3)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_a_record_moves_an_update_of_few_digits_by_at_most_its_bound(dtype):
    """One record's gradient is set to zero; both runs have the same draws and noise of 1e-3."""
    for value in (1e30, -1e4, np.nan, 1e-3):
        updates = []
        for other in (value, 0.0):
            guard = Guard(planned(noise_multiplier=1e-3), jnp.zeros(4, dtype), seed=8)
            table = np.random.default_rng(0).normal(size=(40, 4)) * 3
            table[11] = other
            each = jnp.asarray(table[guard.padded(guard.draw())], dtype)
            update = guard.transformation().update(each, None)[0]
            updates.append(np.asarray(update, dtype=np.float64) * 20)
        # The mean is rounded to the parameters' digits at the end, which reveals no more.
        digits = 4 * 20 * float(jnp.finfo(dtype).eps)
        assert np.linalg.norm(updates[0] - updates[1]) <= 1.05 + digits, value
