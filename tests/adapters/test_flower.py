"""Flower's protocol of a privacy accountant, beside Flower's own accountant and strategies."""

import dataclasses
import json
import logging
import math
import random
from functools import partial

import numpy as np
import pytest
from _tree import ROOT, program

from dpcal.accountants import epsilon, events

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp import strategy
from flwr.serverapp.exception import PrivacyBudgetExhausted
from flwr.serverapp.strategy import dp_fixed_clipping
from flwr.supercore.privacy_accounting import (
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyConfig,
    SamplingMethod,
)
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant
from flwr.supercore.task_identity import TaskIdentity

from dpcal.adapters.flower import Accountant

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
    """A fixed number of clients moves the sum twice as far; Flower leaves this to the caller."""
    ours, theirs = Accountant(config(method, relation)), RdpAccountant(config(method, relation))
    assert ours.get_epsilon(1e-5) == 0.0
    half = method is not SamplingMethod.POISSON
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
    if method is SamplingMethod.POISSON:
        event = events.dpsgd(sampling_probability=0.04, noise_multiplier=3.0, steps=31)
        assert spent.epsilon == epsilon(event, delta=1e-5).upper
    other = dataclasses.replace(EVENT, population_size=501)
    with pytest.raises(ValueError, match="population_size=500, got 501"):
        ours.compose(other)
    assert ours.num_releases == 31


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


@pytest.mark.parametrize("secret", [False, True])
def test_state_survives_json_and_is_checked(secret):
    given = config(*MODELS[1])
    accountant, other = (Accountant(given, secret_draws=secret) for _ in range(2))
    accountant.compose(EVENT, 7)
    state = json.loads(json.dumps(accountant.state_dict()))
    other.load_state_dict(state)
    assert other.state_dict() == accountant.state_dict()
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    for change in ({"backend": "rdp"}, {"config": {}}, {"compositions": [{"count": 1}]}):
        with pytest.raises(ValueError, match="state must"):
            other.load_state_dict({**state, **change})
    with pytest.raises(ValueError, match="state must have config"):
        Accountant(given, secret_draws=not secret).load_state_dict(state)
    assert other.num_releases == 7


class Grid:
    """The nodes that are connected."""

    def __init__(self, nodes):
        self.nodes = nodes

    def get_node_ids(self):
        return self.nodes


def reply_of(message, update, order=("w", "b"), **metrics):
    """Return what a node sends back: the model that it was sent, and its update."""
    (arrays,) = message.content.array_records.values()
    made = {name: Array(arrays[name].numpy() + update) for name in order}
    content = RecordDict(
        {"arrays": ArrayRecord(made), "metrics": MetricRecord({"num-examples": 1.0, **metrics})}
    )
    return Message(content, dst_node_id=1, message_type="train")


MODEL = {"w": np.array([2.0, 0.0]), "b": np.array([500.0, 0.0])}


def round_of(wrapped, mod, reply, nodes, seed=0):
    """Return Flower's new model and metrics after a round without noise, and who was drawn."""
    random.seed(seed)
    model = ArrayRecord({name: Array(each) for name, each in MODEL.items()})
    messages = list(wrapped.configure_train(1, model, ConfigRecord(), Grid(list(nodes))))
    drawn = [message.metadata.dst_node_id for message in messages]
    replies = [
        reply(message, node)
        if mod is None
        else mod(message, None, lambda m, _, n=node: reply(m, n))
        for message, node in zip(messages, drawn, strict=True)
    ]
    arrays, metrics = wrapped.aggregate_train(1, replies)
    assert wrapped.accountant.num_releases == 1
    return np.concatenate(arrays.to_numpy_ndarrays()), metrics, drawn


def wrapped_by(wrapper, inner, clients, k, model=MODELS[1]):
    """Return a strategy of Flower that draws k of so many clients, with this accountant."""
    return wrapper(
        inner(fraction_train=1e-9, min_train_nodes=k, min_available_nodes=clients),
        noise_multiplier=3.0,
        num_sampled_clients=k,
        accountant=Accountant(config(*model, population_size=clients)),
        **({} if "Adaptive" in wrapper.__name__ else {"clipping_norm": 1.0}),
    )


def test_flower_takes_no_accountant_where_the_page_says_so():
    fixed = strategy.DifferentialPrivacyServerSideFixedClipping
    for model in (MODELS[0], MODELS[2]):
        with pytest.raises(ValueError, match="requires sampling_method='no-amplification'"):
            wrapped_by(fixed, strategy.FedAvg, 500, 20, model)
    for side in ("Server", "Client"):
        adaptive = getattr(strategy, f"DifferentialPrivacy{side}SideAdaptiveClipping")
        with pytest.raises(TypeError, match="accountant"):
            wrapped_by(adaptive, strategy.FedAvg, 500, 20)


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(TaskIdentity, "_run_id", 1, raising=False)
    monkeypatch.setattr(TaskIdentity, "_task_id", 1, raising=False)
    monkeypatch.setattr(TaskIdentity, "_node_id", 1, raising=False)
    monkeypatch.setattr(dp_fixed_clipping, "add_gaussian_noise_inplace", lambda *_: None)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


