r"""How are the gradients of single records clipped and summed on a module's device?

Without forming them where that is possible (book-keeping: Goodfellow 2015; Li, Tramer, Liang and
Hashimoto 2022; Bu, Wang, Zha and Karypis 2023). A weight W of a linear map or a convolution has the
gradient ``sum_t s_t a_t^T`` for one record: t runs over the positions at which W is used, with
inputs a_t and gradients s_t of the loss by the outputs. Its norm comes from the products
``<s_t, s_u> <a_t, a_u>``, or from the gradient itself where that is cheaper, and the sum over
records is one matrix product. Every other use of a parameter has gradients record by record, of
that parameter alone.

**Records do not mix.** The forward pass is ``torch.vmap`` of one record's loss: whatever the module
does, a record's loss depends on that record alone.

**One record moves the sum by at most the bound, exactly.** Vectors are cut to b >= 20 bits towards
zero, a_t in units of ``2^-b |a_t|`` and s_t, which is scaled by the record's factor and ``|a_t|``,
in units of ``2^(e - b)``, with e such that the bound C is in [2^(e - 1), 2^e). Products are then
whole numbers of ``2^(e - 2 b)``, and doubles add them without rounding, in any order, as long as
the absolute values of a sum add up to at most 2^53. Records are summed together only as far as that
holds, and blocks of them add up in whole numbers. At the end the sum is rounded down to the grid of
the release, once. A bias of a weight at one position is the weight of an input that is 1.

For one position, cutting only shortens both vectors, but for the rounding of units, which a part in
2^20 of the bound is kept for. For T > 1 positions and a weight of o by i
numbers, with ``m = sum_t |s_t| |a_t|``, it moves the gradient by at most ``sqrt(i) 2^(1 - b) m +
sqrt(o) T 2^(e - b)``. A norm is rounded up by more than the first term, and by more than the
rounding of doubles, which is ``2^-52 (i + o + T^2 + 16) m^2`` in its square; the bound is shortened
by the second term, and by ``sqrt(d) + 1`` steps of the grid for the last rounding of d numbers: a
hundredth of it for d = 10^8. A model for which they take a tenth is refused.

What is not proved: that the numbers a module computes for a record do not depend on the size of the
batch. Library kernels may choose another order of operations for another size, in the last digits.

>>> import torch  # doctest: +SKIP
>>> from dpcal._ext.sums import grid_step
>>> model = torch.nn.Linear(2, 1)  # doctest: +SKIP
>>> sums = ClippedSums(model, {"weight": (1, 2)}, torch.nn.functional.mse_loss)  # doctest: +SKIP
>>> values = dict(model.named_parameters())  # doctest: +SKIP
>>> far = torch.full((3, 1), 1e6)  # doctest: +SKIP
>>> steps, fractions = sums(torch.ones(3, 2), far, values, 1.0)  # doctest: +SKIP
>>> ((steps + (fractions >> FRACTION)) * grid_step(1.0) / 3).round(3).tolist()  # doctest: +SKIP
[-0.707, -0.707]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcal.adapters.sites import Site, Watch, booked_in
from dpcal.adapters.stepwise import BELOW, FRACTION
from dpcal.errors import needing

with needing("torch"):
    import torch
    from torch import Tensor, nn
    from torch.func import functional_call, vmap
    from torch.nn import functional
    from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

__all__ = ["CLIPPINGS", "ClippedSums", "Threshold", "records_in"]

Integers = NDArray[np.int64]
Signals = tuple[Tensor, Tensor]
Names = tuple[str, ...]

# How a record's gradient is scaled: see the guard.
CLIPPINGS = ("flat", "per-layer", "automatic")

# A bound has up to 2^21 steps of the release's grid, and so many digits of fractions of them.
_DIGITS = 21 + FRACTION
# Bits that the two vectors of a product are cut to, for T = 1 and for the longest sequences.
_FEWEST, _MOST = 20, 24
# Records that are summed together: 2^12 numbers of 41 bits add up in doubles.
_TOGETHER = 1 << 12
# Numbers of single records that are in memory in doubles: 64 MB.
_NUMBERS = 1 << 23
# What automatic clipping adds to norms, which keeps the scale of small gradients (Bu et al. 2023).
_STABLE = 0.01
# Relative room for the rounding of factors, and of sums of up to 2^30 squares.
_ROOM = 2.0**-20


@dataclass
class Threshold:
    """A clipping norm that follows a quantile of the norms of gradients (Andrew et al. 2021).

    Sums have one number more, the records within the norm less those beyond it, in units of
    ``share`` of the bound; gradients that are as long as the norm have the other ``kept`` of it.
    One record moves both together by at most the bound, as the squares of both add up to 1.

    Attributes
    ----------
    norm
        What gradients are clipped to, public.
    quantile
        The share of records that shall be within it, in (0, 1).
    share
        In (0, 1).
    """

    norm: float
    quantile: float
    share: float

    @property
    def kept(self) -> float:
        """The share of the bound that gradients have."""
        return math.sqrt(1 - self.share**2) * (1 - 1e-9)

    def follow(self, within: float) -> None:
        """Move the norm, by a noisy share of the records that are within it."""
        surplus = min(max(within, 0.0), 1.0) - self.quantile
        self.norm = min(max(self.norm * math.exp(-0.2 * surplus), 1e-150), 1e150)


@dataclass(eq=False)
class _Use:
    """A site with its inputs and the gradients by its outputs, a record at each place."""

    site: Site
    inputs: Tensor
    signals: Tensor

    def __getitem__(self, some: slice) -> Signals:
        """Return both vectors of some records, in doubles; row numbers are whole."""
        left, inputs = self.site.left(self.signals[some].double()), self.inputs[some]
        if self.site.rows:
            return left, self.site.right(inputs)
        right = self.site.right(inputs.double())
        return left.reshape(*right.shape[:3], -1), right


class _Weight:
    """All uses of one weight."""

    def __init__(
        self, uses: list[_Use], shape: tuple[int, ...], *, with_bias: bool = False
    ) -> None:
        self._uses, self._shape, self._with_bias = uses, shape, with_bias
        o, i = shape[0], math.prod(shape[1:])
        sizes = [(math.prod(use.signals.shape[1:]), use.site.rows) for use in uses]
        places = [size // (i if rows else o) for size, rows in sizes]
        self.numbers = sum(T * (o + i + T) for T in places)

    def __getitem__(self, some: slice) -> _Term:
        pairs = [use[some] for use in self._uses]
        rows = [use.site.rows for use in self._uses]
        if not all(rows):
            # A table of rows is a linear map of ones at row numbers.
            for k in np.flatnonzero(rows):
                left, right = pairs[k]
                chosen = functional.one_hot(right, self._shape[0]).double()
                pairs[k] = (chosen.unsqueeze(2), left.unsqueeze(2))
        left, right = pairs[0]
        if len(pairs) > 1:
            left, right = (torch.cat(each, 1) for each in zip(*pairs, strict=True))
        if self._with_bias:  # a weight of an input that is 1
            right = functional.pad(right, (0, 1), value=1.0)
        return _Rows(left, right, self._shape) if all(rows) else _Products(left, right)


class _Bias:
    """All uses of one bias: sums of gradients by outputs."""

    def __init__(self, uses: list[_Use]) -> None:
        self._uses = uses
        self.numbers = sum(math.prod(use.signals.shape[1:]) for use in uses)

    def __getitem__(self, some: slice) -> _Term:
        found = [use.site.left(use.signals[some]).sum(1, dtype=torch.double) for use in self._uses]
        return _Table(found[0] if len(found) == 1 else torch.stack(found).sum(0))


class _Given:
    """Gradients of single records, shape (m, *shape)."""

    def __init__(self, values: Tensor) -> None:
        self._values = values
        self.numbers = math.prod(values.shape[1:])

    def __getitem__(self, some: slice) -> _Term:
        return _Table(self._values[some].reshape(-1, self.numbers).double())


class _Term(Protocol):
    """The gradients of single records by one parameter, of a block of them, in doubles."""

    def squares(self) -> Tensor:
        """Return squared norms, shape (m,), of what ``whole`` adds for a factor of 1, or more."""

    def shorter(self, exponent: int) -> float:
        """Return by how much more cutting lengthens what is added, whatever the factor is."""

    def most(self, exponent: int) -> Tensor | float:
        """Return factors, shape (m,), up to which a record's numbers have room."""

    def whole(self, factors: Tensor, exponent: int) -> Iterator[Tensor]:
        """Yield sums, which are whole numbers of 2^(exponent - 48)."""


