"""The boundary at its corners: what is refused, and rare paths that must keep the same law."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from _answers import EVERYONE, LOGISTIC, D, N, W, X, Y, oracle_for, plan_for, query

from dpcal._ext import grid
from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import AreaLoss
from dpcal.accountants import events
from dpcal.accountants.matrix import Banded, LambdaCGD
from dpcal.calibrate import Correlation
from dpcal.errors import NonFiniteAnswer, UnsupportedEvent
from dpcal.optim import FromGradients, Logistic, PrivateOracle, account, budget, replaying
from dpcal.optim.boundary import batches, lattice, stored
from dpcal.optim.boundary.batches import Rounds
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.lattice import Grid, LatticeStream
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.sealed import Pass
from dpcal.optim.boundary.seeds import KeyStream, keyed_generator
from dpcal.optim.objectives import contributions
from dpcal.optim.objectives.arrays import norm_of

KEY = bytes(32)
PARTS = {"sampler": "fixed-size", "batch_size": 10, "composition": "disjoint", "count": 1}
ONE_PASS = query(kind="one pass", **PARTS)


def correlated(strategy):
    return plan_for(query(count=strategy.steps, correlation=Correlation(strategy=strategy)))


# C^-1 grows as 6^t: pulled rows would leave the range in which doubles are whole.
GROWING = correlated(Banded(12, 2, [1.0, -6.0]))


def check_refused(sentence, call, *given, **options):
    with pytest.raises((ValueError, UnsupportedEvent), match=sentence) as refused:
        call(*given, **options)
    assert "aaa" not in str(refused.value)  # of a key


def test_batches_do_not_go_on_after_one_that_was_half_drawn():
    with pytest.raises(RuntimeError, match="interrupted while it was drawn"):
        batches._check_whole(1, 2)


def test_what_no_stream_and_no_sum_is_for_is_refused():
    public = np.random.default_rng(0)
    check_refused("has independent noise", Rounds, query(), N, sampling=public, stream=None)
    whole = r"at most 2\^29 records, got n=536870913"
    check_refused(whole, Mechanism, plan_for(query(), n=2**29 + 1), D, None)
    wide = plan_for(query(noise_multiplier=2.0**35))
    check_refused("noise_multiplier must be a number in", Mechanism, wide, D, None)
    check_refused("rounding too much", PrivateOracle, LOGISTIC, GROWING)
    made = FromGradients(lambda w, rows: np.ones((len(rows), D)), n=N, dimension=D)
    apart = {"intercept": False, "shares": (1.0, 0.1), "dual": 3}
    check_refused("shares must have", ClippedSum, AreaLoss(0.5), X, Y, **apart)
    check_refused("shares must have", contributions.Table, D, [], ((1.1, D),))
    # Parts that overlap, and numbers that stand in two places of the sum, would count twice.
    check_refused("of one entry or more", contributions.Table, D, [], ((0.5, D), (0.1, -D)))
    check_refused("a place twice", contributions.Products, D, [], np.zeros(D, dtype=np.intp))
    one = np.ones((N, 1))
    for found, told in (
        (np.ones((N, D + 1)), rf"shape \({N}, 4\) for {N} rows, got \({N}, 5\)"),
        (contributions.Table(D + 1, []), "must have 4 numbers, got 5"),
        (contributions.Kernel(LOGISTIC.kernel, np.array([7, 7]), W), "each once"),
        (contributions.Table(D, [np.ones((N + 1, D))]), "each once"),
        (contributions.Table(D, [one]), rf"must have 4 numbers, got shape \({N}, 1\)"),
        (contributions.Products(D, [[(one, one.copy())]]), "must have 4 numbers, got 1"),
    ):
        made.contributions = lambda rows, *at, found=found: found
        check_refused(told, made.clipped_sum, W, EVERYONE, 1.0)
    given = {"learning_rate": 0.1, "strength": 0.0, "center": None, "radius": math.inf}
    far = partial(Pass.planned, ONE_PASS, LOGISTIC, np.full(D, 1e300), **given)
    check_refused("w and center must be shorter than", far)
    for position in (-1, 1.5):
        check_refused("position must be a whole number", KeyStream(KEY).move_to, position)
    for sigma in (0.0, 0.05, -1.0, math.nan, math.inf, 2.0**57):
        check_refused("standard_deviation must be", DiscreteNormals, sigma, KEY)
    for key in (b"", bytes(31), "a" * 32):
        check_refused("key must be 32 bytes", DiscreteNormals, 3.0, key)
    row, total = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    for max_norm, bound in ((0.0, 1), (math.nan, 1), (1.0, 0), (1.0, 2**31)):
        check_refused("max_norm must be", grid.add_rows, row, max_norm, bound, total)


def test_a_regulariser_that_is_too_long_for_a_norm_releases_nothing():
    objective = Logistic(X, Y, classes=[0, 1], l2=10.0)
    oracle = oracle_for(query(kind="gradient norm"), objective=objective)
    with pytest.raises(NonFiniteAnswer, match="too long for a norm in whole numbers"):
        oracle.norm(np.full(D, 1e200), "q")


def test_contributions_in_single_precision_are_added_in_doubles():
    """Sums of 10^5 records in single precision would be wrong by tens of records."""
    table = np.full((100_000, 1), 1.1, dtype=np.float32)
    assert contributions.Table(1, [table]).clipped(1.0) == pytest.approx(1e5, rel=1e-12)
    ones = np.ones((len(table), 1), dtype=np.float32)
    assert contributions.Products(1, [[(table, ones)]]).clipped(1.0) == pytest.approx(
        1e5, rel=1e-12
    )


def test_a_norm_whose_square_overflows_is_a_number():
    assert norm_of(np.array([3e200, -4e200])) == pytest.approx(5e200, rel=1e-15)
    assert norm_of(np.array([3e200, math.inf])) == math.inf


def test_a_row_that_was_interrupted_is_not_read_again(monkeypatch):
    grid = Grid.of(LambdaCGD(2, 0.5), D, sigma=1e5, bound=1e5, signs=True)
    stream = LatticeStream(grid, lambda: keyed_generator(KEY))
    stream.read()
    stream.read()
    with pytest.raises(ValueError, match="The stream has 2 rows, and all have been read"):
        stream.read()

    def interrupt(*_):
        raise KeyboardInterrupt

    other = LatticeStream(grid, lambda: keyed_generator(KEY))
    monkeypatch.setattr(lattice, "lift", interrupt)
    with pytest.raises(KeyboardInterrupt):
        other.read()
    with pytest.raises(RuntimeError, match="Reading row 0 was interrupted"):
        other.read()


def test_one_pass_over_a_loss_of_one_s_own_is_refused():

    class Mine(Logistic):
        def contributions(self, rows, *at):
            return super().contributions(rows.copy(), *at)

    mine, one_pass = Mine(X, Y, classes=[0, 1]), plan_for(ONE_PASS, relation="replace-one")
    with pytest.raises(UnsupportedEvent, match=r"one pass has a cost for .* got Mine"):
        PrivateOracle(mine, one_pass).one_pass(W, "q", learning_rate=0.1)


def test_choices_about_records_elsewhere_have_noise_of_these_records():
    class Placed:
        applied = None

        def __init__(self, digest):
            self.digest = lambda: digest

        def __len__(self):
            return 3

    plan = plan_for(query(kind="selection", count=1), n=3)
    secrets = [
        PrivateChoices(Placed(digest), plan, seed=0)._streams.root["secret"]
        for digest in (b"one", b"two", b"one")
    ]
    assert secrets[0] == secrets[2] != secrets[1]


def test_a_stored_scalar_is_answered_again(tmp_path):
    asked, values = plan_for(query(kind="scalar", max_norm=1.0, noise_multiplier=1e-3)), []
    with replaying():
        for _ in range(2):
            oracle = stored(tmp_path / "run.db", LOGISTIC, asked, seed=0)
            values.append(oracle.scalar(np.zeros(D), "q"))
            oracle.close()
    assert values[0] == values[1]
    assert values[0] == pytest.approx(math.log(2), abs=0.01)


def test_runs_that_are_paid_together_are_about_single_records():
    event = events.GaussianDpEvent(4.0)
    charge = account.Charge(event=event, delta=1e-6, neighboring_relation="replace-special")
    assert "collected" not in vars(budget)  # it would be a way around every budget
    with budget._collected() as found:
        budget.owed(charge)
        with pytest.raises(UnsupportedEvent, match="single records, got one about persons of 2"):
            budget.owed(dataclasses.replace(charge, group_size=2))
    assert found == [event]
