"""``dpcal attack``: claims that hold, and claims that do not."""

import json

import pytest

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.cli import main

MECHANISM = ["--records", "400", "--batch-size", "80", "--steps", "10", "--delta", "1e-3"]


def answered(capsys, *words):
    status = main(["attack", *words, "--seed", "1", "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_replay_of_an_optimizer(capsys):
    status, document = answered(capsys, "replay", *MECHANISM, "--epsilon", "2")
    assert status == 0
    assert {each["label"] for each in document["replays"]} >= {"opposite", "long", "empty"}


def test_replay_of_a_function_in_a_file(capsys, tmp_path):
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
    assert answered(capsys, "replay", "--run", f"{file}:train", "--records", "100")[0] == 0
    status, document = answered(capsys, "replay", "--run", f"{file}:peek", "--records", "100")
    assert status == 1
    found = {row["violation"] for each in document["replays"] for row in each["findings"]}
    assert found == {"release"}


@pytest.mark.slow
def test_likelihood_of_a_plan_in_a_file(capsys, tmp_path):
    plan = calibrate.dpsgd(n=1_000, batch_size=100, steps=20, epsilon=2.0, delta=1e-4)
    for claimed, status in (
        (plan.to_json(), 0),
        (plan.to_json().replace('"epsilon": 2.0', '"epsilon": 0.5'), 1),
    ):
        (tmp_path / "plan.json").write_text(claimed)
        words = ["--plan", str(tmp_path / "plan.json"), "--samples", "30000"]
        found, document = answered(capsys, "likelihood", *words)
        assert found == status
        assert document["holds"] == (status == 0)


@pytest.mark.slow
def test_a_shuffle_breaks_the_claim_for_which_poisson_batches_were_given_noise(capsys):
    words = ["--records", "600", "--batch-size", "20", "--epochs", "1", "--samples", "20000"]
    words += ["--epsilon", "1.5", "--delta", "1e-3"]
    status, document = answered(capsys, "loader", *words)
    assert status == 1
    assert 1.5 < document["epsilon"] < document["price"]["upper"]
    noise = document["mechanism"]["noise_multiplier"]
    rate = {"sampling_probability": 20 / 600, "noise_multiplier": noise, "steps": 30}
    assert accountants.epsilon(events.dpsgd(**rate), delta=1e-3) == pytest.approx(1.5, rel=1e-6)
    assert answered(capsys, "loader", *words, "--sampler", "random-allocation")[0] == 0


@pytest.mark.slow
def test_canaries(capsys):
    status, document = answered(capsys, "canaries", *MECHANISM, "--epsilon", "4")
    assert status == 0
    assert document["expected"]["guesses"] == document["guesses"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["likelihood"], "attack needs --records"),
        (["replay", "--run", "no.py:f", "--records", "9"], "--run must be FILE:FUNCTION"),
        (["canaries", "--run", "a:b"], "--run is for replay"),
        (["replay", "-o", "a.png"], "--output is for likelihood"),
        (["loader", "--records", "9"], "attack needs --batch-size and --epochs"),
    ],
)
def test_wrong_input(capsys, words, sentence):
    assert main(["attack", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_file_that_cannot_be_used_is_named_with_the_reason(capsys, tmp_path):
    missing = tmp_path / "none.json"
    assert main(["attack", "likelihood", "--plan", str(missing)]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == (
        f"dpcal: --plan must be a readable file, got {str(missing)!r}: No such file or directory."
    )


@pytest.mark.slow
def test_picture(capsys, tmp_path):
    picture = tmp_path / "attack.png"
    # Without sampling: the curve of the claim is drawn the same way, and costs the least.
    words = ["likelihood", *MECHANISM, "--batch-size", "400", "--epsilon", "2"]
    assert answered(capsys, *words, "--samples", "4000", "-o", str(picture))[0] == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