@dataclass
class _Table:
    """Vectors, shape (m, size)."""

    values: Tensor

    def squares(self) -> Tensor:
        return self.values.square().sum(1)

    def shorter(self, exponent: int) -> float:
        return 0.0

    def most(self, exponent: int) -> float:
        return math.inf

    def whole(self, factors: Tensor, exponent: int) -> Iterator[Tensor]:
        units = (2.0 ** (exponent - 40) / factors).unsqueeze(1)
        yield _cut(self.values, units).sum(0).mul_(2.0 ** (_DIGITS - 40))


@dataclass
class _Rows:
    """Gradients ``signal`` of rows of a table, shape (m, T, width); ``index`` has shape (m, T)."""

    signal: Tensor
    index: Tensor
    shape: tuple[int, ...]

    def squares(self) -> Tensor:
        same = self.index.unsqueeze(1) == self.index.unsqueeze(2)
        products = (self.signal @ self.signal.mT * same).sum((1, 2))
        _, T, width = self.signal.shape
        return _up(products, width + T * T, self._mass())

    def _mass(self) -> Tensor:
        return self.signal.norm(dim=2).sum(1)

    def shorter(self, exponent: int) -> float:
        _, T, width = self.signal.shape
        return math.ldexp(math.sqrt(width) * T, exponent - 40)

    def most(self, exponent: int) -> Tensor:
        return 2.0 ** (exponent + 12) / self._mass()

    def whole(self, factors: Tensor, exponent: int) -> Iterator[Tensor]:
        units = (2.0 ** (exponent - 40) / factors).reshape(-1, 1, 1)
        cut = _cut(self.signal, units).mul_(2.0 ** (_DIGITS - 40))
        for some in _together(self.most(exponent) / factors):
            total = torch.zeros(self.shape, dtype=torch.double, device=cut.device)
            yield total.index_add_(0, self.index[some].flatten(), cut[some].flatten(0, 1))


