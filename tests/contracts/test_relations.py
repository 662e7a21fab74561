"""A neighboring relation is a name, or dp-accounting's own value, wherever one is asked for."""

import math
import warnings

import pytest
from _built_plans import CASES, built
from dp_accounting import NeighboringRelation

import dpcal
from dpcal import accountants, calibrate, optim, plot
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent, VacuousSchedule

RUN = events.dpsgd(sampling_probability=0.2, noise_multiplier=2.0, steps=16)
TARGET = {"epsilon": 2.0, "delta": 1e-5}
DPSGD = {"n": 1000, "batch_size": 100, "epochs": 1, **TARGET}


# Doors that take a relation; each gives what can be compared.
DOORS = {
    "epsilon": lambda **how: dpcal.epsilon(RUN, delta=1e-5, **how),
    "delta": lambda **how: dpcal.delta(RUN, epsilon=1.0, **how),
    "log_delta": lambda **how: accountants.log_delta(RUN, epsilon=1.0, **how),
    "compare": lambda **how: accountants.compare(RUN, delta=1e-5, **how).neighboring_relation,
    "privacy_profile": lambda **how: accountants.privacy_profile(RUN, [1.0], **how).upper,
    "epsilon_profile": lambda **how: accountants.epsilon_profile(RUN, [1e-5], **how).upper,
    "trade_off": lambda **how: accountants.trade_off(RUN, [0.1], **how).lower,
    "gdp_mu": lambda **how: accountants.gdp_mu(RUN, **how),
    "advantage": lambda **how: accountants.advantage(RUN, **how),
    "bayes_success": lambda **how: accountants.bayes_success(RUN, prior=0.5, **how),
    "certify": lambda **how: dpcal.certify(RUN, epsilon=1.0, **how).neighboring_relation,
    "noise_multiplier": lambda **how: calibrate.noise_multiplier(
        events.GaussianDpEvent, **TARGET, **how
    ),
    "odometer": lambda **how: accountants.Odometer(delta=1e-5, **how).neighboring_relation,
    "account": lambda **how: accountants.Account(**how).neighboring_relation,
    "plan": lambda **how: calibrate.dpsgd(**DPSGD, **how).to_json(),
    "ledger": lambda **how: optim.Ledger(100, **how).to_json(),
    "book": lambda tmp="", **how: optim.BudgetBook(tmp, **TARGET, **how).neighboring_relation,
    "plot": lambda **how: plot.Curve.of(RUN, "a run", **how),
}
OWN = {
    name.lower().replace("_", "-"): each for name, each in NeighboringRelation.__members__.items()
}


def told(answer):
    return repr((answer, getattr(answer, "neighboring_relation", None)))


@pytest.mark.parametrize("door", DOORS)
def test_one_relation_in_two_notations_has_one_answer(door, tmp_path):
    more = [{"tmp": tmp_path / f"{number}.budget"} if door == "book" else {} for number in range(3)]
    named, own, other = (
        told(DOORS[door](neighboring_relation=relation, **given))
        for relation, given in zip(
            ("replace-one", OWN["replace-one"], "add-or-remove-one"), more, strict=True
        )
    )
    assert own == named != other


@pytest.mark.parametrize(("name", "options", "relation"), CASES)
def test_a_builder_takes_both_notations(name, options, relation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousSchedule)
        named, own = (built(name, options, each)[0] for each in (relation, OWN[relation]))
    assert own == named
    assert own.neighboring_relation == relation


def test_a_relation_that_a_plan_does_not_hold_under_is_refused_in_both_notations():
    parts = calibrate.Query(
        name="parts",
        kind="gradient",
        sampler="full",
        max_norm=1.0,
        noise_multiplier=2.0,
        count=4,
        composition="disjoint",
        answers_per_part=1,
    )
    plan = calibrate.Plan(
        optimizer="dpsgd", n=100, queries=(parts,), neighboring_relation="replace-one", **TARGET
    )
    ledger = optim.Ledger(100, "replace-one")
    ledger.record(parts)
    for priced in (plan.price, lambda **how: ledger.epsilon(1e-5, **how)):
        own = OWN["replace-special"]
        assert priced(neighboring_relation=own) == priced(neighboring_relation="replace-special")
        for relation in ("add-or-remove-one", OWN["add-or-remove-one"]):
            with pytest.raises(UnsupportedEvent, match="composes over disjoint parts"):
                priced(neighboring_relation=relation)


def test_what_is_no_relation_is_refused():
    with pytest.raises(ValueError, match="neighboring_relation must be one of"):
        dpcal.epsilon(RUN, delta=1e-5, neighboring_relation=math.nan)
