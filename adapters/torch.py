"""A PyTorch loop that spends a plan: ``Guard(model, plan)``.

>>> import torch  # doctest: +SKIP
>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=1000, batch_size=100, epochs=5, epsilon=2.0, delta=1e-6)
>>> guard = Guard(model, plan)  # doctest: +SKIP
>>> for inputs, targets in guard.loader(dataset):  # doctest: +SKIP
...     if guard.backward(inputs, targets):
...         optimizer.step()
>>> guard.epsilon(1e-6)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.data import Dataset, default_collate

from dpcal import _validate
from dpcal.adapters import loaders
from dpcal.adapters.stepwise import Guarded, OutOfTurn, StepwiseOracle
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Rows, Vector

__all__ = ["Guard", "collate"]

Loss = Callable[[Tensor, Tensor], Tensor]
Gradients = Callable[[nn.Module, Any, Any], Mapping[str, Tensor]]
Collate = Callable[[list[Any]], Any]

# Numbers of gradients that are in memory together: 16 MB.
_NUMBERS = 1 << 21

# Modules whose output for one record depends on others in its batch. Clipping one record's gradient
# would then not bound what it does to the sum.
_MIXING = (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)


class Guard(Guarded):
    r"""Stands between a model and its records: what leaves is a noisy mean of clipped gradients.

    The batch of every step is drawn by the guard as the plan says, and its answer is in the ledger
    before the batch is loaded. Gradients are taken record by record, clipped, and summed on the
    model's device; noise is independent, correlated or discrete, as the plan and ``noise`` say.

    Parameters
    ----------
    model
        A module. Parameters that require gradients are trained; none of its layers may mix the
        records of a batch (batch normalisation does).
    plan
        With one query of gradients, for instance from :func:`dpcal.calibrate.dpsgd` or
        :func:`dpcal.calibrate.correlated_dpsgd`.
    loss
        ``loss(output, target)`` of a batch of one record, a scalar; cross entropy when omitted.
    gradients
        ``gradients(model, inputs, targets)`` returns, for each trained parameter's name, the
        gradients of single records, shape (m, \*shape); it takes the place of ``torch.func`` where
        that cannot differentiate the model. A record's gradient must depend on that record alone.
    noise
        That of :func:`dpcal.optim.run`.
    seed
        For runs that are to be repeated; a seed that others know voids the claim, and one seed is
        good for one data set.

    Raises
    ------
    ValueError
        If the plan asks for other than gradients, the model mixes records, or nothing is trained.
    """

    def __init__(
        self,
        model: nn.Module,
        plan: Plan,
        *,
        loss: Loss = nn.functional.cross_entropy,
        gradients: Gradients | None = None,
        noise: str | None = None,
        seed: Seed = None,
    ) -> None:
        for name, module in model.named_modules():
            if isinstance(module, _MIXING) and not (
                isinstance(module, _MIXING[1]) and not module.track_running_stats
            ):
                raise ValueError(
                    f"model must not mix the records of a batch, and its module {name!r} "
                    f"({type(module).__name__}) does. Use group or layer normalisation."
                )
        self._trained = {
            name: each for name, each in model.named_parameters() if each.requires_grad
        }
        if not self._trained:
            raise ValueError("model must have parameters that require gradients, got none.")
        self.model = model
        self._loss = loss
        self._gradients = self._by_torch if gradients is None else gradients
        self._left = 0
        dimension = sum(each.numel() for each in self._trained.values())
        self._oracle = StepwiseOracle(plan, dimension=dimension, seed=seed, noise=noise)

    def loader(
        self,
        dataset: Dataset[Any],
        *,
        at_most: int | None = None,
        collate: Collate = default_collate,
    ) -> Iterator[Any]:
        """Return an iterator over the batches of all remaining steps.

        Parameters
        ----------
        dataset
            With as many items as the plan has records; a ``DataLoader`` is refused, for its batches
            are not the plan's.
        at_most
            Largest number of records in memory, at least 1: larger batches come in pieces, of which
            :meth:`backward` returns True at the last one. All at once when omitted.
        collate
            Makes a batch of a list of items, as a ``DataLoader``'s ``collate_fn``.

        Yields
        ------
        object
            What ``collate`` makes of the records of a batch, or of a piece of it; of an empty batch
            the same with length 0.
        """
        if hasattr(dataset, "batch_sampler"):
            found = loaders.check(dataset)
            raise ValueError(
                "dataset must be a data set, for the guard draws the batches that it prices: give "
                f"loader.dataset, not a loader with {found.name}. {found.sentence}"
            )
        size = len(dataset)
        if size != self.plan.n:
            raise ValueError(f"dataset must have the plan's n={self.plan.n} items, got {size}.")
        piece = None if at_most is None else _validate.count(at_most=at_most)
        return self._batches(dataset, piece, collate)

    def _batches(self, dataset: Any, piece: int | None, collate: Any) -> Iterator[Any]:
        while self.remaining:
            rows = self._oracle.draw()
            length = max(1, len(rows)) if piece is None else piece
            pieces = [rows[i : i + length] for i in range(0, len(rows), length)] or [rows]
            for left, some in reversed(list(enumerate(reversed(pieces)))):
                self._left = left
                yield _loaded(dataset, some, collate)
            if self._oracle.drawn:
                self._oracle.give_up()
                raise OutOfTurn("backward must be called for every batch that the loader gave.")

    def backward(self, inputs: Any, targets: Any) -> bool:
        """Take gradients of a batch, or of a piece of one; fill ``.grad`` when it is complete.

        Parameters
        ----------
        inputs, targets
            As :meth:`loader` gave them, possibly moved to another device.

        Returns
        -------
        bool
            Whether ``.grad`` of every trained parameter now holds a noisy mean gradient, so that an
            optimizer may take its step.

        Raises
        ------
        BudgetExceeded
            If the plan is used up.
        OutOfTurn
            If the loader gave no batch.
        """
        if not self._oracle.drawn:
            if not self.remaining:
                raise BudgetExceeded(
                    f"the plan's {self.plan.queries[0].count} steps are spent; no record is read."
                )
            raise OutOfTurn("backward needs a batch that guard.loader(dataset) gave.")
        count = len(targets)
        if count:
            for table in self._tables(inputs, targets, count):
                self._oracle.add(table)
        if self._left:
            return False
        self._fill(self._oracle.answer())
        return True

    def _by_torch(self, model: nn.Module, inputs: Any, targets: Any) -> Mapping[str, Tensor]:
        frozen = {name: each.detach() for name, each in model.named_parameters()}
        buffers = dict(model.named_buffers())
        trained = {name: frozen.pop(name) for name in self._trained}

        def loss_of_one(parameters: Any, x: Tensor, y: Tensor) -> Tensor:
            values = {**parameters, **frozen, **buffers}
            output = functional_call(model, values, (x.unsqueeze(0),))
            return self._loss(output, y.unsqueeze(0)).sum()

        gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0), randomness="different")
        found: Mapping[str, Tensor] = gradients(trained, inputs, targets)
        return found

    def _tables(self, inputs: Any, targets: Any, count: int) -> Iterator[NDArray[np.float64]]:
        """Yield gradients of single records, shape (m, dimension), of a few records at a time.

        What fits into a cache is converted and summed there. Gradients by torch are taken of as
        few, too; a function of the user's own is asked once.
        """
        size = min(count, max(1, _NUMBERS // self._oracle.dimension))
        whole = None
        if self._gradients != self._by_torch or not isinstance(inputs, Tensor):
            whole = self._of(inputs, targets, count)
        room = np.empty((size, self._oracle.dimension))
        for first in range(0, count, size):
            some = slice(first, min(first + size, count))
            length = some.stop - first
            found = whole
            if found is None:
                found = self._of(inputs[some], targets[some], length)
            into, column = torch.from_numpy(room[:length]), 0
            for name, each in self._trained.items():
                part = found[name] if whole is None else found[name][some]
                into[:, column : column + each.numel()] = part.reshape(length, -1)
                column += each.numel()
            yield room[:length]

    def _of(self, inputs: Any, targets: Any, count: int) -> dict[str, Tensor]:
        """Return gradients of single records, by parameter; refuse those of another shape."""
        with torch.enable_grad():
            gradients = self._gradients(self.model, inputs, targets)
        found = {}
        for name, each in self._trained.items():
            found[name] = gradients[name].detach()
            if found[name].shape != (count, *each.shape):
                raise ValueError(
                    f"gradients of {name!r} must have shape {(count, *each.shape)}, one a record, "
                    f"got {tuple(found[name].shape)}."
                )
        return found

    def _fill(self, gradient: Vector) -> None:
        start = 0
        for each in self._trained.values():
            part = torch.from_numpy(gradient[start : start + each.numel()])
            each.grad = part.reshape(each.shape).to(device=each.device, dtype=each.dtype)
            start += each.numel()


def collate(dataset: Dataset[Any], collate_fn: Collate = default_collate) -> Collate:
    """Return a ``collate_fn`` for batches that may be empty, of which ``default_collate`` fails.

    An empty batch has the form of a batch of the first record, with length 0: shapes of records are
    taken for public.

    Parameters
    ----------
    dataset
        The loader's, of which the first item is read at once.
    collate_fn
        Makes a batch of a list of items: tensors, texts, and mappings and sequences of them.

    Raises
    ------
    TypeError
        If a batch holds anything else: its length cannot be made 0.
    """
    empty = _emptied(collate_fn([dataset[0]]), strict=True)
    return partial(_collated, collate_fn, empty)


def _collated(collate_fn: Collate, empty: Any, items: list[Any]) -> Any:
    return collate_fn(items) if items else empty


def _loaded(dataset: Any, rows: Rows, collate_fn: Collate) -> Any:
    if len(rows):
        return collate_fn([dataset[int(row)] for row in rows])
    return _emptied(collate_fn([dataset[0]]))


def _emptied(batch: Any, *, strict: bool = False) -> Any:
    """Return a batch of one record without that record; None for a part that has no such form."""
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _emptied(each, strict=strict) for name, each in batch.items()}
    if isinstance(batch, list | tuple):
        # Texts of records are left as they are in a sequence, one for each.
        parts = [each for each in batch if not isinstance(each, str | bytes)]
        return [_emptied(each, strict=strict) for each in parts]
    if strict:
        raise TypeError(
            "collate_fn must make batches of tensors, texts, mappings and sequences, got a "
            f"{type(batch).__name__}: give the loader a collate_fn that also takes an empty list."
        )
    return None
