r"""Clipped sums of the gradients of single records, computed on a module's device.

Gradients are not formed where that is possible (book-keeping: Goodfellow 2015; Li, Tramer, Liang
and Hashimoto 2022; Bu, Wang, Zha and Karypis 2023). A weight W of a linear map or a convolution has
the gradient ``sum_t s_t a_t^T`` for one record: t runs over the positions at which W is used, with
inputs a_t and gradients s_t of the loss by the outputs. Its norm comes from the products
``<s_t, s_u> <a_t, a_u>``, or from the gradient itself where that is cheaper, and the sum over
records is one matrix product. Any other use of a parameter takes gradients record by record, for
that parameter only.

**Records do not mix.** The forward pass is ``torch.vmap`` of one record's loss. So a record's loss
depends on that record only, for every module. Linear maps and attention alone are called with all
records: they are of the last axes.

**One record moves the sum by at most the bound C.** A record adds its gradient times a factor, and
the factor times the norm is at most C. Sums are in doubles, u = 2^-53, whatever the order of
additions is. Three roundings are in the claim:

- Norms are rounded up. A squared norm from products over T positions, of o outputs and i inputs, is
  off by at most ``2 u (o + i + T^2) m^2``, ``m = sum_t |s_t| |a_t|``. A number that is added to
  lengths makes up for underflow.
- A block of records is summed with at most K products a number. The sum is off by at most ``u (K +
  4)`` times the sum of all ``factor m``, which norms of at least m / 64 keep within 64 C for each
  record; and adding up B blocks of a batch of at most n records by ``u B n C``. With and without a
  record, sums are off by ``2 u n (64 (K + 4) + B) C`` together: .02 percent of C for n = 10^6, and
  K is at most 2^14, or T.
- The sum of d numbers is rounded to the grid of the release, down or towards zero, which moves it
  by ``sqrt(d)`` steps: a hundredth of C for d = 10^8. Pieces of a batch keep 27 digits behind the
  step.

The last two roundings shorten the bound that gradients are clipped to. A model is refused if these
roundings take a tenth of the bound.

It is not proved that the numbers of a module, or of a product of one record's tensors, are
independent of the size of the batch. Library kernels may choose another order of operations for
another size, in the last digits.

>>> import torch  # doctest: +SKIP
>>> from dpcal._ext.sums import grid_step
>>> model = torch.nn.Linear(2, 1)  # doctest: +SKIP
>>> sums = ClippedSums(model, {"weight": (1, 2)}, torch.nn.functional.mse_loss,
...                    records=3)  # doctest: +SKIP
>>> values = dict(model.named_parameters())  # doctest: +SKIP
>>> far = torch.full((3, 1), 1e6)  # doctest: +SKIP
>>> steps, fractions = sums(torch.ones(3, 2), far, values, 1.0)  # doctest: +SKIP
>>> ((steps + (fractions >> FRACTION)) * grid_step(1.0) / 3).round(3).tolist()  # doctest: +SKIP
[-0.707, -0.707]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.sums import grid_step, in_steps
from dpcal.adapters.sites import Use, Watch, booked_in, wide
from dpcal.adapters.stepwise import FRACTION
from dpcal.adapters.terms import CANCELLED, DOUBLE, Products, RowTerm, Table, Term
from dpcal.errors import needing

with needing("torch"):
    import torch
    from torch import Tensor, nn
    from torch.func import functional_call, vmap
    from torch.nn import functional
    from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

Integers = NDArray[np.int64]
Names = tuple[str, ...]

CLIPPINGS = ("flat", "per-layer", "automatic")

# Products in one number of a block's sum, unless one record has more.
_TOGETHER = 1 << 14
# Numbers of single records in memory at a time: 20 MB in single precision.
_NUMBERS = 5 << 20
# Most numbers of a gradient that is put next to others.
_SHORT = 1 << 12
# Most numbers of one record's gradient that are formed, if its inputs are not more.
_FORMED = 1 << 20
# Numbers of a long sum.
_LONG = 1 << 16
# Added to norms by automatic clipping: it keeps the scale of small gradients (Bu et al. 2023).
_STABLE = 0.01
# Relative margin for the rounding of factors, and of sums of up to 2^30 squares.
_ROOM = 2.0**-20


@dataclass
class Threshold:
    """A clipping norm that follows a quantile of the norms of gradients (Andrew et al. 2021).

    Sums have one more number: the records within the norm less the records beyond it, in units of
    ``share`` of the bound. Gradients that are as long as the norm get ``kept`` of the bound. One
    record moves both together by at most the bound, as the squares of both add up to 1.

    Attributes
    ----------
    norm
        Norm that gradients are clipped to, public.
    quantile
        Share of the records that shall be within the norm, in (0, 1).
    share
        Share of the bound for the number of records within the norm, in (0, 1).
    """

    norm: float
    quantile: float
    share: float

    @property
    def kept(self) -> float:
        """The share of the bound that gradients have."""
        return math.sqrt(1 - self.share**2) * (1 - 1e-9)

    def follow(self, within: float) -> None:
        """Move the norm by a noisy share of the records within it."""
        surplus = min(max(within, 0.0), 1.0) - self.quantile
        self.norm = min(max(self.norm * math.exp(-0.2 * surplus), 1e-150), 1e150)


class _Weight:
    """All uses of one weight, and of a bias with it; formed where products would be slower."""

    def __init__(self, uses: list[Use], shape: tuple[int, ...], *, with_bias: bool = False) -> None:
        self._uses, self._shape, self._with_bias = uses, shape, with_bias
        o, i = shape[0], math.prod(shape[1:])
        rows = [use.site.rows for use in uses]
        T = sum(
            math.prod(use.signals.shape[1:]) // (i if each else o)
            for use, each in zip(uses, rows, strict=True)
        )
        is_faster = 7 * o * i <= 4 * T**2 * (o + i) + T * o * i
        self._formed = T > 1 and not all(rows) and is_faster and o * i <= max(_FORMED, T * (o + i))
        self.positions = 1 if self._formed else T
        self.numbers = 1 if T == 1 else T * (o + i) + (o * i if self._formed else T * (o + i + T))

    def __getitem__(self, some: slice) -> Term:
        pairs = [use[some] for use in self._uses]
        rows = [use.site.rows for use in self._uses]
        if all(rows):
            left, right = (torch.cat(each, 1) for each in zip(*pairs, strict=True))
            return RowTerm(left.double(), right)
        for k in np.flatnonzero(rows):
            left, right = pairs[k]
            chosen = functional.one_hot(right, self._shape[0]).to(left.dtype)
            pairs[k] = (chosen.unsqueeze(2), left.unsqueeze(2))
        left, right = pairs[0]
        if len(pairs) > 1:
            left, right = (torch.cat(each, 1) for each in zip(*pairs, strict=True))
        if self._formed:
            left, right = left.transpose(1, 2), right.transpose(1, 2)
            is_narrow = 3 * right.shape[3] < left.shape[3]  # products are faster from its side
            formed = (right.mT @ left).mT if is_narrow else left.mT @ right
            return Table(formed.flatten(1))
        return Products(left, right, self._with_bias)


class _Bias:
    """All uses of one bias: sums of gradients by outputs."""

    positions = 1

    def __init__(self, uses: list[Use]) -> None:
        self._uses = uses
        self.numbers = sum(math.prod(use.signals.shape[1:]) for use in uses)

    def __getitem__(self, some: slice) -> Table:
        found = [use.left(some).sum(1) for use in self._uses]
        return Table(found[0] if len(found) == 1 else torch.stack(found).sum(0))


class _Given:
    """Gradients of single records, shape (m, *shape)."""

    positions = 1

    def __init__(self, values: Tensor) -> None:
        self._values = values
        self.numbers = math.prod(values.shape[1:])

    def __getitem__(self, some: slice) -> Table:
        return Table(wide(self._values[some]).reshape(-1, self.numbers))


class _Together:
    """Short gradients of several parameters, one after another, measured in one go."""

    positions = 1

    def __init__(self, parts: Sequence[_Bias | _Given]) -> None:
        self._parts = parts
        self.numbers = sum(part.numbers for part in parts)

    def __getitem__(self, some: slice) -> Term:
        return Table(torch.cat([part[some].values for part in self._parts], 1))


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
    """Return cross entropy for class numbers; vmap takes torch's function apart at each call."""
    if output.dim() != 2:
        return functional.cross_entropy(output, target)
    return -output.log_softmax(1).gather(1, target.unsqueeze(1))


