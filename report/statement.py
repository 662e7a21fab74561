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
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

from numpy.typing import NDArray

from dpcal.calibrate import Plan, Query
from dpcal.calibrate.descent import Descent
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.query import KINDS, LAPLACE
from dpcal.optim import Result

__all__ = ["fingerprint", "privacy_statement", "released", "sentence_on_reading", "software"]

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


_SEED = (
    "A seed that others know voids the claim: the noise can then be subtracted. So does a seed "
    "that serves twice about the same records, unless a budget book refused it."
)


_PERSONS = {
    "row": "",
    "user": "A record is here a person: the sum of a person's rows is clipped, and n counts "
    "persons. ",
}


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
        "mechanism": f"{_mechanism(result.plan)} {_PERSONS[result.plan.clipped]}"
        f"{_NOISE[result.noise]}",
        "noise": result.noise,
        "covered": _covered(result.plan),
        "not_covered": [
            _about_n(result.plan),
            "The columns and the classes are treated as public.",
            *([_SEED] if result.seed_given else []),
            _OUTSIDE[result.noise],
            *sentence_on_reading(result.read_from_data),
            *outside,
        ],
    }


def _covered(plan: Plan) -> str:
    """Return what may be released at the price that is named."""
    if all(query.descent is None for query in plan.queries):
        return "the released parameters and every iterate of the run"
    return "the released parameters, and no other iterate"


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
    if plan.optimizer == "dpsgd":
        query = plan.query("gradient")
        return (
            f"DP-SGD (Abadi et al. 2016, Algorithm 1): each step {_drawn(query)}, clips each "
            f"record's gradient to L2 norm {query.max_norm!r}, and adds Gaussian noise of standard "
            "deviation noise_multiplier * max_norm to the sum. All iterates may be published."
        )
    parts = [f"{plan.optimizer} releases noisy sums, and iterates that are functions of them."]
    if any(query.descent is not None for query in plan.queries):
        parts = [f"{plan.optimizer} releases the last of its iterates alone."]
    if all(KINDS[query.kind].cells or KINDS[query.kind].choice for query in plan.queries):
        parts = ["Totals and choices are released with noise, and functions of them."]
    parts += [_answer(query) for query in plan.queries]
    budget = plan.queries[0].budget
    if budget is not None:
        parts.append(
            "Noise multipliers are chosen from earlier answers; all answers together spend no more "
            f"than one with noise multiplier {budget!r}, and are charged as that."
        )
    return " ".join(parts)


def _drawn(query: Query) -> str:
    """Return which records a step of DP-SGD takes, in words."""
    if query.sampler == "poisson":
        return (
            "samples every training record independently with probability "
            f"{query.sampling_probability!r}"
        )
    return f"takes {query.sampling.sentence}"


_DEVIATION = "Gaussian noise of standard deviation"
_LAPLACE = {
    "above threshold": "on a threshold, and of twice that scale on each score",
    "noisy max": "on each score",
}


def _answer(query: Query) -> str:
    """Return what one query releases, in words."""
    if query.kind == "labels":
        return (
            f"Query {query.name!r}, at most {query.count} times: the labels are released whose "
            f"counts, with {_DEVIATION} "
            f"{query.noise_multiplier!r}, exceed {query.threshold!r}."
        )
    if query.kind == "selection":
        return (
            f"Query {query.name!r}, at most {query.count} times: a candidate is drawn by the "
            "exponential mechanism, from scores that one record moves by at most "
            f"{query.max_norm!r}, with epsilon {2 / query.noise_multiplier!r}."
        )
    records = query.sampling.sentence
    if query.descent is not None:
        return _last_iterate(query, query.descent)
    if KINDS[query.kind].cells:
        noise = "Laplace noise of scale" if query.kind != "total" else _DEVIATION
        return (
            f"Query {query.name!r}: over cells, of which a record is in one at most, and adds at "
            f"most {query.max_norm!r} to its total; {noise} "
            f"{query.noise_multiplier * query.max_norm!r} is added to each total."
        )
    if query.kind in LAPLACE:
        return (
            f"Query {query.name!r}, at most {query.count} times: over {records}, scores that "
            "one record moves by at most 1 are compared after Laplace noise of scale "
            f"{query.noise_multiplier!r}, {_LAPLACE[query.kind]}."
        )
    if query.composition == "disjoint":
        records += " of a part that shares none with others"
    bound = f"{query.max_norm!r}" + (" per unit of distance" if query.proportional else "")
    if query.cap is not None:
        bound += f", and {query.cap!r} at most"
    least = "at least " if query.budget is not None else ""
    noise = f"Gaussian noise of {least}{query.noise_multiplier!r} times that bound"
    if query.correlation is not None:
        noise = (
            f"row t of C^-1 z, with C the matrix of strategy {query.correlation.strategy.kind!r} "
            f"and z {noise},"
        )
    clipped, result = query.kind, "sum"
    if query.kind == "one pass":
        clipped, result = "step in a pass", "mean iterate"
    return (
        f"Query {query.name!r}, at most {query.count} times: over {records}, one record's "
        f"{clipped} is clipped to L2 norm {bound}, and {noise} is added to the {result}."
    )


def _last_iterate(query: Query, descent: Descent) -> str:
    """Return the theorem on the last iterate, and its conditions, in words."""
    ball = "" if descent.radius is None else f", projected onto a ball of radius {descent.radius!r}"
    return (
        f"Query {query.name!r}, at most {query.count} times: the last of {descent.steps} steps of "
        f"size {descent.learning_rate!r} over every record{ball}; one record's gradient is clipped "
        f"to L2 norm {query.max_norm!r}, and {_DEVIATION} {query.noise_multiplier!r} times that "
        "bound is added to each sum. It is priced by shifted interpolation (Bok, Su and Altschuler "
        "2024): losses are of a linear model and convex, also where they are clipped, with "
        f"smoothness {descent.smoothness!r} at most, to which longer rows are shortened; the "
        f"regulariser has strength {descent.l2!r} and strong convexity "
        f"{descent.strong_convexity!r}; so steps contract distances to {descent.contraction!r}."
    )


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
