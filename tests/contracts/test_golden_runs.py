"""Plans and seeded runs stay what they were: kept documents, plans made anew, runs made anew.

A plan's document enters the stream of its noise, so that another document is another run. Run this
file as a program to keep the documents of today in place of those of before.
"""

import json
import sys
import warnings

import numpy as np
import pytest
from _built_plans import CASES, built
from _certificates import entries
from _tree import DATA

from dpcal import calibrate, optim
from dpcal.errors import VacuousSchedule

KEPT = DATA / "golden_runs.json"
# Sums of doubles in another order, on another processor.
ROUNDING = 1e-9


def run(name, plan, objective):
    """Return the iterates and the end of a seeded run."""
    with warnings.catch_warnings(), optim.replaying():
        warnings.simplefilter("ignore")
        found = getattr(optim, name)(objective, plan, seed=11)
    return {"w": np.asarray(found.w).tolist(), "message": found.message}


def made(case):
    """Return a case's plan and objective."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousSchedule)
        return built(*case)


def check_alike(kept, now):
    """Compare two documents, up to rounding of their doubles."""
    for (place, due), (where, found) in zip(entries(kept), entries(now), strict=True):
        assert (place, type(due)) == (where, type(found))
        if isinstance(due, float):
            assert found == pytest.approx(due, rel=ROUNDING, abs=ROUNDING), place
        assert found == due or isinstance(due, float | dict | list), place


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "relation"), CASES)
def test_a_plan_and_its_run_are_what_they_were(name, options, relation, request):
    kept = json.loads(KEPT.read_text())[request.node.callspec.id]
    plan, objective = made((name, options, relation))
    check_alike(kept["plan"], json.loads(plan.to_json()))
    same = calibrate.Plan.from_json(json.dumps(kept["plan"]))
    check_alike(kept["run"], run(name, same, objective))


if __name__ == "__main__":
    rows = {}
    for case in CASES:
        plan, objective = made(case.values)
        name = case.values[0]
        rows[case.id] = {"plan": json.loads(plan.to_json()), "run": run(name, plan, objective)}
    target = sys.argv[1] if len(sys.argv) > 1 else KEPT
    with open(target, "w") as file:
        json.dump(rows, file, indent=0)
        file.write("\n")
