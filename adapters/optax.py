r"""Private gradients for JAX: ``guard.gradient(params, X[rows], y[rows])``.

>>> import optax  # doctest: +SKIP
>>> guard = Guard(plan, params, loss)  # doctest: +SKIP
>>> optimizer = optax.adam(1e-3)  # doctest: +SKIP
>>> state = optimizer.init(params)  # doctest: +SKIP
>>> while guard.remaining:  # doctest: +SKIP
...     rows = guard.padded(guard.draw())
...     gradient = guard.gradient(params, X[rows], y[rows])
...     updates, state = optimizer.update(gradient, state, params)
...     params = optax.apply_updates(params, updates)

**One record moves the sum by at most the bound C.** The gradient of each record is multiplied by a
factor and rounded to whole steps of the grid of C. C has at most 2^21 of these steps, and 32-bit
integers hold such sums exactly, in any order. Rounding d numbers lengthens a gradient by at most
``sqrt(d) / 2`` steps, by which C is shortened. The norm is a sum of squares in single precision
along the last axis of each leaf, of k numbers, and in doubles otherwise. Whatever the order, its
relative error is at most ``(k + 2) 2^-24``; the factor and the product with it add two roundings. C
is shortened by ``(k + 8) 2^-24`` of it, which is more. Longer axes than 4,096 are summed in
doubles. Gradients are scaled by a power of two before they are squared, so that underflow is below
2^-60 C. A norm that overflows, above 2^63 C, counts as not finite: the record contributes nothing.

It is not proved that the numbers that ``jax.vmap`` computes for a record are independent of the
size of the batch. Library kernels may choose another order of operations for another size, in the
last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.sums import grid_step
from dpcal.adapters.stepwise import Guarded, OutOfTurn, StepwiseOracle
from dpcal.calibrate.plan import Plan
from dpcal.errors import needing
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Rows

with needing("jax"):
    import jax
    import jax.numpy as jnp

__all__ = ["Guard"]

# Bits of a bound on its grid, and of the significand of single precision.
_STEPS, _DIGITS = 21, 24
# The longest axis whose squares are summed in single precision.
_LONGEST = 1 << 12
# Records of a sum that fits into 32 bits.
_TOGETHER = 1 << 10


class Guard(Guarded):
    """Draws the batches of a plan, and returns noisy means of clipped gradients of them.

    The answer to a batch is in the ledger before its rows are returned. Gradients of single
    records are clipped and summed in one compiled function, and never leave it.

    Parameters
    ----------
    plan
        Plan with one query of gradients, for example from :func:`dpcal.calibrate.dpsgd` or
        :func:`dpcal.calibrate.correlated_dpsgd`.
    params
        A tree of arrays as the model's parameters are.
    loss
        ``loss(params, *record)`` of one record, a real number, in functions of JAX: it is
        differentiated and compiled.
    seed
        For repeatable runs. A seed that others know voids the claim, and one seed is good for one
        data set.

    Raises
    ------
    ValueError
        If the plan has queries other than gradients, its bound is not in [1e-30, 1e30], or there is
        nothing to train.
    """

    def __init__(
        self,
        plan: Plan,
        params: Any,
        loss: Callable[..., Any],
        *,
        seed: Seed = None,
    ) -> None:
        leaves, self._tree = jax.tree_util.tree_flatten(params)
        arrays = list(map(jnp.asarray, leaves))
        self._shapes = [each.shape for each in arrays]
        self._types = [each.dtype for each in arrays]
        for each in self._types:
            if not jnp.issubdtype(each, jnp.floating):
                raise ValueError(f"params must be real floating-point numbers, got {each}.")
        dimension = sum(map(math.prod, self._shapes))
        if not dimension:
            raise ValueError("params must hold at least one number, got none.")
        self._oracle = StepwiseOracle(plan, dimension=dimension, seed=seed)
        bound, step = plan.queries[0].max_norm, grid_step(plan.queries[0].max_norm)
        self._scale = 1 / math.ldexp(step, _STEPS)
        self._most = self._limit(bound / step)
        if not 1e-30 <= bound <= 1e30:
            raise ValueError(f"max_norm must be in [1e-30, 1e30] for JAX, got {bound!r}.")
        self._loss = loss
        self._compiled, self._tree_of = jax.jit(self._sums), jax.jit(self._unflattened)
        self._drawn = self._padded = 0

    def _limit(self, most: float) -> float:
        """Return to how many steps a gradient is clipped, so that it has at most so many."""
        longest = max(shape[-1] if shape else 1 for shape in self._shapes)
        room = (min(longest, _LONGEST) + 8) * 2.0**-_DIGITS
        dimension = self._oracle.dimension
        limit = (most - math.sqrt(dimension) / 2 - 1) * (1 - room)
        if limit < 0.9 * most:
            raise ValueError(
                f"params must hold fewer numbers, got {dimension}, whose rounding takes "
                f"{1 - limit / most:.0%} of max_norm."
            )
        return limit

    def draw(self) -> Rows:
        """Write the next answer into the ledger, and return the rows of its batch, maybe none.

        Raises
        ------
        BudgetExceeded
            If the plan is used up.
        OutOfTurn
            If the last batch has no answer yet.
        """
        rows = self._oracle.draw()
        self._drawn, self._padded = len(rows), len(self.padded(rows))
        return rows

    def padded(self, rows: Rows) -> Rows:
        """Return rows of a batch with the first record behind them, up to one of a few lengths.

        A compiled function is compiled once for each length of its input, and Poisson batches have
        many lengths. Lengths are multiples of about a quarter of the expected size, which the plan
        states. The gradients of added records are computed and left out of the sum.

        Parameters
        ----------
        rows
            Rows that :meth:`draw` returned.
        """
        query = self.plan.queries[0]
        expected = query.expected_batch_size(self.plan.n)
        step = max(8, 1 << max(0, int(expected / 4).bit_length() - 1))
        missing = -len(rows) % step if len(rows) else step
        return np.concatenate([rows, np.zeros(missing, dtype=rows.dtype)])

    def gradient(self, params: Any, *batch: Any) -> Any:
        """Return the noisy mean of the clipped gradients of a batch, a tree like ``params``.

        The divisor is the expected size of a batch, which is public. The use of the answer costs
        nothing: any transformation of optax may follow, compiled or not.

        Parameters
        ----------
        params
            Tree of arrays at which gradients are taken.
        *batch
            Arguments of ``loss`` for a batch: arrays or trees of arrays with a record at each place
            of their first axis. These are the records that :meth:`draw` returned last, or these and
            the records that :meth:`padded` puts behind them.

        Raises
        ------
        OutOfTurn
            If no batch was drawn.
        ValueError
            If ``params`` are not as at the start, or there are more or fewer records than in the
            batch. The answer stays in the ledger; call again, or :meth:`give_up`.
        TypeError
            In compiled code: inside ``jax.jit``, or in a wrapper that compiles.
        """
        leaves, tree = jax.tree_util.tree_flatten(params)
        rows = jax.tree_util.tree_leaves(batch)
        made = jnp.zeros(())  # a tracer in compiled code, whatever the arguments are
        if any(isinstance(each, jax.core.Tracer) for each in [made, *leaves, *rows]):
            raise TypeError(
                "guard.gradient must be called outside of jax.jit, which keeps no ledger: it "
                "compiles the loss itself, and what follows it may be compiled."
            )
        if not self._oracle.drawn:
            raise OutOfTurn("A batch must be drawn before its gradient is asked for.")
        if tree != self._tree or [np.shape(leaf) for leaf in leaves] != self._shapes:
            raise ValueError("params must have the tree and the shapes that the guard was made of.")
        sizes = {np.shape(each)[:1] for each in rows}
        if len(sizes) != 1 or not sizes <= {(self._drawn,), (self._padded,)}:
            raise ValueError(
                f"batch must have the {self._drawn} records that were drawn at the first axis of "
                f"each array, got arrays of {' and '.join(map(str, sizes)) or 'no axes'}."
            )
        ((size,),) = sizes

        def sums(some: Any, bound: float) -> tuple[NDArray[np.int64], int]:
            if not size:
                return np.zeros(self._oracle.dimension, dtype=np.int64), 0
            asked = np.zeros(size, dtype=bool)
            asked[: self._drawn][some] = True
            return np.array(self._compiled(params, asked, batch)), 0

        self._oracle.add_whole(self._drawn, sums)
        return self._tree_of(self._oracle.answer())

    def _sums(self, params: Any, asked: Any, batch: tuple[Any, ...]) -> Any:
        """Return the sum of clipped gradients of the records ``asked`` for, in whole steps."""
        apart = (None, *(0 for _ in batch))
        gradients = jax.vmap(jax.grad(self._loss), apart)(params, *batch)
        with jax.enable_x64(True):
            tables = [self._scaled(leaf) for leaf in jax.tree_util.tree_leaves(gradients)]
            norms = jnp.sqrt(sum(map(_squares, tables)))
            known = asked & jnp.isfinite(norms)
            factors = jnp.minimum(2.0**_STEPS, self._most / norms)
            factors = jnp.where(known, factors, 0.0).astype(jnp.float32)
            kind = jnp.int32 if len(asked) <= _TOGETHER else jnp.int64
            totals = []
            for table in tables:
                each = (-1, *(1 for _ in table.shape[1:]))
                steps = jnp.rint(table * factors.reshape(each))
                steps = jnp.where(known.reshape(each), steps, 0.0).astype(jnp.int32)
                totals.append(steps.sum(0, dtype=kind).ravel().astype(jnp.int64))
            return jnp.concatenate(totals)

    def _unflattened(self, answer: Any) -> Any:
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        parts = jnp.split(answer, ends[:-1])
        made = zip(parts, self._shapes, self._types, strict=True)
        leaves = [part.reshape(shape).astype(kind) for part, shape, kind in made]
        return jax.tree_util.tree_unflatten(self._tree, leaves)

    def _scaled(self, leaf: Any) -> Any:
        """Return gradients in single precision, with 2^21 steps of the grid as their unit."""
        wide = leaf.dtype if leaf.dtype == jnp.float64 else jnp.float32
        return (leaf.astype(wide) * jnp.asarray(self._scale, wide)).astype(jnp.float32)


def _squares(table: Any) -> Any:
    """Return the squared norm of each record's part, in doubles."""
    wide = jnp.float32 if table.shape[-1] <= _LONGEST else jnp.float64
    last = jnp.square(table.astype(wide)).sum(-1) if table.ndim > 1 else jnp.square(table)
    last = last.astype(jnp.float64)
    return last.reshape(len(last), -1).sum(1)
