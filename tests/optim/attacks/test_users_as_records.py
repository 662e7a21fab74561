"""Users as records: the sum of a user's rows is clipped, and no row of a user does more."""

import dataclasses
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from dpcal import calibrate, optim
from dpcal.accountants import delta, events
from dpcal.accountants.matrix import LambdaCGD
from dpcal.accountants.samplers import FixedSize
from dpcal.calibrate.persons import for_group
from dpcal.errors import UnsupportedEvent
from dpcal.optim import attacks
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.objectives.contributions import gradients, losses

RNG = np.random.default_rng(0)
N, D, K = 120, 3, 4
# Numbers of two digits are in the order of their texts.
OWNERS = 10 + np.concatenate([np.arange(40), RNG.integers(0, 40, N - 40)])
X = RNG.standard_normal((N, D))
Y = (X[:, 0] > 0).astype(int)
TARGET = {"epsilon": 3.0, "delta": 1e-4}
PLAN = calibrate.dpsgd(
    n=40, batch_size=20, steps=12, group_size=K, clipped="user", max_norm=0.7, **TARGET
)


def rows_of(table, labels):
    return optim.Logistic(table, labels, fit_intercept=False, classes=[0, 1])


def users_of(table, labels=Y, owners=OWNERS, group_size=K):
    return optim.Users(rows_of(table, labels), owners, group_size=group_size)


@pytest.mark.parametrize("bound", [0.3, 2.0, 50.0])
def test_sums_are_those_of_users_each_clipped(bound):
    w, v, some = RNG.standard_normal(D), RNG.standard_normal(D), np.array([3, 17, 0, 39])
    rows, users = rows_of(X, Y), users_of(X)
    wanted = {"gradient": np.zeros(D), "difference": np.zeros(D), "loss": 0.0}
    for user in some:
        mine = np.flatnonzero(user + 10 == OWNERS)[:K]
        slopes = [rows.clipped_sum(at, mine, np.inf) for at in (w, v)]
        for name, sum_of in (("gradient", slopes[0]), ("difference", slopes[0] - slopes[1])):
            wanted[name] += sum_of * min(1.0, bound / np.linalg.norm(sum_of))
        wanted["loss"] += min(bound, rows.clipped_loss_sum(w, mine, np.inf))
    found = {
        "gradient": gradients(users, some, w).whole(bound),
        "difference": gradients(users, some, w, v).whole(bound),
        "loss": losses(users, some, w).whole(bound),
    }
    for name, total in found.items():
        assert Mechanism.values(total, bound) == pytest.approx(wanted[name], abs=2e-5 * bound)


def test_a_user_with_many_hostile_rows_moves_a_sum_by_the_bound():
    many = 500
    table = np.concatenate([X, 1e9 * np.ones((many, D)), np.full((3, D), np.inf)])
    labels = np.concatenate([Y, np.zeros(many + 3, dtype=int)])
    owners = np.concatenate([OWNERS, np.full(many + 3, 99)])
    everyone, w, bound = np.arange(41), np.ones(D), 0.5
    for k in (1, K, many + 3):
        users = users_of(table, labels, owners, k)
        totals = [gradients(users, some, w).whole(bound) for some in (everyone, everyone[:40])]
        moved = Mechanism.values(totals[0] - totals[1], bound)
        assert 0.99 * bound < np.linalg.norm(moved) <= bound * (1 + 1e-12)


def test_rows_beyond_the_largest_number_are_never_read_and_nobody_elses_change():
    owners = np.concatenate([OWNERS, np.full(20, 10)])
    base = np.concatenate([X, RNG.standard_normal((20, D))])
    labels = np.concatenate([Y, np.ones(20, dtype=int)])
    order = np.flatnonzero(owners == 10)
    beyond, w = order[K:], RNG.standard_normal(D)
    assert len(beyond) >= 20

    def contributions(table, who=owners):
        users = users_of(table, labels, who)
        return [users.clipped_sum(w, np.array([each]), 0.3).tolist() for each in range(users.n)]

    hostile = base.copy()
    hostile[beyond] = 1e9
    assert contributions(hostile) == contributions(base)
    # One more row of a user leaves what every other user contributes as it was.
    with_row = contributions(base, np.where(np.arange(len(owners)) == beyond[0], 17, owners))
    changed = [
        i for i, (a, b) in enumerate(zip(with_row, contributions(base), strict=True)) if a != b
    ]
    assert set(changed) <= {0, 7}


