"""Private gradients for JAX: ``optax.chain(guard.transformation(), optax.sgd(0.1))``.

>>> import optax  # doctest: +SKIP
>>> guard = Guard(plan, params)  # doctest: +SKIP
>>> optimizer = optax.chain(guard.transformation(), optax.sgd(0.1))  # doctest: +SKIP
>>> state = optimizer.init(params)  # doctest: +SKIP
>>> while guard.remaining:  # doctest: +SKIP
...     rows = guard.padded(guard.draw())
...     gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(params, X[rows], y[rows])
...     updates, state = optimizer.update(gradients, state, params)
...     params = optax.apply_updates(params, updates)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.adapters.stepwise import Guarded, OutOfTurn, StepwiseOracle
from dpcal.calibrate.plan import Plan
from dpcal.errors import needing
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Rows

with needing("jax"):
    import jax
    import jax.numpy as jnp
    import optax

__all__ = ["Guard"]


class Guard(Guarded):
    """Draws the batches of a plan, and makes noisy means of clipped gradients of them.

    The answer to a batch is in the ledger before its rows are told. Gradients of single records are
    clipped and summed in numpy, in doubles, and noise is added there, so that the update itself
    must not be compiled by ``jax.jit``; what makes the gradients may be.

    Parameters
    ----------
    plan
        With one query of gradients, for instance from :func:`dpcal.calibrate.dpsgd` or
        :func:`dpcal.calibrate.correlated_dpsgd`.
    params
        A tree of arrays as the model's parameters are.
    noise
        That of :func:`dpcal.optim.run`.
    seed
        For runs that are to be repeated; a seed that others know voids the claim, and one seed is
        good for one data set.

    Raises
    ------
    ValueError
        If the plan asks for other than gradients, or there is nothing to train.
    """

    def __init__(
        self, plan: Plan, params: Any, *, noise: str | None = None, seed: Seed = None
    ) -> None:
        _check_whole(params=params)
        leaves, self._tree = jax.tree_util.tree_flatten(params)
        self._like = [(leaf.shape, leaf.dtype) for leaf in map(jnp.asarray, leaves)]
        for _, dtype in self._like:
            if not jnp.issubdtype(dtype, jnp.floating):
                raise ValueError(f"params must be real floating-point numbers, got {dtype}.")
        dimension = sum(math.prod(shape) for shape, _ in self._like)
        if not dimension:
            raise ValueError("params must hold at least one number, got none.")
        self._oracle = StepwiseOracle(plan, dimension=dimension, seed=seed, noise=noise)
        self._drawn = self._padded = 0

    def draw(self) -> Rows:
        """Write the next answer into the ledger, and return the rows of its batch, maybe none.

        Raises
        ------
        BudgetExceeded
            If the plan is used up.
        OutOfTurn
            If the last batch was not answered for.
        """
        rows = self._oracle.draw()
        self._drawn, self._padded = len(rows), len(self.padded(rows))
        return rows

    def padded(self, rows: Rows) -> Rows:
        """Return rows of a batch with the first record behind them, up to one of a few lengths.

        What is compiled for gradients is compiled once for each length of its input, and Poisson
        batches have many. Lengths are multiples of about a quarter of the expected size, which the
        plan tells. The gradients of what is added are taken and left out of the sum.

        Parameters
        ----------
        rows
            Those of :meth:`draw`.
        """
        query = self.plan.queries[0]
        expected = query.expected_batch_size(self.plan.n)
        step = max(8, 1 << max(0, int(expected / 4).bit_length() - 1))
        missing = -len(rows) % step if len(rows) else step
        return np.concatenate([rows, np.zeros(missing, dtype=rows.dtype)])

    def transformation(self) -> optax.GradientTransformation:
        """Return a gradient transformation from gradients of single records to their noisy mean.

        Its updates are a tree like ``params``. The gradients that it takes have one axis more, the
        first one, over the records that :meth:`draw` named last, or over those with what
        :meth:`padded` puts behind them, which is left out; its state is empty.

        It comes first in a chain. A wrapper of optax, such as ``masked`` or ``MultiSteps``, goes
        around what follows it and never around the guard, because it would see the gradients of
        single records, and what it does with them is not private.

        Raises
        ------
        OutOfTurn
            By its update, if no batch was drawn.
        ValueError
            By its update, if there are more or fewer gradients than records in the batch, or their
            shapes are not those of ``params``. The answer stays in the ledger.
        TypeError
            By its update, in compiled code: inside ``jax.jit``, or in a wrapper that compiles.
        """
        begun = False

        def init(params: Any) -> optax.EmptyState:
            return optax.EmptyState()

        def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
            nonlocal begun
            if not begun:
                # A wrapper that compiles may hand in arrays, but what is made there is traced.
                _check_arrays(jnp.zeros(()))
                begun = True
            return self._answer(updates), state

        return optax.GradientTransformation(init, update)

    def _answer(self, gradients: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(gradients)
        _check_arrays(*leaves)
        _check_whole(gradients=gradients)
        if not self._oracle.drawn:
            raise OutOfTurn("A batch must be drawn before its gradients are handed in.")
        if tree != self._tree:
            raise ValueError(f"gradients must be a tree like params, {self._tree}, got {tree}.")
        self._oracle.add(self._table(leaves))
        answer, parts, start = self._oracle.answer(), [], 0
        for shape, dtype in self._like:
            stop = start + math.prod(shape)
            parts.append(jnp.asarray(answer[start:stop].reshape(shape), dtype=dtype))
            start = stop
        return jax.tree_util.tree_unflatten(self._tree, parts)

    def _table(self, leaves: list[Any]) -> NDArray[np.float64]:
        """Gradients of single records as rows, shape (m, dimension)."""
        columns = []
        for leaf, (shape, _) in zip(leaves, self._like, strict=True):
            found = np.asarray(leaf)
            if len(found.shape) and found.shape[0] in (self._drawn, self._padded):
                found = found[: self._drawn]
            if found.shape != (self._drawn, *shape):
                raise ValueError(
                    "gradients must be those of the single records of the batch, here of shape "
                    f"{(self._drawn, *shape)}, got {found.shape}."
                )
            columns.append(found.astype(np.float64).reshape(self._drawn, math.prod(shape)))
        return np.hstack(columns)


def _check_arrays(*leaves: Any) -> None:
    """Refuse values of compiled code, which has no ledger."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        raise TypeError(
            "The update of private gradients must not be compiled: call it outside of jax.jit, "
            "and put what compiles its inside (optax.MultiSteps, apply_if_finite and "
            "conditionally_transform do) behind the guard: optax.chain(guard.transformation(), "
            "wrapped). The gradients that it takes may be compiled."
        )


def _check_whole(**trees: Any) -> None:
    """Refuse a tree from which optax has taken leaves."""
    for name, tree in trees.items():
        parts = jax.tree_util.tree_leaves(tree, is_leaf=_is_masked)
        if any(map(_is_masked, parts)):
            raise ValueError(
                f"{name} must be whole, got some that optax.masked, or a wrapper that uses it, "
                "hides: it would let gradients of single records through. Put it behind the guard: "
                "optax.chain(guard.transformation(), optax.masked(...))."
            )


def _is_masked(part: Any) -> bool:
    return isinstance(part, optax.MaskedNode)
