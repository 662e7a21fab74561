"""Private gradients for JAX: what one record moves, what is refused, and what may follow."""

import importlib

import numpy as np
import pytest
from _steps import planned

jax = pytest.importorskip("jax", reason="jax is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")

import jax.numpy as jnp  # noqa: E402

from dpcal._ext.sums import grid_step  # noqa: E402
from dpcal.adapters.optax import Guard  # noqa: E402

contrib = importlib.import_module("optax.contrib")

PARAMS = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}
TINY = float(np.finfo(np.float32).smallest_subnormal)


def linear(params, record):
    """Return a loss of which a record is the gradient."""
    parts = jax.tree.map(lambda each, row: jnp.vdot(each, row.astype(each.dtype)), params, record)
    return sum(jax.tree.leaves(parts))


def records(n, params=PARAMS, spread=1.0):
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: spread * rng.normal(size=(n, *leaf.shape)), params)


def of_rows(tree, rows):
    return jax.tree.map(lambda each: jnp.asarray(each[rows]), tree)


def test_padded_batches_have_few_lengths_and_the_same_answers():
    plan, table = planned(n=2000, sampling_probability=0.1, count=60), records(2000)
    guard, plain = (Guard(plan, PARAMS, linear, seed=5) for _ in range(2))
    for step in range(60):
        rows = guard.draw()
        inputs = guard.padded(rows)
        assert inputs[: len(rows)].tolist() == rows.tolist()
        answer = guard.gradient(PARAMS, of_rows(table, inputs))
        if step < 5:
            assert plain.draw().tolist() == rows.tolist()
            other = plain.gradient(PARAMS, of_rows(table, rows))
            np.testing.assert_array_equal(answer["w"], other["w"])
    assert guard._compiled._cache_size() <= 6
    assert len(guard.padded(np.zeros(0, dtype=int))) > 0


def test_what_is_of_another_shape_is_refused_and_the_step_can_be_asked_again():
    guard = Guard(planned(noise_multiplier=1e-9), PARAMS, linear)
    rows = guard.draw()
    each, more = of_rows(records(40), rows), records(40)
    for wrong in (more, jnp.zeros(()), (each, more), ()):
        with pytest.raises(ValueError, match="records that were drawn"):
            guard.gradient(PARAMS, wrong)
    for wrong in ({"w": PARAMS["w"]}, {"w": jnp.zeros((2, 3)), "b": jnp.zeros(2)}):
        with pytest.raises(ValueError, match="the tree and the shapes"):
            guard.gradient(wrong, each)
    for compiled in (jax.jit(guard.gradient), jax.jit(lambda *_: guard.gradient(PARAMS, each))):
        with pytest.raises(TypeError, match=r"outside of jax\.jit"):
            compiled(PARAMS, each)
    assert guard.gradient(PARAMS, each)["w"].shape == (3, 2)
    assert guard.ledger.answers == 1
    for wrong in (jnp.zeros(2, dtype=kind) for kind in (int, complex, bool)):
        with pytest.raises(ValueError, match="params must be real floating-point numbers, got"):
            Guard(planned(), {"w": jnp.zeros(3), "x": wrong}, linear)
    with pytest.raises(ValueError, match="at least one number"):
        Guard(planned(), {}, linear)
    with pytest.raises(ValueError, match=r"max_norm must be in \[1e-30, 1e30\]"):
        Guard(planned(max_norm=1e-100), PARAMS, linear)


