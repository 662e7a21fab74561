"""A keyword that an optimizer refuses costs nothing: neither of a budget, nor of a book."""

import gc
import inspect
import math
from functools import partial

import pytest
from _built_plans import CASES, built

import dpcal
from dpcal import optim
from dpcal.errors import DpcalError
from dpcal.optim.driver import run

# One case of each optimizer.
NAMED = {case.values[0]: case.values for case in reversed(CASES)}
WRONG = [object(), "wrong", -1, math.nan, [1.0]]
OF_RUN = [name for name in inspect.signature(run).parameters if name not in ("objective", "plan")]


# Who answers for these raises errors of its own.
FOREIGN = ("executor",)


def keywords(name):
    """Return the keywords of an optimizer, with those of ``run`` where it passes others on."""
    own = inspect.signature(getattr(optim, name)).parameters
    passes = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in own.values())
    found = [*own, *(OF_RUN if passes else ())]
    return [each for each in dict.fromkeys(found) if each not in ("objective", "plan", "options")]


def refusals(name, folder, values):
    """Yield each keyword and value that an optimizer refuses, with what budget and book charged."""
    plan, objective = built(*NAMED[name])
    total = {"epsilon": 3 * plan.epsilon, "delta": 3 * plan.delta}
    for keyword in keywords(name):
        for place, value in enumerate(values):
            book = optim.BudgetBook(folder / f"{keyword}{place}", **total)
            given = {"store": book, keyword: value}
            with dpcal.budget(**total) as budget:
                found = refusal(partial(getattr(optim, name), objective, plan, **given))
            gc.collect()
            if found is not None:
                rows = [row.state for row in book.runs if row.charged]
                yield keyword, value, *found, budget._charged, rows


def refusal(run):
    """Return the type and the words of the error of a run; None if there is none."""
    try:
        run()
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMED)
def test_a_keyword_that_is_refused_costs_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(refusals(name, tmp_path, WRONG))
    assert {keyword for keyword, *_ in found} >= {"callback", "callback_every", "noise"}
    for keyword, value, kind, words, charged, rows in found:
        if keyword not in FOREIGN and "unexpected keyword" not in words:
            assert issubclass(kind, ValueError | TypeError | DpcalError), (keyword, value, words)
            assert words.endswith("."), (keyword, value, words)
        assert not charged, (keyword, value, words)
        assert not rows, (keyword, value, words)
