"""Totals over cells: exact sums, the law of their noise, its price, the ledger first."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcal import accountants
from dpcal.accountants import events
from dpcal.calibrate import Plan, Query
from dpcal.errors import BudgetExceeded
from dpcal.optim.boundary.choices import Cells, PrivateChoices, PrivateTotals
from dpcal.optim.boundary.discrete import whole_laplace
from dpcal.optim.boundary.seeds import keyed_generator

KINDS = ("total", "laplace total")


def query(kind="total", *, noise=1.0, bound=1.0, **more):
    given = {"sampler": "full", "max_norm": bound, "noise_multiplier": noise, "count": 1, **more}
    return Query(name="asked", kind=kind, **given)


def plan_of(*queries, n=4):
    return Plan(optimizer="release", n=n, queries=queries, epsilon=1.0, delta=1e-6)


def test_sums_are_exact_and_numbers_are_clipped():
    places = np.array([0, 2, 2, -1, 0, 1])
    values = np.array([0.5, 9.0, -0.25, 1.0, np.nan, -np.inf])
    found = Cells(places, 4, values).totals(2.0) / 2**20 * 2
    assert found.tolist() == [0.5, -2.0, 1.75, 0.0]
    assert (Cells(places, 4).totals(1.0) / 2**20).tolist() == [2, 1, 2, 0]


@pytest.mark.parametrize("bound", [1e-3, 1.0, 7.3, 1e6])
def test_no_record_moves_a_total_by_more_than_its_bound(bound):
    rng = np.random.default_rng(0)
    values = np.append(rng.normal(0, 3 * bound, 200), [np.inf, -np.inf, np.nan, bound, -bound])
    for value in values:
        (whole,) = Cells(np.zeros(1, int), 1, np.array([value])).totals(bound)
        assert abs(int(whole)) <= 2**20


@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_the_law_that_is_priced(kind):
    cells = Cells(np.full(4, -1), 3000)
    released = PrivateTotals(plan_of(query(kind, noise=3.0, bound=2.0)), {"asked": cells})
    law = stats.norm(scale=6.0) if kind == "total" else stats.laplace(scale=6.0)
    assert stats.kstest(released.totals("asked"), law.cdf).pvalue > 1e-4


def test_a_scale_without_whole_laplace_noise_is_refused():
    with pytest.raises(ValueError, match="scale must be a whole number from 1"):
        whole_laplace(0, np.random.default_rng(0))


def test_whole_laplace_draws_its_law():
    bits = keyed_generator(bytes(32))
    drawn = np.array([whole_laplace(5, bits) for _ in range(20_000)])
    points = np.arange(-15, 16)
    law = np.exp(-np.abs(points) / 5) * math.tanh(1 / 10)
    counts = np.array([(drawn == each).sum() for each in points])
    rest = len(drawn) - counts.sum()
    expected = len(drawn) * np.append(law, 1 - law.sum())
    assert stats.chisquare(np.append(counts, rest), expected).pvalue > 1e-4


@pytest.mark.parametrize(
    ("kind", "event"),
    [("total", events.GaussianDpEvent(8.0)), ("laplace total", events.LaplaceDpEvent(8.0))],
)
def test_prices_are_those_of_the_noise_and_of_a_person(kind, event):
    alone, person = plan_of(query(kind, noise=8.0)), plan_of(query(kind, noise=32.0, group_size=4))
    due = accountants.epsilon(event, delta=1e-6)
    assert alone.price() == pytest.approx(due, rel=1e-9)
    assert person.price() == pytest.approx(due, rel=1e-9)
    assert person.group_size == 4
    assert Plan.from_json(person.to_json()) == person


def test_the_ledger_is_written_before_a_record_is_read():
    class Unread(Cells):
        def totals(self, bound):
            assert released.ledger.count("asked") == 1
            raise KeyboardInterrupt

    released = PrivateTotals(plan_of(query()), {"asked": Unread(np.zeros(4, int), 1)})
    with pytest.raises(KeyboardInterrupt):
        released.totals("asked")
    with pytest.raises(BudgetExceeded):
        released.totals("asked")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({}, "cells must be of the plan's queries"),
        ({"other": Cells(np.zeros(4, int), 1)}, "cells must be of the plan's queries"),
        ({"asked": Cells(np.array([0, 1, 2, 3]), 3)}, "must be below count=3"),
        ({"asked": Cells(np.zeros(5, int), 1)}, "plan must be for n=5"),
    ],
)
def test_cells_that_do_not_fit_are_refused(cells, words):
    with pytest.raises(ValueError, match=words):
        PrivateTotals(plan_of(query()), cells)


def test_another_kind_of_query_is_refused():
    asked = plan_of(query("gradient"))
    released = PrivateTotals(asked, {"asked": Cells(np.zeros(4, int), 1)})
    with pytest.raises(ValueError, match="kind"):
        released.totals("asked")
    assert not released.ledger.entries


def test_quantiles_at_a_share_are_drawn_with_the_density_that_was_promised():
    plan = plan_of(query("selection", noise=2.0, count=4000), n=5)
    values = np.array([[1.0], [2.0], [4.0], [7.0], [9.0]])
    choices = PrivateChoices(values, plan)
    drawn = [choices.quantiles(0, [0, 10], "asked", 0.8)[0] for _ in range(4000)]
    edges = np.array([0, 1, 2, 4, 7, 9, 10.0])
    weights = np.diff(edges) * np.exp(-np.abs(np.arange(6) - 0.8 * 5) / 2)
    counts = np.histogram(drawn, edges)[0]
    assert stats.chisquare(counts, 4000 * weights / weights.sum()).pvalue > 1e-4


@pytest.mark.parametrize("shares", [0.0, 1.0, -1, [0.5, 0.5], np.nan])
def test_shares_out_of_range_are_refused(shares):
    plan = plan_of(query("selection", noise=2.0, bound=0.5))
    choices = PrivateChoices(np.zeros((4, 1)), plan)
    with pytest.raises(ValueError):
        choices.quantiles(0, [0, 1], "asked", shares)
    with pytest.raises(ValueError, match="max_norm"):
        choices.quantiles(0, [0, 1], "asked", 0.9)
    assert not choices.ledger.entries