WRAPPERS = {
    "server": (strategy.DifferentialPrivacyServerSideFixedClipping, None),
    "client": (strategy.DifferentialPrivacyClientSideFixedClipping, fixedclipping_mod),
}


@pytest.mark.parametrize("inner", [strategy.FedAvg, strategy.FedProx])
@pytest.mark.parametrize("side", WRAPPERS)
def test_a_removed_client_moves_a_round_by_what_is_priced(side, inner, without_noise):
    """Rounds of 3 out of 4 clients, and of 3 without the fourth: by 2 C, and no further."""
    if inner is strategy.FedProx:
        inner = partial(inner, proximal_mu=0.1)
    (wrapper, mod), k, far = WRAPPERS[side], 3, 0.0

    def reply(message, node):
        return reply_of(message, 100.0 if node == 4 else -100.0)

    strategy_of_three = wrapped_by(wrapper, inner, 3, k)
    without, _, _ = round_of(strategy_of_three, mod, reply, (1, 2, 3))
    for seed in range(20):
        four = wrapped_by(wrapper, inner, 4, k)
        model, _, drawn = round_of(four, mod, reply, (1, 2, 3, 4), seed)
        moved = k * np.linalg.norm(model - without)
        assert moved == pytest.approx(2.0 if 4 in drawn else 0.0, abs=1e-9)
        far = max(far, moved)
    # Noise of 3 C over this distance.
    price = epsilon(events.GaussianDpEvent(3.0 / far), delta=1e-5)
    assert four.privacy_spent().epsilon == pytest.approx(price.upper, rel=1e-9)
    assert price.lower > 2 * epsilon(events.GaussianDpEvent(3.0), delta=1e-5).upper


def test_what_flower_lets_through_is_what_the_page_says(without_noise):
    """Values that are not finite, no change, arrays in another order, metrics, one node for all."""
    page = " ".join((ROOT / "docs" / "how_to" / "jax.md").read_text().split())
    wrapper, mod = WRAPPERS["server"]

    def after(reply):
        return round_of(wrapped_by(wrapper, strategy.FedAvg, 3, 3), mod, reply, (1, 2, 3))

    def odd(other):
        return lambda message, node: reply_of(message, 1.0) if node < 3 else other(message)

    assert "not a finite number makes the whole model NaN" in page
    assert np.isnan(after(odd(lambda message: reply_of(message, math.nan)))[0]).all()
    assert "A client without a change ends the round by a `ZeroDivisionError`" in page
    with pytest.raises(ZeroDivisionError):
        after(odd(lambda message: reply_of(message, 0.0)))
    assert "arrays of equal shape in another order is not clipped" in page
    plain, _, _ = after(odd(lambda message: reply_of(message, 1.0)))
    turned, _, _ = after(odd(lambda message: reply_of(message, 1.0, order=("b", "w"))))
    assert 3 * np.linalg.norm(turned - plain) > 100.0
    assert "Metrics leave without noise" in page
    _, metrics, _ = after(lambda message, node: reply_of(message, 1.0, loss=3e6 * (node == 3)))
    assert metrics["loss"] == pytest.approx(1e6)
    assert "compares the number of replies, and not who sent them" in page
    once = after(lambda message, node: reply_of(message, 100.0))[0]
    assert np.linalg.norm(once - np.concatenate([*MODEL.values()])) == pytest.approx(1.0)


def test_the_program_of_the_page_runs(without_noise):
    """Rounds of 20 of 500 clients, until Flower refuses one."""
    names = {}
    exec(program("how_to/jax.md", "Flower"), names)
    made, accountant = names["strategy"], names["accountant"]
    model = ArrayRecord({name: Array(each) for name, each in MODEL.items()})

    def asked(number):
        sent = list(made.configure_train(number, model, ConfigRecord(), Grid(range(500))))
        accountant.compose(made._pop_pending_event(number))
        return len(sent)

    assert asked(0) == 20
    while not accountant.would_exceed(EVENT, count=40):
        accountant.compose(EVENT, 40)
    with pytest.raises(PrivacyBudgetExhausted):
        {asked(number) for number in range(41)}
    assert 3.9 < accountant.get_epsilon(1e-6) <= 4.0


def test_secret_draws_are_counted_on_only_where_that_is_said():
    told, secret = (Accountant(config(*MODELS[1]), secret_draws=each) for each in (False, True))
    for accountant in (told, secret):
        accountant.compose(EVENT, 100)
    sampled = events.PoissonSampledDpEvent(0.04, events.GaussianDpEvent(1.5))
    true = epsilon(events.SelfComposedDpEvent(sampled, 100), delta=1e-5)
    assert secret.get_epsilon(1e-5) == true.upper
    assert told.get_epsilon(1e-5) > 10 * true.upper
    with pytest.raises(ValueError, match="secret_draws must be False"):
        Accountant(config(*MODELS[0]), secret_draws=True)


def test_another_relation_than_that_of_the_method_is_refused():
    for method, relation in (
        (SamplingMethod.NO_AMPLIFICATION, NeighboringRelation.REPLACE_ONE),
        (SamplingMethod.WITHOUT_REPLACEMENT, NeighboringRelation.ADD_OR_REMOVE_ONE),
    ):
        # Flower may refuse it already.
        with pytest.raises(ValueError, match=r"must be|requires"):
            Accountant(config(method, relation))
