"""Which sampler does a query name? From a name and a query's fields to the sampler.

Other packages enter theirs by :func:`register_sampler`, or by an entry point of its name in the
group ``dpcal.samplers`` that loads the class.

>>> sampler = sampler_of("poisson", sampling_probability=0.01)
>>> sampler
Poisson(sampling_probability=0.01)
>>> sampler_of("poisson", sampling_probability=0.01, batch_size=50)
Traceback (most recent call last):
    ...
ValueError: batch_size goes with sampler='fixed-size' or 'truncated-poisson' and only with them, \
got batch_size=50 with sampler='poisson'.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dpcal._internal import validate
from dpcal.accountants import samplers as kinds
from dpcal.accountants.samplers import Sampler

_GROUP = "dpcal.samplers"

_COUNTS = ("batch_size", "separation", "participations", "epoch")
_FIELDS: Mapping[str, Callable[..., float]] = {
    "sampling_probability": validate.rate,
    **dict.fromkeys(_COUNTS, validate.count),
}


class _Named(NamedTuple):
    """A sampler's class, its names of a query's fields, its fixed values, and a field to omit."""

    sampler: type[Sampler]
    fields: Mapping[str, str]
    fixed: Mapping[str, Any] = MappingProxyType({})
    optional: str | None = None


def _alike(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_ALL = (
    _Named(kinds.Poisson, _alike("sampling_probability")),
    _Named(kinds.FixedSize, _alike("batch_size")),
    _Named(kinds.TruncatedPoisson, _alike("sampling_probability", "batch_size")),
    _Named(kinds.Full, {}),
    _Named(kinds.CyclicPoisson, {**_alike("sampling_probability"), "separation": "bands"}),
    # Batches of a run have the same expected size from the first batch on.
    _Named(kinds.MinSeparation, _alike("separation", "sampling_probability"), {"warm_start": True}),
    _Named(kinds.BallsInBins, {"separation": "bins"}),
    _Named(kinds.RandomAllocation, _alike("participations", "epoch"), optional="epoch"),
    _Named(kinds.ShuffledEpochs, _alike("epoch")),
)
_BY_NAME = MappingProxyType({each.sampler.name: each for each in _ALL})
SAMPLERS: Mapping[str, type[Sampler]] = MappingProxyType(
    {name: each.sampler for name, each in _BY_NAME.items()}
)
_ENTERED: dict[str, _Named] = {}


def register_sampler(sampler: type[Sampler]) -> type[Sampler]:
    """Enter a sampler of your own, in place of an earlier one of its name; return its class.

    It is your premise that its event dominates one answer about its batches: plans, ledgers and
    reports that name it use this event.

    Parameters
    ----------
    sampler
        A frozen dataclass that inherits from :class:`dpcal.accountants.samplers.Sampler`, with a
        ``name``, ``words`` and ``independent_noise = True``; its fields are among
        ``sampling_probability``, ``batch_size``, ``separation``, ``participations`` and ``epoch``.

    Raises
    ------
    ValueError
        If it is not such a class, or has the name of a sampler of this package.
    """
    if not (isinstance(sampler, type) and issubclass(sampler, Sampler)):
        raise ValueError(f"sampler must be a class that inherits from Sampler, got {sampler!r}.")
    lacking = [each for each in ("name", "words") if not hasattr(sampler, each)]
    if lacking or not sampler.independent_noise:
        raise ValueError(
            f"sampler must have a name, words and independent_noise = True, got "
            f"{sampler.__name__} without {' and '.join(lacking) or 'the last'}."
        )
    if sampler.name in _BY_NAME:
        raise ValueError(f"name must be new, got {sampler.name!r}, which is this package's own.")
    names = [each.name for each in dataclasses.fields(sampler)]
    if not set(names) <= set(_FIELDS):
        raise ValueError(f"fields must be among {', '.join(_FIELDS)}, got {', '.join(names)}.")
    _ENTERED[sampler.name] = _Named(sampler, _alike(*names))
    return sampler


def known_samplers() -> dict[str, type[Sampler]]:
    """Return all samplers by name, with registered ones and those of installed packages."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP):
        if entry.name not in _ENTERED:
            register_sampler(entry.load())
    return {name: each.sampler for name, each in {**_BY_NAME, **_ENTERED}.items()}


def _find(name: str) -> _Named:
    """Return the facts about the sampler of a name, or refuse the name with a list of all."""
    if name not in _BY_NAME and name not in _ENTERED:
        validate.choice(tuple(known_samplers()), sampler=name)
    return _BY_NAME.get(name) or _ENTERED[name]


def fields_of(name: str) -> tuple[str, ...]:
    """Return the fields of a query that a sampler has."""
    return tuple(_find(name).fields)


def sampler_of(name: str, **given: float | None) -> Sampler:
    """Return the sampler of a name with the values of its fields.

    Parameters
    ----------
    name
        A key of ``SAMPLERS``, or the name of a registered sampler.
    **given
        ``sampling_probability``, ``batch_size``, ``separation``, ``participations`` and ``epoch``;
        None, or left out, where the sampler has no such field, or where it may be omitted.

    Raises
    ------
    ValueError, TypeError
        If a field is missing, is one that the sampler does not have, or is out of range.
    """
    named = _find(name)
    for field, check in _FIELDS.items():
        value = given.get(field)
        omitted = value is None and field == named.optional
        if (value is not None) != (field in named.fields) and not omitted:
            alike = {**_BY_NAME, name: named}
            owners = [each for each, item in alike.items() if field in item.fields]
            raise ValueError(
                f"{field} goes with sampler={' or '.join(map(repr, owners))} and only with "
                f"{'it' if len(owners) == 1 else 'them'}, got {field}={value!r} with "
                f"sampler={name!r}."
            )
        if value is not None:
            check(**{field: value})
    values = {own: given.get(field) for field, own in named.fields.items()}
    return named.sampler(**values, **named.fixed)
