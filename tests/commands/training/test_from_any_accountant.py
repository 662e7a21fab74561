"""From a target to a released model, by each accountant, kind of noise, and door."""

import numpy as np
import pytest
from _built_plans import plan_of, query

import dpcal
from dpcal import accountants, calibrate, optim
from dpcal.accountants import matrix

TARGET = {"n": 400, "epsilon": 3.0, "delta": 1e-5}
KINDS = {
    "subsampled": lambda **more: calibrate.dpsgd(batch_size=50, steps=40, **TARGET, **more),
    "matrix": lambda **more: calibrate.correlated_dpsgd(
        matrix.Tree(16), batch_size=400, sampler="full", **TARGET, **more
    ),
    "correlated": lambda **more: calibrate.correlated_dpsgd(
        matrix.LambdaCGD(40, 0.2), batch_size=50, statistics=False, **TARGET, **more
    ),
}


def records(n=500):
    X = np.random.default_rng(5).uniform(-1, 1, (n, 2))
    return X, np.where(X @ [1.0, -1.0] > 0, "yes", "no")


def by_python(plan, tmp_path, cli):
    X, y = records(400)
    objective = dpcal.Logistic(X, y, classes=["no", "yes"])
    result = dpcal.run(objective, plan, seed=0)
    priced = result.ledger.epsilon(plan.delta)
    assert priced == result.epsilon(plan.delta)
    return plan, priced, objective.predict(X, result.w) == y


def by_shell(plan, tmp_path, cli):
    X, y = records(500)
    rows = "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y, strict=True))
    (tmp_path / "table.csv").write_text("a,b,answer\n" + rows)
    file, report, schema = (tmp_path / name for name in ("plan.json", "report", "schema.toml"))
    columns = [f"[columns.{name}]\ntype = 'number'\nrange = [-1, 1]\n" for name in "ab"]
    schema.write_text("".join(columns) + "[columns.answer]\ntype = 'number'")
    if plan.optimizer == "dpsgd":
        target = f"--n 400 --epsilon 3 --delta 1e-5 --accountant {plan.accountant} -o"
        cli("calibrate --batch-size 50 --steps 40", target, file)
    else:
        file.write_text(plan.to_json())
    asked = ["--target answer --held-out none --seed 0 --schema", schema, "--use-plan", file]
    (run,) = cli.json("train", tmp_path / "table.csv", *asked, "-o", report)["runs"]
    assert cli("verify", report)
    assert run["epsilon"]["accountant"] == plan.accountant
    right = dpcal.load_model(report).predict({"a": X[:, 0], "b": X[:, 1]}) == y
    return dpcal.Plan.from_json(file.read_text()), run["epsilon"]["upper"], right


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("way", [by_python, by_shell])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accountant", ["renyi", "pld", "characteristic"])
def test_a_target_leads_to_a_released_model(accountant, kind, way, tmp_path, cli):
    plan, priced, right = way(KINDS[kind](accountant=accountant), tmp_path, cli)
    asked = {"delta": plan.delta, "neighboring_relation": plan.neighboring_relation}
    bound = accountants.epsilon(plan.event, accountant=accountant, **asked)
    assert 0.99 * 3 < bound <= 3.0 == plan.epsilon
    assert (plan.accountant, float(priced)) == (accountant, bound)
    # What is charged covers the exact price, where that is known.
    assert kind == "correlated" or priced >= accountants.epsilon(plan.event, **asked).lower
    assert right.mean() > 0.85


def test_a_plan_and_its_ledger_are_priced_again_by_their_accountant():
    plan = plan_of(query(noise_multiplier=4.0, count=3), n=9, accountant="renyi")
    assert plan == dpcal.Plan.from_json(plan.to_json())
    ledger = optim.Ledger.of(plan)
    ledger.record(plan.queries[0], 3)
    again = optim.Ledger.from_json(ledger.to_json())
    assert again == ledger != optim.Ledger(9, entries=ledger.entries)
    for priced in (plan.price(), ledger.epsilon(plan.delta), again.frozen().epsilon(plan.delta)):
        assert priced.accountant == "renyi"
        assert priced == plan.price(accountant="renyi") > plan.price(accountant="auto")


@pytest.mark.parametrize("accountant", ["auto", "renyi"])
def test_noise_that_is_given_has_the_price_that_the_plan_says(accountant):
    sizes = {"n": 400, "delta": 1e-5, "accountant": accountant}
    plan = calibrate.dpsgd(batch_size=50, steps=40, noise_multiplier=2.0, **sizes)
    assert plan.queries[0].noise_multiplier == 2.0
    assert plan.epsilon == plan.price() == plan.price(accountant=accountant)
    constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    plan = calibrate.noisy_gd(constants, dimension=2, steps=9, noise_multiplier=2.0, **sizes)
    assert plan.queries[0].noise_multiplier == pytest.approx(3 * 2.0, rel=2e-6)
    assert plan.epsilon * (1 - 1e-5) < plan.price() <= plan.epsilon
    for wrong in ({}, {"epsilon": 1.0, "noise_multiplier": 1.0}):
        with pytest.raises(ValueError, match="exactly one of epsilon and noise_multiplier"):
            calibrate.noisy_gd(constants, dimension=2, **wrong, **sizes)