class _Products:
    """Sums over T of outer products of ``left``, (m, T, groups, o), and ``right``, (.., i)."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.left, self.right = left, right
        _, self.T, self.groups, self.o = left.shape
        self.i = right.shape[3]
        self.bits = min(_MOST, _FEWEST + math.ceil(math.log2(self.T) / 2))
        self.lengths = right.norm(dim=3)
        self.mass = (left.norm(dim=3) * self.lengths).sum(1)

    def squares(self) -> Tensor:
        T, o, i = self.T, self.o, self.i
        if T == 1:
            return self.mass.square().sum(1)
        left, right = self.left.transpose(1, 2), self.right.transpose(1, 2)
        if T * (o + i) < o * i:
            found, count = ((left @ left.mT) * (right @ right.mT)).sum((2, 3)), o + i + T * T
        else:
            found, count = (left.mT @ right).square().sum((2, 3)), T + o * i
        grown = _up(found, count, self.mass).sqrt()
        return (grown + math.sqrt(i) * 2.0 ** (1 - self.bits) * self.mass).square().sum(1)

    def shorter(self, exponent: int) -> float:
        if self.T == 1:
            return 0.0
        return math.ldexp(math.sqrt(self.o * self.groups) * self.T, exponent - self.bits)

    def most(self, exponent: int) -> Tensor | float:
        if self.T == 1:
            return math.inf
        return 2.0 ** (exponent + 52 - 2 * self.bits) / self.mass.amax(1)

    def whole(self, factors: Tensor, exponent: int) -> Iterator[Tensor]:
        # Vectors of length 0 stay.
        lengths = self.lengths.unsqueeze(3) + 1e-300
        right = _cut(self.right, lengths * 2.0**-self.bits)
        units = (2.0 ** (exponent - self.bits) / factors).reshape(-1, 1, 1, 1) / lengths
        left = _cut(self.left, units).mul_(2.0 ** (_DIGITS - 2 * self.bits))
        for some in _together(self.most(exponent) / factors):
            yield _added(left[some], right[some])


def _together(room: Tensor) -> Iterator[slice]:
    """Yield slices of records, of which each has ``room`` in a sum of so many."""
    count = len(room)
    size = max(1, math.floor(min(float(room.amin()), count)) if count else 0)
    for first in range(0, max(1, count), size):
        yield slice(first, first + size)


def _added(left: Tensor, right: Tensor) -> Tensor:
    """Return sums of products over records and positions, shape (groups, o, i)."""
    if left.shape[2] == 1:
        return left.flatten(0, 2).T @ right.flatten(0, 2)
    return torch.einsum("mtgo,mtgi->goi", left, right)


def _cut(numbers: Tensor, units: Tensor) -> Tensor:
    """Return whole numbers of units, cut towards zero."""
    return numbers.div(units, rounding_mode="trunc")


def _step(exponent: int) -> float:
    """Return the step of the release's grid."""
    return math.ldexp(1.0, exponent - _DIGITS + FRACTION)


