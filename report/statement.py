"""Claim of a run and its limits, in words and numbers that a reader can check.

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
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.query import KINDS
from dpcal.errors import DrawsCannotTell, UnsupportedEvent
from dpcal.optim import Result
from dpcal.report.pages import sentences
from dpcal.report.verification import composed_epsilon

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
        an attacker who knows all records but one can test guesses of this record against the hash.
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
        Name of the table.
    scaling
        Coding of the records, as JSON values.
    read_from_data
        Facts that were read off the records: the claim does not cover them.
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
    if result.plan.public_n:
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
    """Return the power of an attacker who wrongly accuses one in a hundred absent records.

    Parameters
    ----------
    results
        Results of all runs that the attacker sees.
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
        # A bound from one pair (epsilon, delta) (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
        price = composed_epsilon(results, plan.delta)["epsilon"]["upper"]
        least = min(math.exp(price) * rate + plan.delta, 1.0)
        power = min(least, 1 - math.exp(-price) * (1 - plan.delta - rate))
    return {"false_positive_rate": rate, "true_positive_rate": power}


def privacy_statement(
    result: Result, *, outside: Iterable[str] = (), unit: str | None = None
) -> dict[str, Any]:
    """Return the statement of a run: its claim, and the limits of the claim.

    Parameters
    ----------
    result
        A run.
    outside
        Sentences on more limits of the claim.
    unit
        Unit of the claim; the plan's when omitted.
    """
    plan = result.plan
    kinds = [KINDS[query.kind] for query in plan.queries]
    last_alone = any(query.descent is not None for query in plan.queries)
    words = {
        "plan": plan,
        "kinds": KINDS,
        "only_totals": all(kind.cells or kind.choice for kind in kinds),
        "last_iterate_alone": last_alone,
        "result": result,
    }
    covered = "the released parameters and every iterate of the run"
    return {
        "unit": unit or unit_of(plan.group_size),
        "neighboring_relation": plan.neighboring_relation,
        "mechanism": " ".join(sentences("mechanism.txt", words)),
        "noise": result.noise,
        "covered": "the released parameters, and no other iterate" if last_alone else covered,
        "not_covered": [*sentences("not_covered.txt", words), *outside],
    }


def released(result: Result) -> dict[str, Any]:
    """Return a run as a report holds it: its plan, its ledger, and epsilon recomputed from it."""
    delta = result.plan.delta
    return {
        "plan": json.loads(result.plan.to_json()),
        "ledger": json.loads(result.ledger.to_json()),
        "delta": delta,
        "epsilon": result.epsilon(delta).to_dict(),
        "complete": result.complete,
        "message": result.message,
        "seed_given": result.seed_given,
        "noise": result.noise,
        "read_from_data": list(result.read_from_data),
    }
