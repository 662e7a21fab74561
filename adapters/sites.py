"""Uses of a module's parameters at which their gradients are products of two vectors.

Such a use is a site: a call of a linear map, a convolution or an embedding with a trained weight.
:class:`torch.overrides.TorchFunctionMode` sees these calls in every module, and attention's own
calls as well.

>>> import torch  # doctest: +SKIP
>>> model = torch.nn.Linear(2, 1)  # doctest: +SKIP
>>> with Watch(dict(model.named_parameters())) as seen:  # doctest: +SKIP
...     _ = model(torch.ones(3, 2)) + model.bias
>>> [site.weight for site in seen.sites], seen.elsewhere, booked_in(seen)  # doctest: +SKIP
(['weight'], {'bias'}, {'weight'})
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

from dpcal.errors import needing

with needing("torch"):
    import torch
    from torch import Tensor
    from torch._C import _functorch as functorch
    from torch.autograd.graph import get_gradient_edge
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Site:
    """One use of a weight; the gradient is a sum of outer products over positions.

    ``left`` makes (m, T, outputs) of gradients by the output, and ``right`` makes (m, T, groups,
    ..) of inputs. If the use is of ``rows``, ``right`` makes row numbers (m, T), and one row may be
    left out.
    """

    weight: str
    bias: str | None
    left: Callable[[Tensor], Tensor]
    right: Callable[[Tensor], Tensor]
    rows: bool = False
    left_out: int | None = None


@dataclass(eq=False)
class Use:
    """A site with its inputs and the gradients by its outputs, a record at each place."""

    site: Site
    inputs: Tensor
    signals: Tensor

    def __getitem__(self, some: slice) -> tuple[Tensor, Tensor]:
        """Return both vectors of some records; row numbers are whole."""
        left, right = self.left(some), self.site.right(self.inputs[some])
        if self.site.rows:
            return left, right
        return left.reshape(*right.shape[:3], -1), right.to(left.dtype)

    def left(self, some: slice) -> Tensor:
        """Return the gradients by outputs, (m, T, outputs), in single precision or doubles."""
        signals = self.signals[some]
        if self.site.left_out is not None:
            signals = signals * (self.inputs[some] != self.site.left_out).unsqueeze(-1)
        return self.site.left(wide(signals))


def wide(values: Tensor) -> Tensor:
    """Return values in single precision at least."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


