"""What forgers of certificates do: change entries, sign anew, and claim with their own proofs."""

import copy
import hashlib
import json
from dataclasses import replace
from decimal import Decimal

from dpcal.accountants.certificates.document import (
    Certificate,
    DeltaBounds,
    DirectionBounds,
)


def leaves(value, path=()):
    """Yield the paths of all entries that are numbers, strings or null."""
    for found, item in entries(value, path):
        if not isinstance(item, dict | list):
            yield found


def entries(value, path=()):
    """Yield the paths and values of all entries, of lists and objects as well."""
    if path:
        yield path, value
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from entries(item, (*path, key))


def changed(document, path, change):
    """Return a copy of a document with one entry changed."""
    document = copy.deepcopy(document)
    owner = document
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = change(owner[path[-1]])
    return document


def resigned(document):
    """Return a document with the digest, and the redundant entries, that a forger would compute."""
    if document.get("delta") is None:
        directions = document["proofs"][0]["directions"]
        for end in ("lower", "upper"):
            document[end] = str(max(Decimal(item[end]) for item in directions))
    body = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return {**body, "digest": hashlib.sha256(text.encode()).hexdigest()}


def claim_about(mechanisms, direction, epsilon, bounds, proof, *, relation="add-or-remove-one"):
    """Return a signed claim about one direction of a composition; nothing is claimed of another."""
    claim = DirectionBounds(direction, *map(Decimal, bounds), proof)
    nothing = DirectionBounds("", Decimal(0), Decimal(1), None)
    names = ["both"] if direction == "both" else ["remove", "add"]
    found = (claim if name == direction else replace(nothing, direction=name) for name in names)
    proved = DeltaBounds(epsilon, tuple(found))
    return Certificate(relation, tuple(mechanisms), None, (proved,)).to_json()
