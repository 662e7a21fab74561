"""One small event of every class, its answers, and what the page of mechanisms says of it."""

import functools
import math
import tomllib
from fractions import Fraction

import numpy as np
from _tree import DATA, ROOT

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.directions import RELATIONS
from dpcal.errors import BackendRefused, UnsupportedEvent

GAUSSIAN = events.GaussianDpEvent(1.0)
# Expressions of events, by the name of a table, as the file explains.
WRITTEN = tomllib.loads((DATA / "events.toml").read_text(encoding="utf-8"))
NAMES = {name.removesuffix("DpEvent"): value for name, value in vars(events).items()}
NAMES |= {"from_pmf": accountants.from_pmf, "matrix": matrix, "correlated": correlated}
NAMES |= {"np": np, "Fraction": Fraction, "inf": math.inf, "nan": math.nan}


def made(text):
    """Return the event that an expression of the file makes."""
    return eval(text, NAMES)


EXAMPLES = [made(each) for each in WRITTEN["examples"]]
# Compositions and samples of which only some accountants know a law.
ALL = EXAMPLES + [made(each) for each in WRITTEN["composed"]]


def documented():
    """Return the cells of the table in ``docs/accountants.md``, by name of event and relation."""
    lines = (ROOT / "docs" / "accountants.md").read_text().splitlines()
    start = lines.index("| event | " + " | ".join(RELATIONS) + " | by |") + 2
    end = lines.index("", start)
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end])
    return {
        (name.strip("`"), relation): cell
        for name, *cells in rows
        for relation, cell in zip(RELATIONS, cells, strict=False)
    }


@functools.cache
def answered(place, relation, accountant="auto"):
    """Return the epsilon of an example at delta = 1e-5, or the text of the refusal."""
    how = {"interval": 1e-3} if accountant == "pld" else {}
    how |= {"neighboring_relation": relation, "accountant": accountant}
    try:
        return accountants.epsilon(ALL[place], delta=1e-5, **how)
    except (UnsupportedEvent, BackendRefused) as error:
        return str(error)


def priced():
    """Yield every example with each of its answers and the first relation that has it."""
    for place, event in enumerate(EXAMPLES):
        seen = {answered(place, relation): relation for relation in reversed(RELATIONS)}
        yield from ((event, r, answer) for answer, r in seen.items() if not isinstance(answer, str))
