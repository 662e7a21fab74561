"""Arguments that are good alone and do not go together are refused in a sentence that says why.

They are in ``tests/data/combinations.toml``.
"""

import dataclasses
import tomllib

import pytest
from _built_plans import CONSTANTS, _read
from _tree import DATA
from contracts._good_calls import calls

from dpcal.errors import UnsupportedEvent

REFUSED = tomllib.loads((DATA / "combinations.toml").read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")
@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_do_not_go_together_are_refused(name):
    call = calls()[name]
    call()
    for row in REFUSED[name]:
        changed = _read({**row})
        says = changed.pop("says")
        if "constants" in changed:
            changed["constants"] = dataclasses.replace(CONSTANTS, **changed["constants"])
        with pytest.raises((ValueError, UnsupportedEvent), match=says) as told:
            call(**changed)
        assert str(told.value).endswith("."), row
