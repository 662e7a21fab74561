"""The boundary at its corners: what is refused, and rare paths that must keep the same law."""

import functools
import math
import os

import numpy as np
import pytest
from scipy.stats import chisquare

from dpcal import calibrate, optim
from dpcal._ext.keyed import KeyedBits
from dpcal.accountants import events
from dpcal.accountants.matrix import BLT, Banded, Dense, LambdaCGD
from dpcal.calibrate import Correlation, Plan, Query
from dpcal.errors import NoiseReused, NonFiniteAnswer, UnobservedOracle, UnsupportedEvent
from dpcal.optim import FromGradients, Logistic, PrivateOracle, budget, replaying
from dpcal.optim.boundary import StoredOracle, choices, exact, lattice, sums
from dpcal.optim.boundary.batches import Rounds
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.boundary.lattice import Grid, LatticeStream
from dpcal.optim.boundary.noise import noise_of
from dpcal.optim.boundary.one_pass import Pass
from dpcal.optim.boundary.seeds import KeyStream, keyed_generator
from dpcal.optim.boundary.streams import NoiseStream

N, D = 40, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) / 2
Y = X[:, 0] > 0
ORIGIN = np.zeros(D)


def objective(l2=0.0):
    return Logistic(X, Y, classes=[0, 1], l2=l2, fit_intercept=False)


def plan_of(n=N, *, kind="gradient", count=3, relation="replace-special", **fields):
    given = {"sampler": "full", "max_norm": 1.0, "noise_multiplier": 2.0, **fields}
    query = Query(name="asked", kind=kind, count=count, **given)
    return Plan(
        optimizer="test",
        n=n,
        queries=(query,),
        epsilon=9.0,
        delta=1e-6,
        neighboring_relation=relation,
    )


ONE_PASS = plan_of(
    kind="one pass",
    sampler="fixed-size",
    batch_size=10,
    count=1,
    composition="disjoint",
    relation="replace-one",
)


def correlated(strategy, **fields):
    return plan_of(count=strategy.steps, correlation=Correlation(strategy=strategy), **fields)


def test_an_oracle_answers_in_the_process_that_made_it_alone(monkeypatch):
    oracle = PrivateOracle(objective(), plan_of())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(NoiseReused, match="made before a fork"):
        oracle.gradient(ORIGIN, "asked")
    assert oracle.ledger.entries == ()


def test_rounds_and_states_are_for_correlated_noise():
    plan = plan_of()
    with pytest.raises(ValueError, match="query 'asked' has independent noise"):
        Rounds(plan.query("asked"), N, sampling=RNG, stream=None)
    with pytest.raises(ValueError, match="correlated noise in all of its queries to be resumed"):
        PrivateOracle.resumed(objective(), plan, {})


