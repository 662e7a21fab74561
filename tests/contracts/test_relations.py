"""A neighboring relation is a name, or dp-accounting's own value, wherever one is asked for."""

import math

import pytest
from dp_accounting import NeighboringRelation

import dpcal
from dpcal import _validate, accountants, calibrate, optim, plot
from dpcal.accountants import events
from dpcal.errors import UnsupportedEvent

RUN = events.GaussianDpEvent(2.0)
TARGET = {"epsilon": 2.0, "delta": 1e-5}
DPSGD = {"n": 100, "batch_size": 100, "steps": 2, **TARGET}
OWN = {
    name.lower().replace("_", "-"): each for name, each in NeighboringRelation.__members__.items()
}

# Functions and classes that take a relation; each gives what can be compared.
TAKE = {
    "epsilon": lambda **how: dpcal.epsilon(RUN, delta=1e-5, **how),
    "delta": lambda **how: dpcal.delta(RUN, epsilon=1.0, **how),
    "log_delta": lambda **how: accountants.log_delta(RUN, epsilon=1.0, **how),
    "compare": lambda **how: (
        accountants.compare(RUN, delta=1e-5, accountants=["renyi"], **how).neighboring_relation
    ),
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
    "plot": lambda **how: plot.Curve.of(RUN, "a run", **how),
}


def told(answer):
    return repr((answer, getattr(answer, "neighboring_relation", None)))


def test_the_reader_takes_a_name_and_dp_accountings_value():
    for name, own in OWN.items():
        assert _validate.relation(name) == _validate.relation(own) == name
    for wrong in ("add-or-remove", "ADD_OR_REMOVE_ONE", math.nan, None, 1):
        with pytest.raises(ValueError, match="neighboring_relation must be one of"):
            dpcal.epsilon(RUN, delta=1e-5, neighboring_relation=wrong)


@pytest.mark.slow
def test_one_relation_in_two_notations_has_one_answer(tmp_path):
    def book(**how):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        return optim.BudgetBook(path, **TARGET, **how).neighboring_relation

    for name, ask in {**TAKE, "book": book}.items():
        named, own, other = (
            told(ask(neighboring_relation=relation))
            for relation in ("replace-one", OWN["replace-one"], "add-or-remove-one")
        )
        assert own == named != other, name


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
