"""Flower's protocol of a privacy accountant, beside Flower's own accountant."""

import dataclasses
import json

import pytest

from dpcal.accountants import epsilon, events

pytest.importorskip("flwr")

from flwr.supercore.privacy_accounting import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    SamplingMethod,
)
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

from dpcal.adapters.flower import Accountant
from dpcal.errors import BudgetExceeded
from dpcal.report import Policy

MODELS = [
    (SamplingMethod.POISSON, NeighboringRelation.ADD_OR_REMOVE_ONE),
    (SamplingMethod.NO_AMPLIFICATION, NeighboringRelation.ADD_OR_REMOVE_ONE),
    (SamplingMethod.WITHOUT_REPLACEMENT, NeighboringRelation.REPLACE_ONE),
]
EVENT = GaussianPrivacyEvent(noise_multiplier=3.0, sample_size=20, population_size=500)


def config(method, relation, **changes):
    fields = {"target_delta": 1e-5, "population_size": 500, **changes}
    return PrivacyConfig(neighboring_relation=relation, sampling_method=method, **fields)


@pytest.mark.parametrize(("method", "relation"), MODELS)
def test_it_prices_what_flower_prices_and_no_higher(method, relation):
    """A replaced client moves the sum twice as far, which Flower leaves to the caller's noise."""
    ours, theirs = Accountant(config(method, relation)), RdpAccountant(config(method, relation))
    assert ours.get_epsilon(1e-5) == 0.0
    half = relation is NeighboringRelation.REPLACE_ONE
    effective = dataclasses.replace(EVENT, noise_multiplier=1.5) if half else EVENT
    for accountant, event in ((ours, EVENT), (theirs, effective)):
        accountant.compose(event)
        accountant.compose(event, 30)
    assert ours.num_releases == theirs.num_releases == 31
    assert 0 < ours.get_epsilon(1e-5) < theirs.get_epsilon(1e-5) * 1.0001
    assert 0 < ours.get_delta(1.0) < theirs.get_delta(1.0) * 1.0001
    spent = ours.get_privacy_spent()
    assert (spent.delta, spent.num_releases, spent.accounting_method) == (1e-5, 31, "dpcal")
    assert spent.epsilon == ours.get_epsilon(1e-5)


def test_the_price_of_poisson_sampled_clients_is_that_of_the_event():
    accountant = Accountant(
        target_delta=1e-5, population_size=500, neighboring_relation="add-or-remove-one",
        sampling_method="poisson",
    )  # fmt: skip
    accountant.compose(EVENT, 40)
    event = events.dpsgd(sampling_probability=0.04, noise_multiplier=3.0, steps=40)
    assert accountant.get_epsilon(1e-5) == epsilon(event, delta=1e-5).upper


def test_what_would_exceed_is_told_and_nothing_changes():
    accountant = Accountant(config(*MODELS[0], max_epsilon=0.5))
    rounds = 0
    while not accountant.would_exceed(EVENT):
        accountant.compose(EVENT)
        rounds += 1
    assert accountant.num_releases == rounds > 5
    assert accountant.get_epsilon(1e-5) <= 0.5
    assert not accountant.would_exceed(EVENT, max_epsilon=0.6)
    assert accountant.would_exceed(EVENT, max_epsilon=0.6, count=50)
    with pytest.raises(ValueError, match="max_epsilon must be given"):
        Accountant(config(*MODELS[0])).would_exceed(EVENT)


def test_state_survives_json_and_is_checked():
    accountant = Accountant(config(*MODELS[0]))
    accountant.compose(EVENT, 7)
    state = json.loads(json.dumps(accountant.state_dict()))
    other = Accountant(config(*MODELS[0]))
    other.load_state_dict(state)
    assert other.state_dict() == accountant.state_dict()
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    for change in ({"backend": "rdp"}, {"config": {}}, {"compositions": [{"count": 1}]}):
        with pytest.raises(ValueError, match="state must"):
            other.load_state_dict({**state, **change})
    assert other.num_releases == 7


def test_another_population_is_refused():
    event = GaussianPrivacyEvent(noise_multiplier=3.0, sample_size=20, population_size=501)
    accountant = Accountant(config(*MODELS[0]))
    with pytest.raises(ValueError, match="population_size=500, got 501"):
        accountant.compose(event)
    assert accountant.num_releases == 0


def test_flowers_own_wrapper_takes_it():
    """The strategy that clips and adds noise checks budgets by the accountant that it is given."""
    strategies = pytest.importorskip("flwr.serverapp.strategy")
    accountant = Accountant(config(*MODELS[1], max_epsilon=5.0))
    strategy = strategies.DifferentialPrivacyServerSideFixedClipping(
        strategies.FedAvg(), noise_multiplier=3.0, clipping_norm=1.0, num_sampled_clients=20,
        accountant=accountant,
    )  # fmt: skip
    strategy._compose_release(EVENT)
    assert strategy.privacy_spent().epsilon == accountant.get_epsilon(1e-5) > 0


def test_a_server_keeps_its_policy():
    policy = Policy.from_toml("max_epsilon = 1.5\nunits = ['client']\nsamplers = ['poisson']")
    accountant = Accountant(config(*MODELS[0]), policy=policy)
    accountant.compose(EVENT, 300)
    paid = accountant.get_epsilon(1e-5)
    assert 0.5 < paid < 1.5
    with pytest.raises(BudgetExceeded, match=r"line 1: max_epsilon = 1.5, but epsilon is"):
        accountant.compose(EVENT, 10_000)
    assert accountant.get_epsilon(1e-5) == paid
    with pytest.raises(ValueError, match="line 3: samplers"):
        Accountant(config(*MODELS[1]), policy=policy)
