"""A keyword that an optimizer refuses costs nothing: neither of a budget, nor of a book."""

import gc
import inspect
import itertools
import math

import pytest
from _built_plans import CASES, built

import dpcal
from dpcal import optim
from dpcal.errors import DpcalError
from dpcal.optim import run

# One case of each optimizer.
NAMED = {case.values[0]: case.values for case in reversed(CASES)}
WRONG = [object(), "wrong", -1, math.nan, [1.0]]
OF_RUN = [name for name in inspect.signature(run).parameters if name not in ("objective", "plan")]


def keywords(name):
    """Return the keywords of an optimizer, with those of ``run`` where it passes others on."""
    own = inspect.signature(getattr(optim, name)).parameters
    passes = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in own.values())
    found = [*own, *(OF_RUN if passes else ())]
    return [each for each in dict.fromkeys(found) if each not in ("objective", "plan", "options")]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMED)
def test_a_keyword_that_is_refused_costs_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan, objective = built(*NAMED[name])
    total = {"epsilon": 3 * plan.epsilon, "delta": 3 * plan.delta}
    refused, books = set(), itertools.count()

    def made():
        return optim.BudgetBook(tmp_path / str(next(books)), **total)

    book = made()
    for keyword in keywords(name):
        # "wrong" is the name of a store.
        for value in WRONG if keyword != "store" else [WRONG[0], *WRONG[2:]]:
            with dpcal.budget(**total) as budget:
                found = refusal(
                    getattr(optim, name), objective, plan, **{"store": book, keyword: value}
                )
            if found is None:
                book = made()
                continue
            (kind, words), about = found, (keyword, value, found)
            refused.add(keyword)
            if "unexpected keyword" not in words:
                assert issubclass(kind, ValueError | TypeError | DpcalError), about
                assert words.endswith("."), about
            assert not budget.charges, about
        gc.collect()
        assert not book.runs, keyword
    assert refused >= {"callback", "callback_every"}


def refusal(run, *given, **options):
    """Return the type and the words of the error of a run; None if there is none."""
    try:
        run(*given, **options)
    except Exception as error:
        return type(error), str(error)
    return None