# Wrappers that skip, hide, average or compile what is inside of them.
WRAPPERS = {
    "masked": lambda t: optax.masked(t, {"w": True, "b": False}),
    "MultiSteps": lambda t: optax.MultiSteps(t, 2).gradient_transformation(),
    "apply_if_finite": lambda t: optax.apply_if_finite(t, 2),
    "partition": lambda t: optax.partition({"a": t, "z": optax.sgd(0.1)}, {"w": "a", "b": "z"}),
    "galore": lambda t: contrib.scale_by_galore(rank=1, base_optimizer=t),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_any_transformation_may_follow_compiled_or_not(wrap):
    """It sees the private mean alone: what it returns is the same in a compiled step."""
    optimizer, table, ends = wrap(optax.adam(0.1)), records(40), []
    for compile_ in (jax.jit, lambda step: step):
        guard, params = Guard(planned(noise_multiplier=1.0), PARAMS, linear, seed=4), PARAMS

        def step(gradient, state, params):
            updates, state = optimizer.update(gradient, state, params)
            return optax.apply_updates(params, updates), state

        step, state = compile_(step), optimizer.init(params)
        for _ in range(4):
            gradient = guard.gradient(params, of_rows(table, guard.draw()))
            params, state = step(gradient, state, params)
        ends.append(params)
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        assert np.isfinite(one).all()
        assert np.any(one != 0)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_leaf_without_numbers_is_no_hindrance():
    params = {"w": jnp.ones((3, 2)), "e": jnp.zeros((0, 4))}
    for q in (0.5, 1e-3):  # a batch, and one without records
        guard = Guard(
            planned(sampling_probability=q, noise_multiplier=1e-9), params, linear, seed=2
        )
        size = len(guard.draw())
        assert (size == 0) is (q < 0.1)
        each = {"w": jnp.ones((size, 3, 2)), "e": jnp.zeros((size, 0, 4))}
        answer = guard.gradient(params, each)
        assert answer["e"].shape == (0, 4)
        expected = size / np.sqrt(6) / (40 * q)
        np.testing.assert_allclose(answer["w"], expected, atol=1e-3)


# Gradients of one record, by what stands in its place.
ODD = {
    "as others": 1.0,
    "rounded up": 1.0,
    "short": 1e-3,
    "huge": 1e18,
    "beyond squares": 1e30,
    "subnormal": TINY,
    "subnormal squares": 1e-25,
    "NaN": np.nan,
    "infinite": -np.inf,
}
SHAPES = {
    "two leaves": ({"w": (3, 2), "b": ()}, 40, 1.0),
    "an axis summed in doubles": ({"w": (2, 5000)}, 12, 1e-20),
    "many numbers": ({"w": (70, 300), "b": (300,)}, 20, 1e20),
    "sums of 64 bits": ({"w": (1,)}, 1100, 0.999),
}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("case", SHAPES.values(), ids=SHAPES)
def test_one_record_moves_the_sum_by_at_most_its_bound_in_whole_numbers(case, dtype):
    """Exactly, wherever it stands; all others are equal, cancel each other, or are random."""
    shapes, n, bound = case
    params = {name: jnp.zeros(shape, dtype) for name, shape in shapes.items()}
    guard = Guard(planned(n=n, max_norm=bound), params, linear)
    most = int(bound / grid_step(bound))
    rng, everyone = np.random.default_rng(1), np.ones(n, dtype=bool)
    for kind, value in ODD.items():
        each = {name: rng.normal(size=(n, *shape)) * bound for name, shape in shapes.items()}
        if kind == "as others":
            each = {name: np.repeat(rows[:1], n, axis=0) * 10 for name, rows in each.items()}
        if kind == "short":
            each = {
                name: np.concatenate([rows[: n // 2], -rows[: n // 2]])
                for name, rows in each.items()
            }
        if kind == "rounded up":  # so many equal numbers that each is rounded up by a half
            length = each["w"][0].size
            sizes = np.arange(length // 2 + 1, length + 1)
            above = (guard._most / np.sqrt(sizes) - 0.51) % 1
            count = sizes[above.argmin()]
            each["w"].reshape(n, -1)[:] = (np.arange(length) < count) * bound * 10
            each = {**{name: 0 * rows for name, rows in each.items()}, "w": each["w"]}
        place = int(rng.integers(n))
        for rows in each.values():
            rows[place] = rows[place] * value if np.isfinite(value) else value
        batch = {name: jnp.asarray(rows, dtype) for name, rows in each.items()}
        without = everyone.copy()
        without[place] = False
        sums = [np.asarray(guard._compiled(params, some, (batch,))) for some in (everyone, without)]
        moved = int(((sums[0] - sums[1]).astype(object) ** 2).sum())
        assert moved <= most**2, kind
        if kind == "as others":  # no sum is cut off
            np.testing.assert_array_equal(sums[0], n * (sums[0] - sums[1]))
        alone = [np.asarray(rows[place], dtype=np.float64).ravel() for rows in batch.values()]
        norm = np.linalg.norm(np.concatenate(alone))
        if np.isfinite(norm) and norm < 1e18 * bound:
            # Clipped to the bound, or rounded: no shorter than that.
            kept = min(norm / grid_step(bound), most) * (1 - 2e-3)
            assert moved**0.5 >= kept - len(sums[0]) ** 0.5, kind
        elif not np.isfinite(norm):
            assert moved == 0, kind
