"""Randomness: public and secret roots, mixed with plan and records, and never drawn twice."""

import dataclasses
import threading

import numpy as np
import pytest

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants
from dpcal.errors import NoiseReused
from dpcal.optim import (
    MLP,
    FromGradients,
    Logistic,
    PrivateOracle,
    Softmax,
    correlated_dpsgd,
    noisy_gd,
    replaying,
    spiderboost,
)

RNG = np.random.default_rng(0)
N = 200
X = RNG.standard_normal((N, 4))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = X[:, 0] > 0
OBJECTIVE = Logistic(X, Y, fit_intercept=False, classes_from_data=True)
CONSTANTS = Constants(lipschitz=1.0, smoothness=0.25, gap=0.7)


def plan_for(epsilon=1.0, name="noisy_gd"):
    return getattr(calibrate, name)(
        CONSTANTS, n=N, dimension=4, epsilon=epsilon, delta=1e-5, steps=20
    )


def noise_of(plan, objective=OBJECTIVE, seed=0):
    """The noise of a run's first answer, in units of its standard deviation."""
    query = plan.queries[0]
    oracle = PrivateOracle(objective, plan, seed=seed)
    exact = objective.clipped_sum(np.zeros(4), np.arange(N), query.max_norm)
    noisy = oracle.gradient(np.zeros(4), query.name) * N
    return (noisy - exact) / (query.noise_multiplier * query.max_norm)


def test_runs_of_other_plans_share_no_noise():
    # Two runs with one seed gave the clipped sum away to 6e-14: now noises differ as independent
    # ones do. Four differences of normals below 0.01 each: false alarm 1e-9.
    first = noise_of(plan_for(1.0))
    for other in (plan_for(0.5), plan_for(1.0, "spiderboost")):
        assert np.abs(first - noise_of(other)).max() > 0.01


def test_runs_about_other_records_share_no_noise():
    changed = X.copy()
    changed[7, 2] = np.nextafter(changed[7, 2], 1.0)
    neighbour = Logistic(changed, Y, fit_intercept=False, classes_from_data=True)
    assert np.abs(noise_of(plan_for()) - noise_of(plan_for(), neighbour)).max() > 0.01


@pytest.mark.parametrize(
    "family",
    [
        lambda table: Softmax(table, Y, classes_from_data=True),
        lambda table: MLP(table, Y, width=2, classes_from_data=True),
        lambda table: FromGradients(lambda w, rows: table[rows], n=N, dimension=4),
        lambda table: Logistic(table, Y, classes_from_data=True),
    ],
    ids=["softmax", "mlp", "custom", "logistic"],
)
def test_digests_tell_records_apart_and_nothing_else(family):
    changed = X.copy()
    changed[-1, -1] += 1e-9
    assert family(X).digest() == family(X.copy()).digest() != family(changed).digest()


@pytest.mark.parametrize("seed", [0, 12345, None, np.random.SeedSequence(3)])
def test_the_public_generator_tells_nothing_of_the_noise(seed):
    oracle = PrivateOracle(OBJECTIVE, plan_for(), seed=seed)
    oracle.gradient(np.zeros(4), "gradient")
    sequence = oracle.public.bit_generator.seed_seq
    secret = oracle.state()["seed"]["secret"]
    assert f"{sequence.entropy:x}" != secret
    assert sequence.spawn_key == ()
    # What an adversary rebuilt the noise from: children of the public root.
    root = np.random.SeedSequence(sequence.entropy)
    query = plan_for().queries[0]
    exact = OBJECTIVE.clipped_sum(np.zeros(4), np.arange(N), query.max_norm)
    with replaying():
        answer = PrivateOracle(OBJECTIVE, plan_for(), seed=5).gradient(np.zeros(4), "gradient")
    noise = (answer * N - exact) / (query.noise_multiplier * query.max_norm)
    for child in root.spawn(4):
        assert np.abs(noise - np.random.default_rng(child).standard_normal(4)).max() > 1e-3


def test_results_say_whether_a_seed_was_given():
    assert noisy_gd(OBJECTIVE, plan_for(), seed=1).seed_given
    assert not noisy_gd(OBJECTIVE, plan_for()).seed_given
    assert spiderboost(OBJECTIVE, plan_for(1.0, "spiderboost"), seed=1).seed_given


@pytest.mark.parametrize("optimizer", [noisy_gd, spiderboost])
def test_same_noise_is_refused_in_one_process(optimizer):
    plan = plan_for(0.9, optimizer.__name__)
    optimizer(OBJECTIVE, plan, seed=99)
    sweep = "where runs differ in a learning rate, one seed for each of them"
    with pytest.raises(NoiseReused, match=f"drawn the noise of this seed, .* {sweep}"):
        optimizer(OBJECTIVE, plan, seed=99, learning_rate=0.1)
    optimizer(OBJECTIVE, plan, seed=100)
    optimizer(OBJECTIVE, dataclasses.replace(plan, epsilon=0.91), seed=99)
    optimizer(OBJECTIVE, plan)
    optimizer(OBJECTIVE, plan)


def test_same_noise_is_refused_for_the_correlated_kind_too():
    plan = calibrate.correlated_dpsgd(
        LambdaCGD(8, 0.5), n=N, batch_size=N, sampler="full", epsilon=1.0, delta=1e-5
    )
    first = correlated_dpsgd(OBJECTIVE, plan, seed=4)
    with pytest.raises(NoiseReused):
        correlated_dpsgd(OBJECTIVE, plan, seed=4)
    with replaying():
        again = correlated_dpsgd(OBJECTIVE, plan, seed=4)
    assert (first.w == again.w).all()


def test_same_noise_is_refused_without_anything_released():
    plan = plan_for(0.8)
    PrivateOracle(OBJECTIVE, plan, seed=1).gradient(np.zeros(4), "gradient")
    second = PrivateOracle(OBJECTIVE, plan, seed=1)
    with pytest.raises(NoiseReused):
        second.gradient(np.ones(4), "gradient")
    assert second.public is not None


def test_a_generator_that_is_given_twice_has_other_noise():
    generator = np.random.default_rng(3)
    first, second = (noise_of(plan_for(0.7), seed=generator) for _ in range(2))
    assert np.abs(first - second).max() > 0.01


@pytest.mark.parametrize("inside", [False, True])
def test_same_noise_is_refused_in_a_thread_while_another_one_replays(inside):
    # A thread that is started inside is nobody's replay either.
    plan, said = plan_for(0.75 if inside else 0.875), []
    waits, ends = threading.Event(), threading.Event()

    def innocent():
        waits.wait()
        try:
            for _ in range(2):
                said.append(noise_of(plan, seed=9))
        except NoiseReused:
            said.append("refused")
        ends.set()

    thread = threading.Thread(target=innocent)
    if not inside:
        thread.start()
    with replaying():
        if inside:
            thread.start()
        noise_of(plan, seed=10)
        noise_of(plan, seed=10)
        waits.set()
        ends.wait()
    thread.join()
    assert len(said) == 2
    assert said[1] == "refused"
    with pytest.raises(NoiseReused):
        noise_of(plan, seed=10)
