"""Oracles in place of objectives: whatever answers a plan's queries runs every optimizer."""

import dataclasses

import numpy as np
import pytest
from _built_plans import BUILT, built
from _stored_runs import OBJECTIVE, SAMPLED

from dpcal import optim
from dpcal.optim import PrivateOracle
from dpcal.optim.registry import OPTIMIZERS

ASKED = {"gradient", "difference", "norm", "scalar", "remaining", "affords"}
SHOWN = {"dimension", "plan", "ledger", "public", "l2", "linear_loss"}
# Their oracles are of their own: of embedded records, and of several silos.
OTHERS = ("jl_glm", "distributed_psgd")


class Elsewhere:
    """An oracle that is no PrivateOracle: it passes questions on, as if to another machine."""

    def __init__(self, inner):
        self._inner, self.asked = inner, 0

    def __getattr__(self, name):
        if name not in ASKED | SHOWN:
            raise AttributeError(name)
        self.asked += name in ASKED
        return getattr(self._inner, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in BUILT if name not in OTHERS])
def test_every_optimizer_runs_on_an_oracle_as_on_its_objective(name):
    plan, objective = built(name, BUILT[name][0], OPTIMIZERS[name].relations[0])
    optimizer = getattr(optim, name)
    direct = optimizer(objective, plan, seed=3)
    oracle = PrivateOracle(objective, plan, seed=3)
    given = optimizer(oracle, plan)
    assert given.w.tobytes() == direct.w.tobytes()
    assert given.ledger == oracle.ledger
    far = Elsewhere(PrivateOracle(objective, plan, seed=3))
    result = optimizer(far, plan)
    assert far.asked
    np.testing.assert_allclose(result.w, direct.w, rtol=1e-9, atol=1e-12)
    result.verify()


def test_what_does_not_go_with_an_oracle_is_refused():
    oracle = PrivateOracle(OBJECTIVE, SAMPLED)
    other = dataclasses.replace(SAMPLED, delta=1e-6)
    with pytest.raises(ValueError, match=r"plan must be the oracle's own, oracle\.plan"):
        optim.dpsgd(oracle, other)
    for given in ({"seed": 1}, {"store": "run.db"}, {"store_every": 2}):
        with pytest.raises(ValueError, match="seed and store go with an objective"):
            optim.dpsgd(oracle, SAMPLED, **given)
    assert oracle.ledger.entries == ()
    with pytest.raises(ValueError, match="store_every goes with a store, got store_every=5"):
        optim.dpsgd(OBJECTIVE, SAMPLED, store_every=5)
