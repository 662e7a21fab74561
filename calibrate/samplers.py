"""Which sampler does a query name? From a name and a query's fields to the sampler.

>>> sampler = sampler_of("poisson", sampling_probability=0.01)
>>> sampler
Poisson(sampling_probability=0.01)
>>> sampler_of("poisson", sampling_probability=0.01, batch_size=50)
Traceback (most recent call last):
    ...
ValueError: batch_size goes with sampler='fixed-size' and only with it, got batch_size=50 with \
sampler='poisson'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dpcal import _validate
from dpcal.accountants import samplers as kinds
from dpcal.accountants.samplers import Sampler

__all__ = ["SAMPLERS", "sampler_of"]

# The fields that samplers have in a query, each with the check of its range.
_FIELDS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "sampling_probability": _validate.rate,
        "batch_size": _validate.count,
        "separation": _validate.count,
        "participations": _validate.count,
        "epoch": _validate.count,
    }
)


class _Named(NamedTuple):
    """A sampler's class, its names of a query's fields, its fixed values, and a field to omit."""

    sampler: type[Sampler]
    fields: Mapping[str, str]
    fixed: Mapping[str, Any]
    optional: str | None


def _named(
    sampler: type[Sampler],
    *alike: str,
    fixed: Any = (),
    optional: str | None = None,
    **other: str,
) -> _Named:
    return _Named(sampler, {**{name: name for name in alike}, **other}, dict(fixed), optional)


_ALL = (
    _named(kinds.Poisson, "sampling_probability"),
    _named(kinds.FixedSize, "batch_size"),
    _named(kinds.Full),
    _named(kinds.CyclicPoisson, "sampling_probability", separation="bands"),
    # Batches of a run have the same expected size from the first batch on.
    _named(kinds.MinSeparation, "separation", "sampling_probability", fixed={"warm_start": True}),
    _named(kinds.BallsInBins, separation="bins"),
    _named(kinds.RandomAllocation, "participations", "epoch", optional="epoch"),
    _named(kinds.ShuffledEpochs, "epoch"),
)
_BY_NAME = MappingProxyType({each.sampler.name: each for each in _ALL})
SAMPLERS: Mapping[str, type[Sampler]] = MappingProxyType(
    {name: each.sampler for name, each in _BY_NAME.items()}
)
_OWNERS = {
    field: tuple(name for name, each in _BY_NAME.items() if field in each.fields)
    for field in _FIELDS
}


def sampler_of(name: str, **given: float | None) -> Sampler:
    """Return the sampler of a name with the values of its fields.

    Parameters
    ----------
    name
        A key of ``SAMPLERS``.
    **given
        ``sampling_probability``, ``batch_size``, ``separation``, ``participations`` and ``epoch``;
        None, or left out, where the sampler has no such field, or where it may be omitted.

    Raises
    ------
    ValueError, TypeError
        If a field is missing, is one that the sampler does not have, or is out of range.
    """
    named = _BY_NAME[_validate.choice(tuple(SAMPLERS), sampler=name)]
    for field, owners in _OWNERS.items():
        value = given.get(field)
        omitted = value is None and field == named.optional
        if (value is not None) != (name in owners) and not omitted:
            raise ValueError(
                f"{field} goes with sampler={' or '.join(map(repr, owners))} and only with "
                f"{'it' if len(owners) == 1 else 'them'}, got {field}={value!r} with "
                f"sampler={name!r}."
            )
    values = {own: given.get(field) for field, own in named.fields.items()}
    for field, own in named.fields.items():
        if values[own] is not None:
            _FIELDS[field](**{field: values[own]})
    return named.sampler(**values, **named.fixed)
