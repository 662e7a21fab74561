"""A neighboring relation is a name, or dp-accounting's own value, wherever one is asked for."""

import math
import re

import pytest
from _built_plans import plan_of, query
from contracts._good_calls import calls
from dp_accounting import NeighboringRelation

import dpcal
from dpcal import optim
from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

TARGET = {"epsilon": 2.0, "delta": 1e-5}
OWN = {
    name.lower().replace("_", "-"): each for name, each in NeighboringRelation.__members__.items()
}

TAKE = [call for call in calls().values() if "neighboring_relation" in call.signature.parameters]


def test_the_reader_takes_a_name_and_dp_accountings_value():
    for name, own in OWN.items():
        assert validate.relation(name) == validate.relation(own) == name
    for wrong in ("add-or-remove", "ADD_OR_REMOVE_ONE", math.nan, None, 1):
        with pytest.raises(ValueError, match="neighboring_relation must be one of"):
            dpcal.epsilon(events.GaussianDpEvent(2.0), delta=1e-5, neighboring_relation=wrong)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_relation_in_two_notations_has_one_answer(tmp_path, monkeypatch):
    def told(call, number, relation):
        (folder := tmp_path / f"{call.name} {number}").mkdir()
        monkeypatch.chdir(folder)
        seed = {"seed": 0} if "seed" in call.signature.parameters else {}
        try:
            found = call(neighboring_relation=relation, **seed)
        except (ValueError, UnsupportedEvent) as error:
            return repr(error)
        if hasattr(found, "axes"):
            found = [line.get_xydata().tolist() for line in found.axes[0].lines]
        held = repr((getattr(found, "result", found), getattr(found, "neighboring_relation", None)))
        return re.sub(r" at 0x\w+|seconds=[^,)]+", "", held)

    asked = ("replace-one", OWN["replace-one"], "add-or-remove-one")
    for call in TAKE:
        named, own, other = (told(call, *each) for each in enumerate(asked))
        assert own == named, call.name
        # Of one order, the same for both.
        assert named != other or call.name == "accountants.renyi_order"


def test_a_relation_that_a_plan_does_not_hold_under_is_refused_in_both_notations():
    parts = query(count=4, composition="disjoint", sampler="fixed-size", batch_size=25)
    plan = plan_of(parts, n=100, neighboring_relation="replace-one")
    ledger = optim.Ledger(100, "replace-one")
    ledger.record(parts)
    for priced in (plan.price, lambda **how: ledger.epsilon(1e-5, **how)):
        own = OWN["replace-special"]
        assert priced(neighboring_relation=own) == priced(neighboring_relation="replace-special")
        for relation in ("add-or-remove-one", OWN["add-or-remove-one"]):
            with pytest.raises(UnsupportedEvent, match="composes over disjoint parts"):
                priced(neighboring_relation=relation)