def _are_classes(targets: Any) -> bool:
    whole = isinstance(targets, Tensor) and targets.dtype == torch.int64 and targets.dim() == 1
    return whole and bool((targets >= 0).all())


class ClippedSums:
    """Clipped sums of a module's gradients for single records, rounded to whole numbers.

    Parameters
    ----------
    model
        The module; it is called with a batch of one record at a time, by ``torch.vmap``.
    shapes
        Shapes of the trained parameters, by name, in the order of the sums.
    loss
        ``loss(output, target)`` of a batch of one record.
    clipping
        One of ``CLIPPINGS``, as of a guard.
    records
        Largest number of records, public.
    """

    def __init__(
        self,
        model: nn.Module,
        shapes: Mapping[str, tuple[int, ...]],
        loss: Callable[..., Tensor],
        clipping: str = "flat",
        *,
        records: int,
    ) -> None:
        self.model, self._loss, self._clipping = model, loss, clipping
        self._shapes, self._records = shapes, records
        self._known: dict[Any, tuple[set[str], int]] = {}
        self._modules = list(model.modules())
        ends = np.cumsum([0, *map(math.prod, shapes.values())]).tolist()
        self._places = dict(zip(shapes, map(slice, ends, ends[1:]), strict=False))
        self.dimension: int = ends[-1]

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
            Norm that gradients are clipped to before they are scaled to the bound. The bound when
            omitted.
        alone
            Whether no other sum is added to this one, so that it is rounded down here.

        Returns
        -------
        tuple[numpy.ndarray, numpy.ndarray]
            Whole steps of the bound's grid, and fractions of 2^-27 steps, both of shape
            (dimension,), or of one number more: as :meth:`StepwiseOracle.add_whole` takes them.
            Fractions are 0 if ``alone``.
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
        parts: dict[Names, Any],
        count: int,
        bound: float,
        device: torch.device,
        threshold: Threshold | None,
        alone: bool = False,
    ) -> tuple[Integers, Integers | int]:
        """Return the sum over ``count`` records of ``parts``, which are released on the way."""
        step, positions = grid_step(bound), max(part.positions for part in parts.values())
        together = max(_TOGETHER, positions)
        numbers = sum(part.numbers for part in parts.values())
        size = max(1, min(together // positions, _NUMBERS // numbers))
        limit = self._limit(bound, together, size)
        within, most = 0, 1.0
        if threshold is not None:
            limit -= (1 - threshold.kept) * bound
            most = threshold.kept * bound / threshold.norm
        total = None
        for first in range(0, count, size):
            some: Any = slice(first, first + size)
            terms, squares = [], []
            for part in parts.values():
                terms.append(part[some])
                squares.append(terms[-1].squares())  # while the term is in the processor's cache
            factors = self._factors(torch.stack(squares), limit, most)
            if not bool(factors.all()):
                known = factors.all(0).nonzero().flatten()
                if not len(known):
                    continue
                terms = [part[first + known] for part in parts.values()]
                factors = factors[:, known]
            if threshold is not None:
                within += 2 * int((factors[0] == most).sum()) - len(factors[0])
            scaled = dict(zip(parts, zip(terms, factors / step, strict=True), strict=True))
            del terms
            if first + size >= count:
                parts.clear()
            del part
            block = self._added(scaled)
            total = block if total is None else total.add_(block)
        if total is None:
            total = torch.zeros(self.dimension, dtype=torch.double, device=device)
        if threshold is not None:
            total = torch.cat([total, total.new_zeros(1)])
            total[-1] = within * math.floor(threshold.share * bound / step)
        fractions: Integers | int = 0
        if not alone:
            fractions = ((total - total.floor()) * 2.0**FRACTION).long().cpu().numpy()
            total.floor_()
        return in_steps(total.cpu().numpy()), fractions

    def _added(self, scaled: dict[Names, tuple[Term, Tensor]]) -> Tensor:
        """Return the sum of terms times factors, which are released one by one.

        A long sum takes its memory when all terms but the longest are released.
        """
        order = sorted(scaled, key=lambda names: sum(math.prod(self._shapes[n]) for n in names))
        sums: dict[str, Tensor] = {}
        factors = scaled[order[-1]][1]
        for names in order[:-1] if self.dimension >= _LONG else ():
            term, own = scaled.pop(names)
            sums.update((name, own.new_zeros(self._shapes[name])) for name in names)
            term.add(own, *(sums[name] for name in names))
            del term
        total = factors.new_zeros(self.dimension)
        places = {
            name: total[place].view(self._shapes[name]) for name, place in self._places.items()
        }
        for name, part in sums.items():
            places[name].copy_(part)
        while scaled:
            names, (term, own) = scaled.popitem()
            term.add(own, *(places[name] for name in names))
        return total

    def _limit(self, bound: float, together: int, size: int) -> float:
        """Return the clipping norm at which one record moves a rounded sum by the bound."""
        n = self._records
        sums = 2 * DOUBLE * n * (CANCELLED * (together + 4) + n / size + 1)
        steps = math.sqrt(self.dimension) * (1 + n * 2.0 ** (1 - FRACTION)) + 1
        limit = bound * (1 - sums) - steps * grid_step(bound)
        if limit < 0.9 * bound:
            raise ValueError(
                f"model must have fewer parameters or positions, got {self.dimension} parameters "
                f"and sequences for which rounding takes {1 - limit / bound:.0%} of max_norm."
            )
        return limit

    def _factors(self, squares: Tensor, limit: float, most: float) -> Tensor:
        """Return the factors of each record's gradients, of the shape of squares: (terms, m)."""
        if self._clipping == "per-layer":  # squares of shares of the limit add up to its own
            norms = squares.mul_(len(squares)).sqrt_()
        else:
            norms = squares.sum(0, keepdim=True).sqrt_()
        if self._clipping == "automatic":
            norms, most = norms.add_(_STABLE), math.inf
        factors = (limit * (1 - _ROOM) / norms).clamp_max_(most)
        finite = norms.isfinite().all(0)
        return torch.where(finite, factors, 0.0).expand(len(squares), -1)

    def _gradients(
        self, inputs: Any, targets: Any, values: Mapping[str, Tensor], count: int
    ) -> dict[Names, Any]:
        """Return gradients of trained parameters, of a weight and its bias together if possible."""
        fixed = {name: each.detach() for name, each in values.items()}
        fixed.update(self.model.named_buffers())
        booked, sites = self._booked(fixed, inputs, targets)
        known = {name: fixed[name].requires_grad_() for name in booked}
        apart = {
            name: fixed[name].expand(count, *shape).detach().requires_grad_()
            for name, shape in self._shapes.items()
            if name not in booked
        }
        watch = Watch(known)
        with torch.enable_grad():
            losses, a = self._run(watch, fixed, apart, inputs, targets)
            if watch.elsewhere or len(watch.sites) != sites:
                raise RuntimeError("model must use its parameters in the same way in each call.")
            if watch.changed:
                raise RuntimeError("model must not change the input of a layer in place.")
            places = [place for place, _, _ in watch.outputs if place is not None]
            by = [*apart.values(), *places]
            found = torch.autograd.grad(losses.sum(), by, allow_unused=True)
        parts: dict[Names, Any] = {
            (name,): _Given(torch.zeros_like(each) if own is None else own)
            for (name, each), own in zip(apart.items(), found, strict=False)
        }
        signals, uses = iter(found[len(apart) :]), []
        for site, own, (place, zeros, axis) in zip(watch.sites, a, watch.outputs, strict=True):
            signal = None if place is None else next(signals)
            signal = zeros if signal is None else signal.reshape(zeros.shape)
            uses.append(Use(site, own.detach(), signal.movedim(axis, 0)))
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
        if self._clipping == "per-layer":
            return parts
        short = {
            names: parts.pop(names)
            for names, part in list(parts.items())
            if isinstance(part, _Bias | _Given) and part.numbers <= _SHORT
        }
        if short:
            parts[tuple(name for (name,) in short)] = _Together(list(short.values()))
        return parts

    def _booked(
        self, fixed: Mapping[str, Tensor], inputs: Any, targets: Any
    ) -> tuple[set[str], int]:
        """Return the parameters that are used only at sites, for records of this form.

        The second result is the number of sites.
        """
        leaves, form = tree_flatten((inputs, targets))
        shapes = tuple((each.shape[1:], each.dtype, each.device) for each in leaves)
        key = (form, shapes, tuple(each.training for each in self._modules))
        if key not in self._known:
            first = tree_map(lambda each: each[:1], (inputs, targets))
            seen = Watch({name: fixed[name] for name in self._shapes})
            # The model's draws, as for dropout, do not depend on whether the sites are known.
            with torch.no_grad(), torch.random.fork_rng():
                self._run(seen, fixed, {}, *first)
            booked = booked_in(seen)
            self._known = {key: (booked, sum(site.weight in booked for site in seen.sites))}
        return self._known[key]

    def _run(
        self,
        watch: Watch,
        fixed: Mapping[str, Tensor],
        apart: Mapping[str, Tensor],
        inputs: Any,
        targets: Any,
    ) -> tuple[Tensor, list[Tensor]]:
        """Return losses, and inputs of all sites, a record at each place."""
        simple = self._loss is functional.cross_entropy and _are_classes(targets)
        loss = _cross_entropy if simple else self._loss

        def one(zero: Any, apart: Any, x: Any, y: Any) -> Any:
            watch.begin(zero)
            x, y = tree_map(lambda each: each.unsqueeze(0), (x, y))
            keywords = x if isinstance(x, Mapping) else {}
            arguments = () if keywords else tuple(x) if isinstance(x, list | tuple) else (x,)
            with watch:
                output = functional_call(self.model, {**fixed, **apart}, arguments, keywords)
            return loss(output, y).sum(), watch.inputs

        zeros = torch.zeros(records_in(inputs, targets), device=next(iter(fixed.values())).device)
        return vmap(one, randomness="different")(zeros, dict(apart), inputs, targets)  # type: ignore[no-any-return]
