"""Arguments that are good alone and do not go together are refused in a sentence that says why.

They are in ``tests/data/combinations.toml``. A refusal costs nothing.
"""

import dataclasses
import tomllib
from operator import attrgetter

import pytest
from _built_plans import CONSTANTS
from _tree import DATA
from contracts._good_calls import calls

import dpcal
from dpcal import accountants
from dpcal.errors import UnsupportedEvent

REFUSED = tomllib.loads((DATA / "combinations.toml").read_text(encoding="utf-8"))


def read(value):
    """Return a value of the file; a class is called, by its name in a room."""
    if isinstance(value, list):
        return [read(each) for each in value]
    if isinstance(value, dict) and "." in (name := next(iter(value))):
        room = dpcal if name.startswith("calibrate.") else accountants
        return attrgetter(name)(room)(*read(value[name]))
    return value


@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule", "ignore:No category")
@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_do_not_go_together_are_refused(name):
    call = calls()[name]
    call()
    for row in REFUSED[name]:
        changed = {argument: read(value) for argument, value in row.items()}
        says = changed.pop("says")
        changed |= dict.fromkeys(changed.pop("without", ()))
        if "constants" in changed:
            changed["constants"] = dataclasses.replace(CONSTANTS, **changed["constants"])
        budget = dpcal.budget(epsilon=1000.0, delta=1e-3)
        kinds = (ValueError, TypeError, UnsupportedEvent)
        with budget, pytest.raises(kinds, match=says) as told:
            call(**changed)
        assert str(told.value).endswith("."), row
        assert budget.spent == 0, row
