r"""Check of claims against an organization's limits, which are in a TOML file.

>>> policy = Policy({"max_epsilon": 1.0, "samplers": ["poisson"]}, "clinic.toml")
>>> policy.violations({"max_epsilon": 2.5, "samplers": ["poisson"]})
['clinic.toml: max_epsilon = 1.0, but epsilon is 2.50000.']
>>> policy.violations({"max_epsilon": 0.5})
['clinic.toml: samplers = ["poisson"], but no report states the samplers.']
"""

from __future__ import annotations

import json
import operator
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from dpcal._internal import validate
from dpcal._internal.files import document_of, text_of
from dpcal.calibrate.plan import RELATIONS
from dpcal.calibrate.samplers import SAMPLERS
from dpcal.errors import reason_of
from dpcal.report.output import at_most


class _Limit(NamedTuple):
    """A limit: the check of its value, its noun, and the comparison of its value with a fact."""

    check: Callable[..., Any]
    about: str
    kept: Callable[[Any, Any], bool]


def _among(about: str, *names: str) -> _Limit:
    def check(**argument: Any) -> list[str]:
        ((name, value),) = argument.items()
        if not isinstance(value, list) or not value or not all(each in names for each in value):
            words = ", ".join(map(repr, names))
            raise ValueError(f"{name} must be a list of some of {words}, got {value!r}.")
        return value

    return _Limit(check, about, lambda allowed, found: bool(found) and set(found) <= set(allowed))


_LIMITS: Mapping[str, _Limit] = MappingProxyType(
    {
        "max_epsilon": _Limit(validate.positive, "epsilon is", operator.ge),
        "max_delta": _Limit(validate.probability, "delta is", operator.ge),
        "min_records": _Limit(validate.count, "the number of records is", operator.le),
        "neighboring_relations": _among("the relations are", *RELATIONS),
        "units": _among("the units are", "record", "person", "client"),
        "samplers": _among("the samplers are", *SAMPLERS),
        "noise": _among("the kinds of noise are", "discrete", "gaussian"),
        "held_out": _among("held-out records are", "noisy", "none", "unprotected"),
    }
)


@dataclass(frozen=True)
class Policy:
    """Limits that claims must keep.

    Parameters
    ----------
    limits
        Limits by name: ``max_epsilon`` > 0 and ``max_delta`` in (0, 1), for everything released
        together; ``min_records`` >= 1, for each run; and lists of allowed values:
        ``neighboring_relations``, ``units`` (``"record"``, ``"person"``, ``"client"``),
        ``samplers``, ``noise`` (``"discrete"``, ``"gaussian"``), ``held_out`` (scores on held-out
        records: ``"noisy"``, ``"none"``, ``"unprotected"``).
    name
        Name of the file with the limits.

    Raises
    ------
    ValueError
        If a limit is unknown, or has a value out of its range.
    """

    limits: Mapping[str, Any]
    name: str = "policy"

    def __post_init__(self) -> None:
        if not self.limits:
            raise ValueError(f"policy must have one limit at least: {', '.join(_LIMITS)}.")
        for name, value in self.limits.items():
            if name not in _LIMITS:
                raise ValueError(f"policy has limits {', '.join(_LIMITS)}, got {name!r}.")
            try:
                _LIMITS[name].check(**{name: value})
            except TypeError as error:
                raise ValueError(str(error)) from error

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a policy from a TOML file.

        Raises
        ------
        ValueError
            If the file cannot be read, or is not a policy.
        """
        text = text_of(Path(path), "policy must be a readable file")
        try:
            return cls(document_of(text, tomllib.loads), str(path))
        except ValueError as error:
            raise ValueError(f"{path}: {reason_of(error)}") from error

    def violations(self, facts: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each limit that is not kept, in the order of the file.

        Parameters
        ----------
        facts
            Facts by the names of the limits: a number, or a list of all values that occur. A limit
            without a fact is broken.
        """
        found = []
        for name, allowed in self.limits.items():
            limit, fact = _LIMITS[name], facts.get(name)
            if fact is None:
                told = f"no report states the {name.removeprefix('max_').replace('_', ' ')}"
            elif not limit.kept(allowed, fact):
                told = f"{limit.about} {_words_of(fact)}"
            else:
                continue
            found.append(f"{self.name}: {name} = {json.dumps(allowed)}, but {told}.")
        return found


def facts_of(
    documents: Sequence[Mapping[str, Any]], epsilon: float, delta: float
) -> dict[str, Any]:
    """Return the facts that a policy limits, for reports about the same records.

    Parameters
    ----------
    documents
        The parsed files.
    epsilon, delta
        Epsilon and delta of all reports together, computed from their plans and ledgers.
    """
    scored = [document.get("evaluation", {}) for document in documents]
    runs = [run for document in documents for run in document["runs"]]
    plans = [run["plan"] for run in [*runs, *(each for each in scored if "plan" in each)]]
    queries = [query for plan in plans for query in plan["queries"]]
    return {
        "max_epsilon": epsilon,
        "max_delta": delta,
        "min_records": min(plan["n"] for plan in plans),
        "neighboring_relations": _all(plan["neighboring_relation"] for plan in plans),
        "units": _all("person" if _of_a_person(each) else "record" for each in queries),
        "samplers": _all(query["sampler"] for query in queries),
        "noise": _all(document["privacy"]["noise"] for document in documents),
        "held_out": _all(_SCORED.get(how, how) for how in (s.get("held_out") for s in scored)),
    }


def _words_of(fact: list[str] | float) -> str:
    if isinstance(fact, list):
        return ", ".join(fact)
    return str(fact) if isinstance(fact, int) else at_most(fact, digits=6)


def _of_a_person(query: Mapping[str, Any]) -> bool:
    return query.get("clipped") == "user" or bool(query.get("group_size", 1) > 1)


def _all(found: Iterable[str]) -> list[str]:
    return sorted(set(found))


_SCORED = {"left out": "none", None: "none"}