def test_an_oracle_about_persons_is_for_plans_about_persons():
    persons = optim.Users(objective(), np.arange(N) // 2, group_size=2)
    with pytest.raises(ValueError, match=r"with clipped='user', which is for optim\.Users"):
        PrivateOracle(objective(), plan_of(clipped="user", group_size=2))
    with pytest.raises(ValueError, match="group_size of at least 2, got clipped='row'"):
        PrivateOracle(persons, plan_of(n=N // 2))


def test_the_coin_in_balls_accepts_as_doubles_do(monkeypatch):
    """Where doubles cannot tell, ball arithmetic decides: here for most coins, so that it counts.

    20,000 draws. A chi-square test rejects the right law once in 10^6 seeds.
    """
    monkeypatch.setattr(choices, "_OFF", 0.4)
    lengths = np.array([5, 0, 1, 8, 3])
    steps = np.array([2, 0, 0, 5, 9])
    law = lengths * np.exp(-steps / 2.0)
    bits = np.random.Generator(KeyedBits(KeyStream(bytes(32))))
    draws = [choices._drawn(lengths, steps, 2.0, bits) for _ in range(20_000)]
    seen = np.bincount(draws, minlength=5)
    assert seen[1] == 0
    kept = law > 0
    assert chisquare(seen[kept], 20_000 * law[kept] / law.sum()).pvalue > 1e-6


def test_a_proposal_that_is_not_due_is_rejected_without_balls():
    """A weight of exp(-50) is proposed as one of 2^60 parts, of which it is due a 5000th."""

    class Scripted:
        places, coins = [-1, 0], [2**192 - 1, 0]

        def integers(self, high):
            return self.places.pop(0) % int(high)

        def bytes(self, size):
            return self.coins.pop(0).to_bytes(size, "little")

    assert choices._drawn(np.array([1, 1]), np.array([0, 100]), 2.0, Scripted()) == 0
    assert Scripted.places == Scripted.coins == []


def test_cuts_that_are_not_in_order_are_refused_before_an_answer():
    plan = plan_of(3, kind="selection", max_norm=0.5, count=1)
    made = PrivateChoices(np.zeros((3, 1)), plan)
    for cuts in ([1.0], [1.0, 0.0], [[0.0, 1.0]]):
        with pytest.raises(ValueError, match="cuts must be two or more nondecreasing numbers"):
            made.medians(0, cuts, "asked")
    assert made.ledger.entries == ()


def test_discrete_noise_is_for_so_many_records():
    plan = plan_of(2**29 + 1)
    with pytest.raises(UnsupportedEvent, match=r"at most 2\^29 records, got n=536870913"):
        exact.DiscreteMechanism(plan, D, None)


def test_a_regulariser_that_is_too_long_for_a_norm_releases_nothing():
    plan = plan_of(kind="gradient norm", relation="replace-special")
    oracle = PrivateOracle(objective(l2=1.0), plan, noise="discrete")
    with pytest.raises(NonFiniteAnswer, match="too long for a norm with discrete noise"):
        oracle.norm(np.full(D, 1e200), "asked")
    oracle = PrivateOracle(objective(l2=10.0), plan, noise="gaussian")
    too_large = pytest.raises(NonFiniteAnswer, match="The sum behind query 'asked' is NaN or inf")
    with np.errstate(over="ignore"), too_large:
        oracle.norm(np.full(D, 1.7e308), "asked")


def test_a_record_without_a_finite_contribution_counts_as_zero_in_whole_steps():
    def ask(row):
        if row[0] == 1:
            raise NonFiniteAnswer("no number")
        return np.array([0.25, -0.5])

    found = exact.one_by_one(2, np.arange(3), 1.0, ask)
    step = exact.grid_step(1.0)
    np.testing.assert_allclose(found * step, [0.5, -1.0], atol=2 * step)


def test_steps_on_batches_of_a_fixed_size_are_not_fused():
    plan = plan_of(sampler="fixed-size", batch_size=10, relation="replace-one")
    oracle = PrivateOracle(objective(), plan)
    with pytest.raises(ValueError, match="all records or Poisson samples, got 'fixed-size'"):
        Loops(oracle).descend(ORIGIN, "asked", learning_rates=[0.1])
    assert oracle.ledger.entries == ()


def test_a_sum_of_another_shape_is_refused():
    def gradients(w, rows):
        return np.ones((len(rows), D))

    whole = FromGradients(gradients, n=N, dimension=D)
    whole.clipped_sum = lambda w, rows, bound: np.ones(D + 1)
    with pytest.raises(ValueError, match=r"must have shape \(3,\), got \(4,\)"):
        sums.gradient_sum(whole, ORIGIN, np.arange(N), 1.0)


def test_a_norm_whose_square_overflows_is_a_number():
    assert sums.norm_of(np.array([3e200, -4e200])) == pytest.approx(5e200, rel=1e-15)
    assert sums.norm_of(np.array([3e200, math.inf])) == math.inf


def test_one_pass_begins_where_no_iterate_overflows():
    query = ONE_PASS.query("asked")
    steps = Pass.planned(
        query, objective(), learning_rate=0.1, strength=0.0, center=None, radius=math.inf
    )
    with pytest.raises(ValueError, match="w and center must be shorter than"):
        steps.check(objective(), np.full(D, 1e300))


def test_positions_and_keys_of_streams_are_checked():
    for position in (-1, 1.5):
        with pytest.raises(ValueError, match="position must be a whole number >= 0"):
            KeyStream(bytes(32)).move_to(position)
    stream = NoiseStream(LambdaCGD(4, 0.5), D, seed=0)
    rows = [next(stream) for _ in range(2)]
    again = NoiseStream.from_json(stream.to_json())
    assert repr(again) == repr(stream)
    np.testing.assert_array_equal(next(again), next(stream))
    assert len(rows) == 2
    with pytest.raises(ValueError, match="key must be two words of 64 bits"):
        NoiseStream.from_dict({**stream.to_dict(), "key": ["0"]})


def test_a_row_that_was_interrupted_is_not_read_again(monkeypatch):
    grid = Grid.of(LambdaCGD(2, 0.5), D, sigma=1e5, bound=1e5, signs=True)
    stream = LatticeStream(grid, lambda: keyed_generator(bytes(32)))
    stream.read()
    stream.read()
    with pytest.raises(ValueError, match="The stream has 2 rows, and all have been read"):
        stream.read()

    def interrupt(*_):
        raise KeyboardInterrupt

    other = LatticeStream(grid, lambda: keyed_generator(bytes(32)))
    monkeypatch.setattr(lattice, "lift", interrupt)
    with pytest.raises(KeyboardInterrupt):
        other.read()
    with pytest.raises(RuntimeError, match="Reading row 0 was interrupted"):
        other.read()


def test_rows_that_a_strategy_leaves_out_are_not_read():
    """C has no entry one below its diagonal: a row is pulled by the one two before it."""
    C = np.eye(6) + 0.5 * np.eye(6, k=-2)
    pull = lattice._Rows(Dense(C))
    for step in range(6):
        weights, places = pull.terms(step)
        if step < 2:
            assert len(weights) == 0
        else:
            assert weights.tolist() == [0.5]
            assert places.tolist() == [(step - 2) % pull.slots]


def test_correlated_noise_that_whole_numbers_cannot_carry_is_refused():
    """C^-1 grows as 2.5^t: pulled rows would leave the range in which doubles are whole."""
    growing = correlated(Banded(24, 2, [1.0, -2.5]))
    with pytest.raises(UnsupportedEvent, match="enlarge rounding too much"):
        PrivateOracle(objective(), growing, noise="discrete")
    assert noise_of(None, growing, D, objective()) == "gaussian"
    assert noise_of(None, correlated(BLT(6, (0.9,), (0.3,))), D, objective()) == "discrete"


def test_sums_of_ones_own_are_not_rounded_by_default():
    class Mine(Logistic):
        def clipped_sum(self, w, rows, max_norm):
            return super().clipped_sum(w, rows, max_norm)

    mine = Mine(X, Y, classes=[0, 1], fit_intercept=False)
    assert noise_of(None, ONE_PASS, D, mine) == "gaussian"
    assert noise_of(None, ONE_PASS, D, objective()) == "discrete"


@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
@pytest.mark.parametrize("compiled", [True, False])
def test_correlated_rows_are_those_of_the_strategy(noise, compiled):
    """Rows times C are independent: their mean square is the plan's, by 3600 normal numbers.

    The mean of their squares errs by six standard deviations less than once in 10^8 seeds.
    """
    strategy, dimension = LambdaCGD(6, 0.8), 600
    wide = Logistic(np.zeros((N, dimension)), Y, classes=[0, 1], fit_intercept=False)
    if not compiled:
        wide = FromGradients(
            lambda w, rows: np.zeros((len(rows), dimension)), n=N, dimension=dimension
        )
    oracle = PrivateOracle(wide, correlated(strategy), seed=1, noise=noise)
    rows = [N * oracle.gradient(np.zeros(dimension), "asked") for _ in range(6)]
    z = strategy.matrix() @ np.array(rows) / 2.0
    assert abs((z**2).mean() - 1) < 6 * math.sqrt(2 / z.size)
    assert abs((z[1:] * z[:-1]).mean()) < 6 / math.sqrt(z[1:].size)


def test_choices_about_records_elsewhere_have_noise_of_these_records():
    class Placed:
        applied = None

        def __init__(self, digest):
            self.digest = lambda: digest

        def __len__(self):
            return 3

    plan = plan_of(3, kind="selection", max_norm=0.5, count=1)
    secrets = [
        PrivateChoices(Placed(digest), plan, seed=0)._streams.root["secret"]
        for digest in (b"one", b"two", b"one")
    ]
    assert secrets[0] == secrets[2] != secrets[1]


def test_a_process_that_is_observed_goes_on_being_observed(monkeypatch, tmp_path):
    """An attack within an attacked process gives back what it found; a child opens no oracle."""
    present = tmp_path / "observing"
    present.touch()
    train = functools.partial(
        optim.run, plan=calibrate.dpsgd(n=N, batch_size=10, steps=2, epsilon=2.0, delta=1e-6)
    )
    monkeypatch.setenv("DPCAL_OBSERVING", f"1:{present}")
    with pytest.raises(UnobservedOracle, match="in a process of its own"):
        train(objective())
    with replaying():
        optim.attacks.replay(train, objective(), objective())
    assert os.environ["DPCAL_OBSERVING"] == f"1:{present}"
    # Once the attack is over, a child that it started opens oracles as any other process.
    present.unlink()
    train(objective())


def test_a_stored_oracle_tells_what_its_inner_one_does(tmp_path):
    plan = plan_of(kind="scalar", noise_multiplier=1e-3)
    first = StoredOracle(tmp_path / "run.db", objective(l2=0.5), plan, seed=0)
    assert first.l2 == 0.5
    assert first.linear_loss == objective().linear_loss
    assert isinstance(first.public, np.random.Generator)
    value = first.scalar(ORIGIN, "asked")
    assert value == pytest.approx(math.log(2), abs=0.01)
    first.close()
    with replaying():
        again = StoredOracle(tmp_path / "run.db", objective(l2=0.5), plan, seed=0)
        assert again.scalar(ORIGIN, "asked") == value
        again.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_store_is_not_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="store must be a path of a file of this kind"):
        StoredOracle(tmp_path / "pipe", objective(), plan_of())


def test_runs_that_are_paid_together_are_about_single_records():
    event = events.GaussianDpEvent(4.0)
    with budget._collected() as found:
        budget.charge(event, "replace-special")
        with pytest.raises(UnsupportedEvent, match="single records, got one about persons of 2"):
            budget.charge(event, "replace-special", group_size=2)
    assert found == [event]
