"""``dpcal attack``: claims that hold, and claims that do not."""

import pytest

from dpcal import calibrate

MECHANISM = "--records 400 --batch-size 80 --steps 10 --delta 1e-3 --seed 1"


def test_replay_of_an_optimizer_or_of_a_function_in_a_file(cli, tmp_path):
    document = cli.json("attack replay", MECHANISM, "--epsilon 2")
    assert {each["label"] for each in document["replays"]} >= {"opposite", "long", "empty"}
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "from dpcal import calibrate, optim\n"
        "plan = calibrate.dpsgd(n=100, batch_size=50, steps=5, epsilon=2.0, delta=1e-3)\n"
        "def train(table):\n"
        "    return optim.dpsgd(optim.Logistic(*table, classes=[0, 1]), plan)\n"
        "def peek(table):\n"
        "    return train(table).w, table[0].mean()\n"
    )
    assert cli(f"attack replay --run {file}:train --records 100 --seed 1")
    told = cli.json(f"attack replay --run {file}:peek --records 100 --seed 1", status=1)
    found = {row["violation"] for each in told["replays"] for row in each["findings"]}
    assert found == {"release"}


@pytest.mark.slow
def test_likelihood_of_a_plan_in_a_file(cli, tmp_path):
    plan = calibrate.dpsgd(n=1_000, batch_size=100, steps=20, epsilon=2.0, delta=1e-4).to_json()
    path = tmp_path / "plan.json"
    for claim, status in ((plan, 0), (plan.replace('"epsilon": 2.0', '"epsilon": 0.5'), 1)):
        path.write_text(claim)
        words = "--samples 30000 --seed 1 --plan"
        assert cli.json("attack likelihood", words, path, status=status)["holds"] == (status == 0)
    # Without sampling: the curve of the claim is drawn the same way, and costs the least.
    picture = tmp_path / "attack.png"
    words = "--batch-size 400 --epsilon 2 --samples 4000 --plot"
    cli("attack likelihood", MECHANISM, words, picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_canaries(cli):
    document = cli.json("attack canaries", MECHANISM, "--epsilon 4")
    assert document["expected"]["guesses"] == document["guesses"]
