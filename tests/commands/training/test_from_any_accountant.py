"""From a target to a released model, by each accountant, kind of noise, and door."""

import json

import numpy as np
import pytest
from _built_plans import plan_of, query

import dpcal
from dpcal import accountants, calibrate, optim
from dpcal.accountants import matrix
from dpcal.cli import main
from dpcal.errors import UnsupportedEvent

TARGET = {"n": 400, "epsilon": 3.0, "delta": 1e-5}
# Of each kind: its builder's arguments, and the options of the command.
KINDS = {
    "subsampled": (
        lambda **more: calibrate.dpsgd(batch_size=50, steps=40, **TARGET, **more),
        "--batch-size 50 --steps 40",
    ),
    "matrix": (
        lambda **more: calibrate.correlated_dpsgd(
            matrix.Tree(16), batch_size=400, sampler="full", **TARGET, **more
        ),
        "--batch-size 400 --steps 16 --noise tree --sampler full",
    ),
    "correlated": (
        lambda **more: calibrate.correlated_dpsgd(
            matrix.LambdaCGD(40, 0.2), batch_size=50, statistics=False, **TARGET, **more
        ),
        "--batch-size 50 --steps 40 --noise lambda-cgd --decay 0.2 --proved",
    ),
}
ACCOUNTANTS = ("renyi", "pld", "characteristic")


def records(n=500):
    X = np.random.default_rng(5).uniform(-1, 1, (n, 2))
    return X, np.where(X @ [1.0, -1.0] > 0, "yes", "no")


@pytest.mark.slow
@pytest.mark.parametrize("door", ["python", "shell"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_a_target_leads_to_a_released_model(
    accountant, kind, door, tmp_path, monkeypatch, without_pictures
):
    monkeypatch.chdir(tmp_path)
    builder, options = KINDS[kind]
    if door == "python":
        X, y = records(400)
        plan = builder(accountant=accountant)
        objective = dpcal.Logistic(X, y, classes=["no", "yes"])
        result = dpcal.run(objective, plan, seed=0)
        right = objective.predict(X, result.w) == y
        priced = [result.epsilon(plan.delta), result.ledger.epsilon(plan.delta)]
    else:
        X, y = records()
        rows = "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y, strict=True))
        (tmp_path / "table.csv").write_text("a,b,answer\n" + rows)
        target = f"--n 400 --epsilon 3 --delta 1e-5 --accountant {accountant} -o plan.json"
        assert main(["calibrate", *options.split(), *target.split()]) == 0
        plan = dpcal.Plan.from_json((tmp_path / "plan.json").read_text())
        train = "train table.csv --target answer --classes no,yes --bounds=-1:1 --held-out none"
        assert main([*train.split(), "--use-plan", "plan.json", "--seed", "0"]) == 0
        assert main(["verify", "dpcal-report"]) == 0
        model = dpcal.load_model("dpcal-report")
        right = np.array(model.predict({"a": X[:, 0], "b": X[:, 1]})) == y
        (run,) = json.loads((tmp_path / "dpcal-report" / "report.json").read_text())["runs"]
        assert run["epsilon"]["accountant"] == accountant
        priced = [run["epsilon"]["upper"]]
    assert plan.accountant == accountant
    asked = {"delta": plan.delta, "neighboring_relation": plan.neighboring_relation}
    bound = accountants.epsilon(plan.event, accountant=accountant, **asked)
    assert 0.99 * 3 < bound <= 3.0
    assert all(float(each) == bound for each in priced)
    # What is charged covers the exact price, where that is known.
    if kind != "correlated":
        assert min(priced) >= accountants.epsilon(plan.event, **asked).lower
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


def test_an_accountant_that_does_not_price_an_event_says_so():
    with pytest.raises(UnsupportedEvent, match="PLD backend does not price"):
        calibrate.noise_multiplier(
            lambda s: dpcal.events.RandomAllocationDpEvent(s, 10),
            epsilon=1.0,
            delta=1e-6,
            accountant="pld",
        )


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"epsilon": 0.5}, "", "must meet its target: its answers cost epsilon = 3 at"),
        ({"optimizer": "dp_rgda"}, "", "needs --problem"),
        ({"optimizer": "magic"}, "", "optimizer must be one of"),
        ({"accountant": "moments"}, "", "accountant must be one of 'auto'"),
        ({"n": None}, "", "n must be a whole number"),
        ({}, "--epsilon 1", "--epsilon must be the plan's, 3.0"),
        ({}, "--steps 3", "--steps does not go with --use-plan"),
        ({}, "--group-size 2", "--group-size needs a --schema"),
    ],
)
def test_a_plan_that_cannot_be_trusted_is_refused(change, options, says, tmp_path, table, capsys):
    document = {**KINDS["subsampled"][0](accountant="renyi").to_dict(), **change}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    asked = ["train", str(table), "--target", "answer", "--use-plan", str(tmp_path / "plan.json")]
    assert main([*asked, *options.split(), "-o", str(tmp_path / "report")]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
    assert not (tmp_path / "report").exists()
