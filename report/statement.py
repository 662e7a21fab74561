"""What a run claims, and does not claim, in words and numbers that a reader can check.

A fingerprint changes with every byte of the records, and with the secret key.

>>> import numpy as np
>>> records = np.array([[1.0, 2.0]])
>>> first = fingerprint([records], key=b"secret")
>>> first["algorithm"], first == fingerprint([records], key=b"another")
('hmac-sha256', False)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import events, true_positive_rate
from dpcal.calibrate import Plan
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.query import KINDS
from dpcal.errors import DrawsCannotTell, UnsupportedEvent
from dpcal.optim import Result
from dpcal.report.pages import rendered
from dpcal.report.verification import composed_epsilon

__all__ = [
    "about_data",
    "fingerprint",
    "privacy_statement",
    "released",
    "risk",
    "sentence_on_reading",
    "software",
]

# What the noise of a run is, and what its kind leaves outside the claim, by the noise's name.
_NOISE = {
    "discrete": "Sums are of whole numbers and exact; their noise is discrete and comes from "
    "cryptographic bits, at the price of the noise that is named here.",
    "gaussian": "Sums are of whole numbers and exact; their noise is drawn from cryptographic bits "
    "as floating-point numbers, which are rounded.",
}
_OUTSIDE = {
    "discrete": "What the machine tells beside its output (the time that a run takes, the contents "
    "of its memory) is outside the claim, and so is a guess of the operating system's entropy.",
    "gaussian": "Noise is a Gaussian number in floating point, rounded, and not a real Gaussian "
    "number, rounded: attacks on the difference are outside the claim.",
}

PACKAGES = ("dpcal", "numpy", "scipy", "dp-accounting", "prv-accountant", "scikit-learn")


def software() -> dict[str, str]:
    """Return the versions of Python and of the packages that the numbers came from."""
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def fingerprint(arrays: Iterable[NDArray[Any]], *, key: bytes | None = None) -> dict[str, str]:
    """Return a SHA-256 fingerprint of arrays: their shapes, types and bytes, in order.

    Parameters
    ----------
    arrays
        Numbers or strings.
    key
        A secret that makes the fingerprint an HMAC. A plain hash of private records is not private:
        whoever knows all records but one can test guesses of that one against it.
    """
    digest = hashlib.sha256() if key is None else hmac.new(key, digestmod=hashlib.sha256)
    for array in arrays:
        head = json.dumps({"shape": array.shape, "dtype": array.dtype.str})
        digest.update(head.encode())
        digest.update(array.tobytes())
    name = "sha256" if key is None else "hmac-sha256"
    return {"algorithm": name, "value": digest.hexdigest()}


def about_data(
    result: Result,
    tables: Sequence[Any],
    *,
    name: str,
    scaling: Mapping[str, Any],
    read_from_data: Sequence[str],
    key: bytes | None = None,
    counts: Mapping[str, int] | None = None,
    owners: Any = None,
) -> dict[str, Any]:
    """Return the section ``data`` of a report.

    Parameters
    ----------
    result
        A run.
    tables
        Records that it was trained on, their targets, held-out records, and their targets.
    name
        Of the table.
    scaling
        What was done to the records, as JSON values.
    read_from_data
        What was read off the records: the claim does not cover it.
    key
        Secret of the fingerprint, needed unless the records are public.
    counts
        How many rows were read, and why some of them are no records.
    owners
        Number of the person of each record, where persons are drawn.
    """
    records, _, held_out, _ = tables
    sizes = {**(counts or {}), "training_records": len(records)}
    sizes |= {} if owners is None else {"training_persons": len(np.unique(owners))}
    sizes |= {"held_out_records": len(held_out)}
    if result.plan.public_n:  # a public number stands for theirs
        whose = "records" if owners is None else "persons"
        sizes = {f"public_training_{whose}": result.plan.n}
    return {
        "name": name,
        **sizes,
        "features": records.shape[1],
        "scaling": scaling,
        "read_from_data": list(read_from_data),
        "fingerprint": fingerprint([*tables, *([] if owners is None else [owners])], key=key),
    }


def risk(results: Sequence[Result]) -> dict[str, float]:
    """Return the power of an attacker who accuses one in a hundred of those who are not there.

    Parameters
    ----------
    results
        Of all runs that the attacker sees.
    """
    plan, rate = results[0].plan, 0.01
    try:
        power = float(
            true_positive_rate(
                events.ComposedDpEvent([result.event for result in results]),
                false_positive_rate=rate,
                neighboring_relation=plan.neighboring_relation,
            )
        )
    except (UnsupportedEvent, DrawsCannotTell):
        # One pair (epsilon, delta) implies this (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
        price = composed_epsilon(results, plan.delta)["epsilon"]["upper"]
        least = min(math.exp(price) * rate + plan.delta, 1.0)
        power = min(least, 1 - math.exp(-price) * (1 - plan.delta - rate))
    return {"false_positive_rate": rate, "true_positive_rate": power}


_SEED = (
    "A seed that others know voids the claim: the noise can then be subtracted. So does a seed "
    "that serves twice about the same records, unless a budget book refused it."
)


def privacy_statement(
    result: Result, *, outside: Iterable[str] = (), unit: str | None = None
) -> dict[str, Any]:
    """Return what a run's claim covers, and what it does not.

    Parameters
    ----------
    result
        A run.
    outside
        Sentences on what else the claim leaves out.
    unit
        What the claim is about; what the plan says when omitted.
    """
    return {
        "unit": unit or unit_of(result.plan.group_size),
        "neighboring_relation": result.plan.neighboring_relation,
        "mechanism": f"{_mechanism(result.plan)} {_NOISE[result.noise]}",
        "noise": result.noise,
        "covered": "the released parameters, and no other iterate"
        if _last_alone(result.plan)
        else "the released parameters and every iterate of the run",
        "not_covered": [
            _about_n(result.plan),
            "The columns and the classes are treated as public.",
            *([_SEED] if result.seed_given else []),
            _OUTSIDE[result.noise],
            *sentence_on_reading(result.read_from_data),
            *outside,
        ],
    }


def sentence_on_reading(read_from_data: Sequence[str]) -> list[str]:
    """Return the sentence on what was read off the records, if anything was."""
    if not read_from_data:
        return []
    return [f"Read from the data, and not covered by the claim: {', '.join(read_from_data)}."]


def _about_n(plan: Plan) -> str:
    """Return the sentence on the number of records."""
    if plan.public_n:
        return (
            f"n = {plan.n} is a number that was given in public. The number of records may differ "
            "from it, and is not told."
        )
    if plan.neighboring_relation == "add-or-remove-one":
        return (
            f"The number of training records, n = {plan.n}, is treated as public. If it was "
            "counted from these records, the claim holds for a record that is blanked "
            "(replace-special), not for one that is added or removed."
        )
    return (
        f"The number of training records, n = {plan.n}, is told: the claim is about what a record "
        "holds, not about how many there are."
    )


def _mechanism(plan: Plan) -> str:
    """Return what is released, in words."""
    kinds = [KINDS[query.kind] for query in plan.queries]
    alone = {
        "only_totals": all(kind.cells or kind.choice for kind in kinds),
        "last_iterate_alone": _last_alone(plan),
    }
    words = rendered("mechanism.txt", {"plan": plan, "kinds": KINDS, **alone})
    return " ".join(words.split())


def _last_alone(plan: Plan) -> bool:
    return any(query.descent is not None for query in plan.queries)


def released(result: Result) -> dict[str, Any]:
    """Return a run's plan, its ledger, and epsilon recomputed from the ledger."""
    delta = result.plan.delta
    return {
        "plan": json.loads(result.plan.to_json()),
        "ledger": json.loads(result.ledger.to_json()),
        "delta": delta,
        "epsilon": result.epsilon(delta).to_dict(),
        "complete": result.complete,
        "message": result.message,
    }
