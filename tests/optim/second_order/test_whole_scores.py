"""Scores in whole numbers with exact noise: its law, its width, and what is refused."""

import numpy as np
import pytest
from _built_plans import plan_of, query
from saddles import Trigonometric

from dpcal import calibrate
from dpcal.calibrate import Constants
from dpcal.calibrate.plans.second_order.select_point import METHODS
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim import select_point
from dpcal.optim.second_order import oracle as module
from dpcal.optim.second_order.oracle import SecondOrderOracle

N = 5_000
OBJECTIVE = Trigonometric.drawn(N, 2, seed=0)
ASK = {"thresholds": (0.3, 0.3), "norms": (2.0**0.5, 1.0)}
SADDLE, MINIMUM = [np.pi, 0.0], [0.0, 0.0]


def scored(kind, relation="replace-one"):
    asked = query(kind, name="score", noise_multiplier=4.0, count=50)
    return plan_of(asked, n=N, optimizer="select_point", neighboring_relation=relation)


def test_noise_covers_what_a_record_moves_a_whole_score_by(monkeypatch):
    scales = []

    def no_noise(scale, bits):
        scales.append(scale)
        return 0

    monkeypatch.setattr(module, "whole_laplace", no_noise)
    oracle = SecondOrderOracle(OBJECTIVE, scored("above threshold"))
    assert not oracle.accepts(SADDLE, "score", **ASK)
    assert oracle.accepts(MINIMUM, "score", **ASK)
    with pytest.raises(BudgetExceeded, match="has accepted a point"):
        oracle.accepts(MINIMUM, "score", **ASK)
    assert oracle.ledger.count("score") == 2
    one = 2**20 * (1 + 2.0**-9) + 1
    assert scales[0] >= 4 * one
    assert min(scales[1:]) >= 8 * one
    everyone = np.arange(N)
    for w in (SADDLE, MINIMUM, [0.1, 3.0]):
        w = np.array(w)
        whole = oracle._score(w, everyone, *ASK.values())
        assert isinstance(whole, int)
        for gone in (0, N - 1):
            rows = np.delete(everyone, gone)
            moved = oracle._score(w, rows, *ASK.values())
            assert abs(whole - moved) <= one


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_point_is_selected_with_discrete_noise(method):
    """Products are too noisy for so few records at an epsilon of 4, and refused."""
    constants = Constants(lipschitz=2.0**0.5, smoothness=1.0, hessian_lipschitz=1.0)
    given = {"n": N, "dimension": 2, "candidates": 4, "accuracy": 0.5, "delta": 1e-6}
    epsilon = 60.0 if method == "power-method" else 4.0
    plan = calibrate.select_point(constants, method=method, epsilon=epsilon, **given)
    chosen = select_point(OBJECTIVE, [SADDLE, SADDLE, MINIMUM], plan, seed=1)
    assert chosen.index == 2


def test_scores_whose_rounding_is_not_known_are_refused():
    for kind in ("above threshold", "noisy max", "saddle score"):
        with pytest.raises(UnsupportedEvent, match=rf"{kind}' is for .*, got 'add-or-remove-one'"):
            scored(kind, "add-or-remove-one")
        oracle = SecondOrderOracle(OBJECTIVE, scored(kind))
        ask = {"above threshold": "accepts", "noisy max": "best", "saddle score": "saddle_score"}
        point = [MINIMUM] if kind == "noisy max" else MINIMUM
        with pytest.raises(UnsupportedEvent, match="leaves room for scores"):
            getattr(oracle, ask[kind])(point, "score", thresholds=(0.3, 0.3), norms=(1e-9, 1.0))
        assert oracle.ledger.count("score") == 0
