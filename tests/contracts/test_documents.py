"""A document with another value in any place is read, or refused in a sentence."""

import json
import math

import pytest
from _built_plans import query
from _certificates import changed, entries

from dpcal import calibrate, errors, optim
from dpcal.accountants import matrix

DPSGD = calibrate.dpsgd(n=1000, batch_size=100, epsilon=1.0, delta=1e-6, steps=50)
PARTS = {"composition": "disjoint", "partition": "rows", "sampler": "fixed-size", "batch_size": 9}
QUERIES = (
    *DPSGD.queries,
    query("gradient difference", name="change", count=2, proportional=True, cap=1.0),
    query("scalar", name="part", **PARTS),
)
STRANGE = (
    *(None, True, "x", "x" * 2000, "\ud800", "nan", [], [[]], [1, 2], {}, {"a": [1]}),
    *(0, -1, 2, 0.5, 1e308, 5e-324, math.nan, math.inf, 10**4000),
)


def read_or_refused(kind, document):
    """Return why a document is refused; None if it is read, and written again as it is."""
    try:
        made = kind.from_json(json.dumps(document))
    except (ValueError, errors.TooLarge) as error:
        return str(error)
    assert made.to_json() == kind.from_json(made.to_json()).to_json()
    return None


MADE = {
    "plan": DPSGD,
    "ledger": optim.Ledger(1000, entries=QUERIES),
    "strategy": matrix.BLT(8, (0.9, 0.5), (0.2, 0.1)),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_any_value_of_a_document_is_read_or_refused_in_a_sentence(made):
    whole, read = json.loads(made.to_json()), 0
    documents = [
        changed(whole, path, lambda _, value=value: value)
        for path, _ in entries(whole)
        for value in STRANGE
    ]
    documents += [*STRANGE, [whole], {**whole, "other": 1}]
    documents += [{"queries": [whole]}, {"entries": [whole]}]
    for document in documents:
        told = read_or_refused(type(made), document)
        read += told is None
        assert told is None or (told.endswith(".") and len(told) < 500), (document, told)
    assert 0 < read < len(documents) / 2


@pytest.mark.parametrize("kind", [type(made) for made in MADE.values()])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"pad": "' + "x" * (1 << 25) + '"}', "more than 32 MiB"),
        ("[" * 1000 + "]" * 1000, "nested more than 100 deep"),
        ('{"n": NaN}', "it holds NaN"),
        ("{", "Expecting property name"),
    ],
    ids=["large", "deep", "NaN", "torn"],
)
def test_a_text_that_no_document_is_gets_a_sentence(kind, text, reason):
    with pytest.raises(ValueError, match=rf"must be .* in JSON, got .*{reason}.*\.$"):
        kind.from_json(text)
