"""A registered optimizer has what others have: commands, checks, attacks, the contract of plans."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from _built_plans import logistic
from contracts.test_optimizers import check_run

from dpcal import calibrate, optim
from dpcal.optim import attacks, registry

TARGET = {"n": 400, "epsilon": 4.0, "delta": 1e-5}


@optim.algorithm()
def dp_momentum(objective, plan, begin, *, rate=0.1, momentum=0.5):
    """Descend along a running mean of noisy gradients."""
    run = begin()
    mean = np.zeros_like(run.w)
    while run.going:
        mean = momentum * mean + run.oracle.gradient(run.w, "gradient")
        run.move(run.w - rate * mean)


def plan_momentum(**target):
    return dataclasses.replace(calibrate.dpsgd(**target), optimizer="dp_momentum")


OWN = {"name": "dp_momentum", "builder": plan_momentum, "function": dp_momentum}
SAID = {"summary": "noisy gradient steps with momentum", "theorem": "Polyak 1964, equation 9"}
ROW = dataclasses.replace(registry.find("dpsgd"), **OWN, **SAID)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_ENTERED", {})
    return registry.register(ROW)


@pytest.mark.parametrize("relation", ROW.relations)
def test_its_plans_run_as_planned(registered, relation):
    plan = plan_momentum(batch_size=40, steps=30, neighboring_relation=relation, **TARGET)
    check_run(plan, logistic(400, 3))


def test_plans_name_it(registered, tmp_path):
    plan = plan_momentum(batch_size=40, steps=30, **TARGET)
    with optim.replaying():
        one = optim.run(logistic(400, 3), plan, seed=2, momentum=0.9, store=tmp_path / "run.db")
        other = dp_momentum(logistic(400, 3), plan, seed=2, momentum=0.9)
    assert (one.w == other.w).all()
    assert registry.find("dp_momentum") is ROW
    assert "dp_momentum" not in registry.OPTIMIZERS


@pytest.mark.parametrize("times", [0, 2])
def test_a_plan_pays_for_one_run(times):
    @optim.algorithm()
    def begins(objective, plan, begin):
        return [begin() for _ in range(times)]

    with pytest.raises(RuntimeError, match="begin must be called once"):
        begins(logistic(400, 3), plan_momentum(batch_size=40, steps=30, **TARGET))


@pytest.mark.slow
def test_commands_know_it(registered, cli, tmp_path):
    (row,) = cli.json("optimizers dp_momentum")["optimizers"]
    assert row["theorem"] == ROW.theorem
    table, report = tmp_path / "table.csv", tmp_path / "report"
    rows = np.random.default_rng(0).uniform(0, 10, (300, 2))
    lines = [f"{a!r},{b!r},{int(a > b)}" for a, b in rows.tolist()]
    table.write_text("\n".join(["a,b,answer", *lines]) + "\n")
    columns = [f"[columns.{name}]\ntype = 'number'\nrange = [0, 10]\n" for name in "ab"]
    schema = table.with_suffix(".toml")
    schema.write_text("".join(columns) + "[columns.answer]\ntype = 'number'")
    asked = "--target answer --epsilon 2 --delta 1e-5 --optimizer dp_momentum"
    train = ["train", table, "--schema", schema, asked, "--set steps=30 -o", report]
    cli(*train)
    document = json.loads((report / "report.json").read_text())
    assert document["runs"][0]["plan"]["optimizer"] == "dp_momentum"
    cli("verify", report)
    assert "gamma is not for optimizer dp_mom" in cli.refused(*train, "--force --set gamma=2")


@pytest.mark.slow
def test_it_is_attacked(registered, cli, tmp_path):
    plan = plan_momentum(batch_size=40, steps=20, **TARGET)
    file = tmp_path / "plan.json"
    file.write_text(plan.to_json())
    cli("attack replay --seed 1 --plan", file)
    assert "the claim holds" in cli("attack likelihood --samples 2000 --plan", file)
    found, _ = attacks.plant(plan, seed=1)
    assert found.epsilon <= plan.epsilon


def test_names_of_the_package_are_its_own(registered):
    with pytest.raises(ValueError, match="name must be new, got 'dpsgd'"):
        registry.register(dataclasses.replace(ROW, name="dpsgd"))
    with pytest.raises(ValueError, match="must have a builder and a function, got 'half'"):
        registry.register(dataclasses.replace(ROW, name="half", builder=None))
    again = dataclasses.replace(ROW, summary="another")
    assert registry.register(again) is registry.find("dp_momentum") is again
    with pytest.raises(ValueError, match=r"'dpsgd', .*'dp_momentum', got 'nothing'\."):
        registry.find("nothing")


def test_installed_packages_enter_theirs(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_ENTERED", {})
    monkeypatch.setitem(sys.modules, "package_of_momentum", sys.modules[__name__])
    info = tmp_path / "package_of_momentum-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: package-of-momentum\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[dpcal.optimizers]\ndp_momentum = package_of_momentum:ROW\n"
    )
    with pytest.raises(ValueError, match="optimizer must be one of"):
        registry.find("dp_momentum")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.find("dp_momentum") is ROW
    assert list(registry.known())[-1] == "dp_momentum"
