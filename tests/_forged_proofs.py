"""Forged proofs that one check of the kernel alone refuses each (``data/forged_proofs.toml``)."""

import tomllib

from _tree import DATA

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.kernel.terms import encode

# Entries of a step of a proof that are formulas.
FORMULAS = ("as", "by", "end", "exponent", "fact", "high", "low", "of", "on", "start", "value")


def E(text):
    return encode(parse(text))


def written(step):
    """Return a step of a proof whose formulas are texts as the kernel reads it."""

    def read(key, value):
        if key == "have":
            return [[E(fact), strict, written(proof)] for fact, strict, proof in value]
        if isinstance(value, dict):
            return written(value) if "rule" in value else value
        if isinstance(value, list):
            return [[E(one), E(other)] for one, other in value]
        return E(value) if key in FORMULAS else value

    return {key: read(key, value) for key, value in step.items()}


def plain(form=None):
    return written({"rule": "plain", **({"as": form} if form else {})})


def slope(of, start, end):
    ends = {"start": start, "end": end}
    return written({"rule": "slope", "name": "z", "of": of, **ends, "slope": {"rule": "plain"}})


def monotone(function, low, high, exponent=None):
    rest = {"exponent": exponent} if exponent else {}
    return written({"rule": "monotone", "function": function, "low": low, "high": high, **rest})


def let(name, value, then):
    return {"rule": "let", "name": name, "value": E(value), "then": then}


def images(function, low, high):
    return f"{function}({high}) - {function}({low})"


AT_ZERO = {"rule": "balls", "box": {"x": ["0", "0"]}, "tree": "x"}


def _row(check, goal, proof, facts="", strict=False, point=""):
    return check, facts, goal, strict, written(proof), point


# Statements that are removed; facts (those with a star are positive); a goal, whether it is strict;
# its proof; and a point where the facts hold and the goal fails or has no value.
FORGED = [
    _row(**row)
    for row in tomllib.loads((DATA / "forged_proofs.toml").read_text(encoding="utf-8"))["forged"]
]