class Watch(TorchFunctionMode):  # type: ignore[misc]
    """Sees each use of the parameters that it is given, by the identity of their tensors.

    ``outputs`` has of each site's output for all records, within ``torch.vmap`` and after
    :meth:`begin`: its place in the graph, or None; zeros; the axis of the records.
    """

    def __init__(self, known: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._names = {id(each): name for name, each in known.items()}
        self._zero: Tensor | None = None
        self._held: list[tuple[Tensor, int]] = []
        self._level = functorch.maybe_current_level()
        self.sites: list[Site] = []
        self.inputs: list[Tensor] = []
        self.outputs: list[tuple[Any, Tensor, int]] = []
        self.elsewhere: set[str] = set()

    def begin(self, zero: Tensor) -> None:
        """Begin a function that ``torch.vmap`` calls with a zero for each record."""
        self._zero, self._level = zero, functorch.maybe_current_level()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.multi_head_attention_forward:
            with self:
                return _opened(func)(*args, **kwargs)
        if func is functional.scaled_dot_product_attention and args[0].device.type == "cpu":
            return _attention(*args, **kwargs)
        site = None
        if func in _RULES and functorch.maybe_current_level() == self._level:
            kwargs = dict(kwargs)
            args = (*args, *(kwargs.pop(name) for name in ("input", "weight") if name in kwargs))
            site = _RULES[func](self._named, *args, **kwargs)
        if site is None:
            result = func(*args, **kwargs)
            used = self._used((*args, *kwargs.values()) if kwargs else args)
            if used and any(isinstance(each, Tensor) for each in tree_leaves(result)):
                self.elsewhere.update(used)
            return result
        result = (_mapped if func is functional.linear else func)(*args, **kwargs)
        self.sites.append(site)
        self.inputs.append(args[0])
        if self._zero is None:
            return result
        held = functorch.get_unwrapped(args[0]) if _is_of_all(args[0]) else args[0]
        self._held.append((held, held._version))
        return self._placed(result, self._zero)

    @property
    def changed(self) -> bool:
        """Whether a site's input was changed in place after its use."""
        return any(each._version != version for each, version in self._held)

    def _used(self, values: Any) -> list[str]:
        """Return the names of the parameters that are in the arguments of a call."""
        nested = [each for each in values if type(each) in (list, tuple, dict)]
        flat = itertools.chain(values, tree_leaves(nested)) if nested else values
        return [self._names[id(each)] for each in flat if id(each) in self._names]

    def _placed(self, result: Tensor, zero: Tensor) -> Tensor:
        """Keep a site's output, before the model may change it in place."""
        if not _is_whole(result):
            result = result + zero.to(result.dtype)
        raw = functorch.get_unwrapped(result)
        whole = raw if raw._base is None else raw._base
        place = get_gradient_edge(whole) if whole.requires_grad else None
        zeros = raw.new_zeros(()).expand(raw.shape)
        self.outputs.append((place, zeros, functorch.maybe_get_bdim(result)))
        return result

    def _named(self, tensor: Any) -> str | None:
        return self._names.get(id(tensor))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return attention, computed by operations for which vmap has rules."""
    if attn_mask is None and not (dropout_p or is_causal or enable_gqa):
        factor = query.shape[-1] ** -0.5 if scale is None else scale

        def weighted(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return (q * factor @ k.mT).softmax(-1) @ v

        if not all(map(_is_of_all, (query, key, value))):
            return weighted(query, key, value)
        return _at_once(weighted, query, key, value)
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )


def _mapped(a: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return a linear map."""
    if not _is_of_all(a):
        return functional.linear(a, weight, bias)
    return _at_once(lambda raw: functional.linear(raw, weight, bias), a)


def _is_of_all(values: Any) -> bool:
    """Whether a tensor has a value for each record, and is in no transform of the model's own."""
    is_batched = functorch.is_batchedtensor
    return is_batched(values) and not is_batched(functorch.get_unwrapped(values))


def _at_once(func: Callable[..., Tensor], *given: Tensor) -> Tensor:
    """Call a function of the last axes with tensors of all records."""
    raws = [functorch.get_unwrapped(a).movedim(functorch.maybe_get_bdim(a), 0) for a in given]
    with torch._C._DisableFuncTorch():
        result = func(*raws)
    return functorch._add_batch_dim(result, 0, functorch.maybe_get_level(given[0]))


def _is_whole(result: Tensor) -> bool:
    """Whether a tensor is an operation's whole output for all records."""
    if not _is_of_all(result):
        return False
    raw = functorch.get_unwrapped(result)
    whole = raw if raw._base is None else raw._base
    is_dense = whole.is_contiguous() and raw.is_contiguous()
    return whole is raw or bool(is_dense and whole.numel() == raw.numel())


Named = Callable[[Any], str | None]


def _opened(func: Any) -> Any:
    """Return a function of ``torch.nn.functional`` for which a watch sees the inner calls only."""
    scope = {**func.__globals__, "has_torch_function": lambda _: False}
    scope["_in_projection_packed"] = partial(_projected, scope["_in_projection_packed"])
    made = FunctionType(func.__code__, scope, func.__name__, func.__defaults__)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _projected(usual: Any, q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Any = None) -> Any:
    """Return queries, keys and values of which gradients are not padded by zeros one by one."""
    if not q is k is v:
        return usual(q, k, v, w, b)
    parts = functional.linear(q, w, b).unflatten(-1, (3, q.shape[-1])).unbind(-2)
    return parts if q.shape[1] == 1 else tuple(each.contiguous() for each in parts)


def _linear(named: Named, a: Tensor, weight: Tensor, bias: Any = None) -> Site | None:
    def left(s: Tensor) -> Tensor:
        return s.reshape(len(s), -1, s.shape[-1])

    name = named(weight)
    if name is None:
        return None
    return Site(name, named(bias), left, lambda a: left(a).unsqueeze(2))


def _convolution(
    named: Named,
    a: Tensor,
    weight: Tensor,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Site | None:
    name, (outputs, _, *kernel) = named(weight), weight.shape
    if name is None or padding == "same":
        return None

    def each(value: Any) -> tuple[int, ...]:
        return (value,) * len(kernel) if isinstance(value, int) else tuple(value)

    widths = each(0 if padding == "valid" else padding)
    margins = [side for width in reversed(widths) for side in (width, width)]
    axes = list(enumerate(zip(kernel, each(stride), each(dilation), strict=True), 2))

    def right(a: Tensor) -> Tensor:
        a = functional.pad(a.reshape(len(a), -1, *a.shape[-len(kernel) :]), margins)
        places = torch.arange(a[0].numel(), device=a.device).reshape(1, *a.shape[1:])
        for axis, (size, step, apart) in axes:
            places = places.unfold(axis, (size - 1) * apart + 1, step)[..., ::apart]
        # Shape (1, channels, places.., kernel..) becomes T rows with the numbers of each group.
        places = places.flatten(2, 1 + len(kernel)).transpose(1, 2)
        found = a.flatten(1).index_select(1, places.flatten())
        return found.reshape(len(a), places.shape[1], groups, -1)

    return Site(name, named(bias), lambda s: s.reshape(len(s), outputs, -1).mT, right)


def _embedding(
    named: Named,
    a: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Site | None:
    name = named(weight)
    if name is None or max_norm is not None or scale_grad_by_freq:
        return None
    return Site(
        name,
        None,
        lambda s: s.reshape(len(s), -1, s.shape[-1]),
        lambda a: a.reshape(len(a), -1),
        rows=True,
        left_out=None if padding_idx is None else padding_idx % len(weight),
    )


_RULES: dict[Any, Callable[..., Site | None]] = {
    functional.linear: _linear,
    functional.conv1d: _convolution,
    functional.conv2d: _convolution,
    functional.conv3d: _convolution,
    functional.embedding: _embedding,
}


def booked_in(seen: Watch) -> set[str]:
    """Return the parameters that are used only at sites."""
    weights = {site.weight for site in seen.sites} - seen.elsewhere
    biases = {site.bias for site in seen.sites if site.bias is not None} - seen.elsewhere
    return weights | biases - {site.bias for site in seen.sites if site.weight not in weights}