def test_a_replay_finds_nothing_where_users_are_clipped_and_much_where_rows_are():
    """All rows of one user are turned round: a sum of clipped rows moves K times as far."""
    mine = np.flatnonzero(OWNERS == 15)[:K]
    assert len(mine) > 1
    table, other, labels = X.copy(), X.copy(), Y.copy()
    table[mine], other[mine], labels[mine] = 1e3, -1e3, 1
    asked = {**TARGET, "batch_size": 20, "steps": 12, "neighboring_relation": "replace-one"}
    plan = calibrate.dpsgd(n=40, group_size=K, clipped="user", **asked)

    def by_user(given):
        return optim.dpsgd(users_of(*given), plan)

    found = attacks.replay(by_user, (table, labels), (other, labels), seed=2)
    assert found.holds, str(found)
    assert found.answers > 0
    rows = calibrate.dpsgd(n=N, **{**asked, "batch_size": 100})

    def by_row(given):
        return optim.dpsgd(rows_of(*given), rows)

    assert not attacks.replay(by_row, (table, labels), (other, labels), seed=2).holds


def test_the_plan_and_the_objective_agree_on_what_a_record_is():
    alone = calibrate.dpsgd(n=40, batch_size=20, steps=12, **TARGET)
    few = dataclasses.replace(PLAN, queries=(dataclasses.replace(PLAN.queries[0], group_size=2),))
    for plan in (alone, few):
        with pytest.raises(ValueError, match=r"clipped='user' and group_size of at least 4"):
            optim.run(users_of(X), plan)
    rows = dataclasses.replace(PLAN, n=N)
    with pytest.raises(ValueError, match=r"clipped='user', which is for optim\.Users"):
        optim.run(rows_of(X, Y), rows)


def test_a_user_costs_what_a_record_costs_whatever_rows_there_are():
    record = calibrate.dpsgd(n=40, batch_size=20, steps=12, **TARGET)
    assert PLAN.queries[0].noise_multiplier == record.queries[0].noise_multiplier
    # Beside a run about rows, both are priced for a user with the most rows.
    assert PLAN.event_for(9) == PLAN.event
    result = optim.run(users_of(X), PLAN, seed=1)
    result.verify()
    assert result.epsilon(1e-4) == record.price()


def test_correlated_noise_has_users_for_records():
    asked = {"n": 40, "batch_size": 40, "sampler": "full", **TARGET}
    rows, users = (
        calibrate.correlated_dpsgd(LambdaCGD(8, 0.5), **asked, **more)
        for more in ({}, {"clipped": "user", "group_size": K})
    )
    noise = rows.queries[0].noise_multiplier
    assert users.queries[0].noise_multiplier == pytest.approx(noise)
    assert optim.run(users_of(X), users, seed=3).complete


# -- rows of one user, drawn and clipped one by one


def batches_of(n, b):
    """Return the number of the last two rows in each batch of b of n."""
    sets = [each for each in product((0, 1), repeat=n) if sum(each) == b]
    return [sum(each[-2:]) for each in sets]


@pytest.mark.parametrize("steps", [1, 2])
def test_batches_of_a_fixed_size_against_every_batch(steps):
    """All other rows are -1 and the user's two are 1: the price is attained in both directions."""
    n, b, sigma = 6, 3, 3.0
    drawn = batches_of(n, b)
    x = np.linspace(-24, 33, 1141)
    one = sum(norm.pdf(x, 2 * j, sigma) for j in drawn) / len(drawn)
    none = norm.pdf(x, 0, sigma)
    laws = [one, none]
    if steps == 2:
        laws = [np.outer(law, law) for law in laws]
    batch = FixedSize(b).event(events.GaussianDpEvent(sigma), n)
    event = events.SelfComposedDpEvent(for_group(batch, 2, "add-or-remove-one"), steps)
    for target in (0.2, 0.8):
        both = [
            np.maximum(p - np.exp(target) * q, 0).sum() * (x[1] - x[0]) ** steps
            for p, q in (laws, laws[::-1])
        ]
        assert float(delta(event, epsilon=target)) == pytest.approx(max(both), rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "relation"),
    [
        ({"sampler": "random-allocation", "participations": 1}, "add-or-remove-one"),
        ({"sampler": "shuffled-epochs"}, "replace-special"),
    ],
)
def test_users_draw_batches_of_an_epoch_as_records_do(fields, relation):
    asked = dataclasses.replace(PLAN.queries[0], sampling_probability=None, epoch=4, **fields)
    plan = dataclasses.replace(PLAN, queries=(asked,), neighboring_relation=relation)
    record = dataclasses.replace(asked, group_size=1, clipped="row")
    assert plan.event == dataclasses.replace(plan, queries=(record,)).event
    assert optim.run(users_of(X), plan, seed=5).complete
    with pytest.raises(UnsupportedEvent, match="person with 4 records"):
        dataclasses.replace(plan, queries=(record,)).event_for(4)
