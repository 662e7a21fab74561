"""One small event of every class, its answers, and what the page of mechanisms says of it.

``PYTHONPATH=tests python -m contracts._events`` writes the table of the page from the rows.
"""

import functools
import math
import tomllib
from fractions import Fraction

import numpy as np
from _tree import DATA, ROOT

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.mechanisms.row import rows
from dpcal.errors import BackendRefused, UnsupportedEvent

PAGE = ROOT / "docs" / "reference" / "mechanisms.md"
GAUSSIAN = events.GaussianDpEvent(1.0)
# Expressions of events, by the name of a table, as the file explains.
WRITTEN = tomllib.loads((DATA / "events.toml").read_text(encoding="utf-8"))
# The row of each class of events, in the order of the page.
ROWS = sorted(rows().values(), key=lambda row: type(row.example).__name__)
NAMES = vars(events) | {type(row.example).__name__: type(row.example) for row in ROWS}
NAMES |= {name.removesuffix("DpEvent"): value for name, value in NAMES.items()}
NAMES |= {"from_pmf": accountants.from_pmf, "matrix": matrix, "correlated": correlated}
NAMES |= {"np": np, "Fraction": Fraction, "inf": math.inf, "nan": math.nan}


def made(text):
    """Return the event that an expression of the file makes."""
    return eval(text, NAMES)


# An annex makes the parts of one example.
CORRELATED = made(WRITTEN["correlated"])
EXAMPLES = [CORRELATED if type(row.example) is type(CORRELATED) else row.example for row in ROWS]
# Compositions and samples of which only some accountants know a law.
ALL = EXAMPLES + [made(each) for each in WRITTEN["composed"]]


@functools.cache
def answered(place, relation, accountant="auto"):
    """Return the epsilon of an example at delta = 1e-5, or the text of the refusal."""
    how = {"interval": 1e-3} if accountant == "pld" else {}
    how |= {"neighboring_relation": relation, "accountant": accountant}
    try:
        return accountants.epsilon(ALL[place], delta=1e-5, **how)
    except (UnsupportedEvent, BackendRefused) as error:
        return str(error)


def verdict(answer):
    """Return the word of the page: bounds on either side, a bracket, an upper end, or none."""
    if isinstance(answer, str):
        return "refused"
    if answer.method.startswith("bracket"):
        return "a bracket"
    if answer.upper in (0, math.inf):
        return f"yes, {answer.upper:g}"
    return "Renyi" if answer.lower == 0 else "yes"


def page(text):
    """Return the text of the page of mechanisms with the table of all rows and their answers."""
    lines = [("event", *RELATIONS, "by"), ("---",) * (2 + len(RELATIONS))]
    for place, row in enumerate(ROWS):
        stated = ", as stated" if row.record == "stated" else ""
        cells = [verdict(answered(place, relation)) + stated for relation in RELATIONS]
        lines.append((f"`{type(row.example).__name__}`", *cells, row.source))
    start = text.index("| event |")
    table = "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
    return text[:start] + table + text[text.index("\n\n", start) :]


def priced():
    """Yield every example with each of its answers and the first relation that has it."""
    for place, event in enumerate(EXAMPLES):
        seen = {answered(place, relation): relation for relation in reversed(RELATIONS)}
        yield from ((event, r, answer) for answer, r in seen.items() if not isinstance(answer, str))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