def _up(squares: Tensor, count: int, mass: Tensor) -> Tensor:
    """Return sums of products, rounded up by more than ``count`` operations in doubles."""
    return squares + 2.0**-52 * (count + 16) * mass.square()


def _plus(steps: Tensor | None, more: Tensor) -> Tensor:
    return more if steps is None else steps.add_(more)


def records_in(inputs: Any, targets: Any) -> int:
    """Return the number of records of a batch; refuse tensors with other first axes."""
    tensors = [each for each in tree_leaves((inputs, targets)) if isinstance(each, Tensor)]
    sizes = sorted({len(each) if each.dim() else 0 for each in tensors}) or [len(targets)]
    if len(sizes) > 1:
        raise ValueError(
            "inputs and targets must have a record at each place of their first axes, got axes of "
            f"{' and '.join(map(str, sizes))}."
        )
    return sizes[0]


def _cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Return cross entropy for numbers of classes; vmap takes that of torch apart at each call."""
    if output.dim() != 2:
        return functional.cross_entropy(output, target)
    return -output.log_softmax(1).gather(1, target.unsqueeze(1))


def _are_classes(targets: Any) -> bool:
    whole = isinstance(targets, Tensor) and targets.dtype == torch.int64 and targets.dim() == 1
    return whole and bool((targets >= 0).all())


class ClippedSums:
    """Clipped sums of a module's gradients for single records, in whole numbers.

    Parameters
    ----------
    model
        The module; it is called with a batch of one record at a time, by ``torch.vmap``.
    shapes
        Of the parameters that are trained, by name, in the order of the sums.
    loss
        ``loss(output, target)`` of a batch of one record.
    clipping
        One of ``CLIPPINGS``, as of a guard.
    """

    def __init__(
        self,
        model: nn.Module,
        shapes: Mapping[str, tuple[int, ...]],
        loss: Callable[..., Tensor],
        clipping: str = "flat",
    ) -> None:
        self.model, self._loss, self._clipping = model, loss, clipping
        self._shapes = shapes
        self._known: dict[Any, tuple[set[str], list[Tensor]]] = {}
        ends = np.cumsum([0, *map(math.prod, shapes.values())])
        self._places = {name: slice(*ends[i : i + 2]) for i, name in enumerate(shapes)}
        self.dimension = int(ends[-1])

    def __call__(
        self,
        inputs: Any,
        targets: Any,
        values: Mapping[str, Tensor],
        bound: float,
        threshold: Threshold | None = None,
        *,
        alone: bool = False,
    ) -> tuple[Integers, Integers | int]:
        """Return the sum of clipped gradients.

        Parameters
        ----------
        inputs, targets
            Tensors, or tuples, lists and mappings of them, with a record at each place of the first
            axis. Tuples and lists are arguments of the module, mappings its keywords.
        values
            All parameters of the module, by name.
        bound
            C > 0.
        threshold
            What gradients are clipped to, before they are scaled to the bound; the bound when
            omitted.
        alone
            Whether no other sum is added to this one, so that it is rounded down here.

        Returns
        -------
        tuple[numpy.ndarray, numpy.ndarray]
            Whole steps of the bound's grid, and fractions of 2^-27 steps, both of shape
            (dimension,), or of one number more: as :meth:`StepwiseOracle.add_whole` takes them.
            Fractions are 0 for a sum that is alone.
        """
        count, device = records_in(inputs, targets), next(iter(values.values())).device
        parts = self._gradients(inputs, targets, values, count)
        return self._total(parts, count, bound, device, threshold, alone)

    def of(
        self, gradients: Mapping[str, Tensor], bound: float, threshold: Threshold | None = None
    ) -> tuple[Integers, Integers | int]:
        r"""Return the sum of gradients of single records, shapes (m, \*shape), each clipped."""
        given: dict[Names, Any] = {(name,): _Given(gradients[name]) for name in self._shapes}
        first = gradients[next(iter(self._shapes))]
        return self._total(given, len(first), bound, first.device, threshold)

    def _total(
        self,
        parts: Mapping[Names, Any],
        count: int,
        bound: float,
        device: torch.device,
        threshold: Threshold | None,
        alone: bool = False,
    ) -> tuple[Integers, Integers | int]:
        """Return the sum of what ``parts`` hold of ``count`` records, as :meth:`__call__` does."""
        exponent = math.frexp(bound)[1]
        size = max(1, min(_TOGETHER, _NUMBERS // sum(part.numbers for part in parts.values())))
        # The sum of 2^12 records is below 2^60 fractions.
        numbers = self.dimension + (threshold is not None)
        fine = torch.empty(numbers, dtype=torch.int64, device=device)
        steps: Any = None
        within, longest, most = 0, bound, 1.0
        if threshold is not None:
            longest = threshold.kept * bound
            most = longest / threshold.norm
        for first in range(0, count, size):
            if first:
                steps = _plus(steps, fine >> FRACTION)
                fine &= BELOW
            some: Any = slice(first, first + size)
            terms = [part[some] for part in parts.values()]
            factors = self._factors(terms, longest, exponent, most)
            if not bool(factors.all()):
                # Records of which nothing is added, because they are not finite.
                known = factors.all(0).nonzero().flatten()
                if not len(known):
                    if not first:
                        fine.zero_()
                    continue
                terms = [part[first + known] for part in parts.values()]
                factors = factors[:, known]
            for names, term, own in zip(parts, terms, factors, strict=True):
                for k, total in enumerate(term.whole(own, exponent)):
                    found = (total,) if len(names) == 1 else total.tensor_split([-1], -1)
                    for name, each in zip(names, found, strict=True):
                        part = fine[self._places[name]].view(each.shape)
                        part.add_(each.long()) if first or k else part.copy_(each)
            within += 2 * int((factors[0] == most).sum()) - len(factors[0]) if threshold else 0
        if threshold is not None:
            fine[-1] = 0
        fractions = 0 if alone else (fine & BELOW).cpu().numpy()
        fine >>= FRACTION
        steps = _plus(steps, fine)
        if threshold is not None:
            steps[-1] = within * math.floor(threshold.share * bound / _step(exponent))
        return steps.cpu().numpy(), fractions

    def _factors(
        self, terms: list[_Term], bound: float, exponent: int, most: float = 1.0
    ) -> Tensor:
        """Return what each record's gradients are multiplied by, shape (terms, m)."""
        cut = math.sqrt(sum(term.shorter(exponent) ** 2 for term in terms))
        limit = bound - (math.sqrt(self.dimension) + 1) * _step(exponent) - cut
        if limit < 0.9 * bound:
            raise ValueError(
                f"model must have fewer parameters or positions, got {self.dimension} parameters "
                f"and sequences for which rounding takes {1 - limit / bound:.0%} of max_norm."
            )
        squares = torch.stack([term.squares() for term in terms])
        finite = squares.isfinite().all(0)
        if self._clipping == "per-layer":  # squares of shares of the limit add up to its own
            norms = (squares * len(terms)).sqrt()
        else:
            norms = squares.sum(0, keepdim=True).sqrt()
        if self._clipping == "automatic":
            norms, most = norms + _STABLE, math.inf
        factors = (limit * (1 - _ROOM) / norms).clamp_max(most).expand(len(terms), -1)
        room = [torch.as_tensor(term.most(exponent)).expand_as(finite) for term in terms]
        most_of = torch.stack([each.to(factors) for each in room])
        if self._clipping != "per-layer":
            most_of = most_of.amin(0)
        return torch.where(finite, torch.minimum(factors, most_of), 0.0)

    def _gradients(
        self, inputs: Any, targets: Any, values: Mapping[str, Tensor], count: int
    ) -> dict[Names, Any]:
        """Return gradients of trained parameters, of a weight and its bias together if possible."""
        fixed = {name: each.detach() for name, each in values.items()}
        fixed.update(self.model.named_buffers())
        trained = {name: fixed[name] for name in self._shapes}
        booked, zeros = self._sites(fixed, trained, inputs, targets)

        def own(like: Tensor) -> Tensor:
            return like.expand(count, *like.shape).detach().requires_grad_()

        apart = {name: own(each) for name, each in trained.items() if name not in booked}
        added = list(map(own, zeros))
        watch = Watch({name: trained[name] for name in booked})
        with torch.enable_grad():
            losses, a, _ = self._run(watch, fixed, apart, added, inputs, targets)
            if watch.elsewhere or len(watch.sites) != len(added):
                raise RuntimeError("model must use its parameters in the same way in each call.")
            by = [*apart.values(), *added]
            found = torch.autograd.grad(losses.sum(), by, allow_unused=True, materialize_grads=True)
        uses = list(map(_Use, watch.sites, map(Tensor.detach, a), found[len(apart) :]))
        parts: dict[Names, Any] = {
            (name,): _Given(each) for name, each in zip(apart, found, strict=False)
        }
        of_bias = {name: [use for use in uses if use.site.bias == name] for name in booked}
        for name in booked:
            of_weight, shape = [use for use in uses if use.site.weight == name], self._shapes[name]
            bias = str(of_weight[0].site.bias) if of_weight else name
            single = all(use.signals[0].numel() == shape[0] for use in of_weight)
            if of_weight and single and len(shape) == 2 and of_bias.get(bias) == of_weight:
                parts[name, bias] = _Weight(of_weight, shape, with_bias=True)
                del of_bias[bias]
            elif of_weight:
                parts[(name,)] = _Weight(of_weight, shape)
        parts.update({(name,): _Bias(uses) for name, uses in of_bias.items() if uses})
        return parts

    def _sites(
        self, fixed: Mapping[str, Tensor], trained: Mapping[str, Tensor], inputs: Any, targets: Any
    ) -> tuple[set[str], list[Tensor]]:
        """Return the parameters that are used at sites alone, and zeros for the sites' outputs.

        They are those of one record, and known for records of the same form.
        """
        leaves, form = tree_flatten((inputs, targets))
        shapes = tuple((each.shape[1:], each.dtype, each.device) for each in leaves)
        key = (form, shapes, tuple(each.training for each in self.model.modules()))
        if key not in self._known:
            first = tree_map(lambda each: each[:1], (inputs, targets))
            seen = Watch(trained)
            # What a model draws, for dropout, is what it would draw if the sites were known.
            with torch.no_grad(), torch.random.fork_rng():
                outputs = self._run(seen, fixed, {}, [], *first)[2]
            booked = booked_in(seen)
            zeros = [
                torch.zeros((), dtype=each.dtype, device=each.device).expand(each.shape[1:])
                for site, each in zip(seen.sites, outputs, strict=True)
                if site.weight in booked
            ]
            self._known = {key: (booked, zeros)}
        return self._known[key]

    def _run(
        self,
        watch: Watch,
        fixed: Mapping[str, Tensor],
        apart: Mapping[str, Tensor],
        added: Sequence[Tensor],
        inputs: Any,
        targets: Any,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Return losses, and inputs and outputs of all sites, a record at each place."""
        simple = self._loss is functional.cross_entropy and _are_classes(targets)
        loss = _cross_entropy if simple else self._loss

        def one(apart: Any, added: Any, x: Any, y: Any) -> Any:
            watch.added = added
            x, y = tree_map(lambda each: each.unsqueeze(0), (x, y))
            keywords = x if isinstance(x, Mapping) else {}
            arguments = () if keywords else tuple(x) if isinstance(x, list | tuple) else (x,)
            with watch:
                output = functional_call(self.model, {**fixed, **apart}, arguments, keywords)
            return loss(output, y).sum(), watch.inputs, watch.outputs

        mapped = vmap(one, randomness="different")
        losses, a, outputs = mapped(dict(apart), list(added), inputs, targets)
        return losses, a, outputs
