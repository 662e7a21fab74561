"""Randomness: public and secret roots, mixed with plan and records, and never drawn twice."""

import dataclasses
import threading

import numpy as np
import pytest
from _answers import D, N, X, Y, plan_for, query

from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Correlation
from dpcal.errors import NoiseReused
from dpcal.optim import MLP, FromGradients, Logistic, PrivateOracle, Softmax, noisy_gd, replaying

LOGISTIC = Logistic(X, Y, classes=[0, 1])
ASKED = query(count=4)
ORIGIN = np.zeros(D)


def planned(epsilon=1.0, asked=ASKED, **fields):
    return plan_for(asked, epsilon=epsilon, parameters={"learning_rate": 0.1}, **fields)


def noise_of(plan, objective=LOGISTIC, seed=0):
    """The noise of a run's first answer, in units of its standard deviation."""
    exact = objective.clipped_sum(ORIGIN, np.arange(N), ASKED.max_norm)
    noisy = PrivateOracle(objective, plan, seed=seed).gradient(ORIGIN, "q") * N
    return (noisy - exact) / (ASKED.noise_multiplier * ASKED.max_norm)


def test_runs_of_other_plans_or_about_other_records_share_no_noise():
    # Two runs with one seed gave the clipped sum away to 6e-14: now noises differ as independent
    # ones do. Four differences of normals below 0.01 each, in one of 15 pairs: false alarm 2e-8.
    first, changed = noise_of(planned()), X.copy()
    changed[7, 2] = np.nextafter(changed[7, 2], 1.0)
    others = [noise_of(planned(0.5)), noise_of(planned(optimizer="spiderboost"))]
    others += [noise_of(planned(), Logistic(changed, Y, classes=[0, 1]))]
    generator = np.random.default_rng(3)
    others += [noise_of(planned(0.7), seed=generator) for _ in range(2)]
    for number, other in enumerate(others):
        for earlier in [first, *others[:number]]:
            assert np.abs(earlier - other).max() > 0.01, number


def test_digests_tell_records_apart_and_nothing_else():
    changed = X.copy()
    changed[-1, -1] += 1e-9
    for family in (
        lambda table: Softmax(table, Y, classes=[0, 1]),
        lambda table: MLP(table, Y, width=2, classes=[0, 1]),
        lambda table: FromGradients(lambda w, rows: table[rows], n=N, dimension=D - 1),
        lambda table: Logistic(table, Y, classes=[0, 1]),
    ):
        assert family(X).digest() == family(X.copy()).digest() != family(changed).digest()


def test_the_public_generator_tells_nothing_of_the_noise():
    with replaying():
        noise = noise_of(planned(), seed=5)
    for seed in (0, 5, None, np.random.SeedSequence(3)):
        oracle = PrivateOracle(LOGISTIC, planned(0.6), seed=seed)
        assert oracle.seed_given == (seed is not None)
        oracle.gradient(ORIGIN, "q")
        sequence = oracle.public.bit_generator.seed_seq
        assert f"{sequence.entropy:x}" != oracle.state()["seed"]["secret"]
        assert sequence.spawn_key == ()
        # What an adversary rebuilt the noise from: children of the public root.
        for child in np.random.SeedSequence(sequence.entropy).spawn(4):
            assert np.abs(noise - np.random.default_rng(child).standard_normal(D)).max() > 1e-3


def test_same_noise_is_refused_in_one_process():
    plan = planned(0.9, optimizer="noisy_gd")
    noisy_gd(LOGISTIC, plan, seed=99)
    sweep = "where runs differ in a learning rate, one seed for each of them"
    with pytest.raises(NoiseReused, match=f"drawn the noise of this seed, .* {sweep}"):
        noisy_gd(LOGISTIC, plan, seed=99, learning_rate=0.1)
    noisy_gd(LOGISTIC, plan, seed=100)
    noisy_gd(LOGISTIC, dataclasses.replace(plan, epsilon=0.91), seed=99)
    for _ in range(2):
        noisy_gd(LOGISTIC, plan)


def test_same_noise_is_refused_without_anything_released():
    correlated = dataclasses.replace(ASKED, correlation=Correlation(strategy=LambdaCGD(4, 0.5)))
    for asked in (ASKED, correlated):
        plan = planned(0.8, asked)
        first = PrivateOracle(LOGISTIC, plan, seed=1).gradient(ORIGIN, "q")
        second = PrivateOracle(LOGISTIC, plan, seed=1)
        with pytest.raises(NoiseReused):
            second.gradient(ORIGIN + 1, "q")
        assert second.public is not None
        with replaying():
            again = PrivateOracle(LOGISTIC, plan, seed=1).gradient(ORIGIN, "q")
        assert (first == again).all()


@pytest.mark.parametrize("inside", [False, True])
def test_same_noise_is_refused_in_a_thread_while_another_one_replays(inside):
    # A thread that is started inside is nobody's replay either.
    plan, said = planned(0.75 if inside else 0.875), []
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
