"""Gradients of single records by one parameter, as terms of a clipped sum.

A term gives the norms of its gradients, rounded up, and adds them, times factors, to a sum of
doubles: see :mod:`dpcal.adapters.clipping`.

>>> import torch  # doctest: +SKIP
>>> term = Table(torch.tensor([[3.0, 4.0]]))  # doctest: +SKIP
>>> total = torch.zeros(2, dtype=torch.double)  # doctest: +SKIP
>>> term.add(1 / term.squares().sqrt(), total)  # doctest: +SKIP
>>> total.tolist()  # doctest: +SKIP
[0.6, 0.8]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpcal._ext.sums import add_scaled, squares_of
from dpcal.errors import needing

with needing("torch"):
    import torch
    from torch import Tensor

DOUBLE = 2.0**-53
# Norms are at least m over this, which bounds the rounding of sums (see the module).
CANCELLED = 64
# Upper bound on the underflow of squares.
_LEAST = 2.0**-450
# Doubles of a product in memory at a time, unless the product has many more: 256 kB.
_CACHED = 1 << 15


class Term(Protocol):
    """The gradients of single records by one parameter, or a weight and its bias, of a block."""

    def squares(self) -> Tensor:
        """Return squared norms in doubles, shape (m,), or more: see the module."""

    def add(self, factors: Tensor, *totals: Tensor) -> None:
        """Add gradients times factors, shape (m,), to a total in doubles for each parameter."""


@dataclass
class Table:
    """Gradients as vectors, shape (m, size), in any precision."""

    values: Tensor

    def squares(self) -> Tensor:
        """See :meth:`Term.squares`."""
        return _squares(self.values)

    def add(self, factors: Tensor, *totals: Tensor) -> None:
        """See :meth:`Term.add`."""
        alone = len(totals) == 1
        total = totals[0].flatten() if alone else factors.new_zeros(self.values.shape[1])
        if factors.device.type == "cpu":
            add_scaled(self.values.contiguous().numpy(), factors.numpy(), total.numpy())
        else:
            total += factors @ self.values.double()
        if not alone:
            for own, part in zip(totals, total.split([own.numel() for own in totals]), strict=True):
                own += part.reshape(own.shape)


@dataclass
class RowTerm:
    """Gradients ``signal`` of rows of a table, shape (m, T, width); ``index`` has shape (m, T)."""

    signal: Tensor
    index: Tensor

    def squares(self) -> Tensor:
        """See :meth:`Term.squares`."""
        same = self.index.unsqueeze(1) == self.index.unsqueeze(2)
        products = (self.signal @ self.signal.mT * same).sum((1, 2))
        mass = self.signal.norm(dim=2).add_(_LEAST).sum(1)
        _, T, width = self.signal.shape
        return _up(products, width + T * T, mass)

    def add(self, factors: Tensor, *totals: Tensor) -> None:
        """See :meth:`Term.add`."""
        added = self.signal * factors.reshape(-1, 1, 1)
        totals[0].index_add_(0, self.index.flatten(), added.flatten(0, 1))


class Products:
    """Sums over T of outer products of ``left``, (m, T, groups, o), and ``right``, (.., i).

    ``left`` is also the gradient by a bias.
    """

    def __init__(self, left: Tensor, right: Tensor, with_bias: bool = False) -> None:
        self.left, self.right, self._with_bias = left, right, with_bias

    def squares(self) -> Tensor:
        """See :meth:`Term.squares`."""
        _, T, _, o = self.left.shape
        if T == 1:
            left, right = map(_squares, (self.left, self.right))
            return right.add_(self._with_bias).mul_(left).sum((1, 2))
        left, right = (each.double().transpose(1, 2) for each in (self.left, self.right))
        left, right = left @ left.mT, right @ right.mT
        lengths = [each.diagonal(dim1=2, dim2=3).sqrt().add_(_LEAST) for each in (left, right)]
        mass = lengths[0].mul_(lengths[1]).sum(2)
        count = o + self.right.shape[3] + T * T
        return _up(left.mul_(right).sum((2, 3)), count, mass).sum(1)

    def add(self, factors: Tensor, *totals: Tensor) -> None:
        """See :meth:`Term.add`."""
        groups = self.left.shape[2]
        total = totals[0].view(groups, -1, self.right.shape[3])
        at_once = max(_CACHED, totals[0].numel() // 8)
        size = max(1, at_once // (self.left[0].numel() + self.right[0].numel()))
        for first in range(0, len(factors), size):
            some = slice(first, first + size)
            left = self.left[some].to(torch.double, copy=True)
            left = left.mul_(factors[some].reshape(-1, 1, 1, 1)).flatten(0, 1)
            right = self.right[some].double().flatten(0, 1)
            for k in range(groups):
                total[k].addmm_(left[:, k].T, right[:, k])
            if self._with_bias:
                totals[1].add_(left.sum((0, 1)))
            del left, right


def _squares(vectors: Tensor) -> Tensor:
    """Return squared norms along the last axis in doubles."""
    if vectors.device.type == "cpu":
        table = vectors.reshape(-1, vectors.shape[-1]).contiguous()
        squares = torch.from_numpy(squares_of(table.numpy())).reshape(vectors.shape[:-1])
    else:
        squares = vectors.double().square_().sum(-1)
    return squares.add_(_LEAST**2)


def _up(squares: Tensor, count: int, mass: Tensor) -> Tensor:
    """Return squared norms rounded up for ``count`` operations, and at least (mass / 64)^2."""
    mass = mass.square()
    least = mass / CANCELLED**2
    return torch.maximum(squares.add_(mass, alpha=2 * DOUBLE * (count + 16)), least)
