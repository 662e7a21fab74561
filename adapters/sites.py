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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from dpcal.errors import needing

with needing("torch"):
    import torch
    from torch import Tensor
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves

__all__ = ["Site", "Watch", "booked_in"]


@dataclass(frozen=True)
class Site:
    """One use of a weight; the gradient is a sum of outer products over positions.

    ``left`` makes (m, T, outputs) of gradients by the output, and ``right`` makes (m, T, groups,
    ..) of inputs. If the use is of ``rows``, ``right`` makes row numbers (m, T), and one row may be
    left out. A bias that ``is_added`` is added to the output's last axis.
    """

    weight: str
    bias: str | None
    left: Callable[[Tensor], Tensor]
    right: Callable[[Tensor], Tensor]
    rows: bool = False
    left_out: int | None = None
    is_added: bool = False


class Watch(TorchFunctionMode):  # type: ignore[misc]
    """Sees each use of the parameters that it is given, by the identity of their tensors.

    ``added`` has a tensor for the output of each site, by which a loss is differentiated. It takes
    the place of a bias at the sites for which ``biased`` is true.
    """

    def __init__(self, known: Mapping[str, Tensor], biased: Sequence[bool] = ()) -> None:
        super().__init__()
        self._names = {id(each): name for name, each in known.items()}
        self._biased = biased
        self.added: Sequence[Tensor] = ()
        self.sites: list[Site] = []
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.elsewhere: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is functional.multi_head_attention_forward:
            with self:
                return _opened(func)(*args, **kwargs)
        if func is functional.scaled_dot_product_attention and args[0].device.type == "cpu":
            return _attention(*args, **kwargs)
        call = _mapped if func is functional.linear else func
        site = None
        if func in _RULES:
            args = (*args, *(kwargs.pop(name) for name in ("input", "weight") if name in kwargs))
            a, weight, *options = args
            site = _RULES[func](self._named, a, weight, *options, **kwargs)
        if site is None:
            result = call(*args, **kwargs)
            if any(isinstance(each, Tensor) for each in tree_leaves(result)):
                self.elsewhere.update(filter(None, map(self._named, tree_leaves((args, kwargs)))))
            return result
        if self.added:
            place = len(self.sites)
            added = self.added[place]
            if site.left_out is not None:
                added = added * (a != site.left_out).unsqueeze(-1)
            result = call(a, weight) if self._biased[place] else call(*args, **kwargs)
            result = result + added
        else:
            result = call(*args, **kwargs)
        self.sites.append(site)
        self.inputs.append(a)
        self.outputs.append(result)
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
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return (query * scale @ key.mT).softmax(-1) @ value
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )


def _mapped(a: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return a linear map of a table: with more axes, vmap copies the weight for each position."""
    table = functional.linear(a.reshape(-1, a.shape[-1]), weight, bias)
    return table.reshape(*a.shape[:-1], len(weight))


Named = Callable[[Any], str | None]


def _opened(func: Any) -> Any:
    """Return a function of ``torch.nn.functional`` for which a watch sees the inner calls only."""
    scope = {**func.__globals__, "has_torch_function": lambda _: False}
    made = FunctionType(func.__code__, scope, func.__name__, func.__defaults__)
    made.__kwdefaults__ = func.__kwdefaults__
    return made


def _linear(named: Named, a: Tensor, weight: Tensor, bias: Any = None) -> Site | None:
    def left(s: Tensor) -> Tensor:
        return s.reshape(len(s), -1, s.shape[-1])

    name, with_bias = named(weight), named(bias)
    if name is None:
        return None
    return Site(
        name, with_bias, left, lambda a: left(a).unsqueeze(2), is_added=with_bias is not None
    )


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

    return Site(name, named(bias), lambda s: s.reshape(len(s), outputs, -1).mT.contiguous(), right)


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
