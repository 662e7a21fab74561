"""The demonstration keeps its promises, and a page shows what it prints."""

import json
import re

import numpy as np
import pytest
from _installed import once
from _tree import ROOT

from dpcal import calibrate
from dpcal.accountants import epsilon, events
from dpcal.cli import main
from dpcal.commands.training import demonstration
from dpcal.commands.training.breast_cancer import RANGES, breast_cancer, scaled, split
from dpcal.commands.training.plans import default_sizes


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the demonstration prints, and its report; a minute, for all workers once."""
    with once(tmp_path_factory, "demo") as folder:
        if not (folder / "printed").exists():
            folder.mkdir(exist_ok=True)
            (folder / "printed").write_text("\n".join(demonstrated(folder / "report")))
        return (folder / "printed").read_text(), folder / "report"


def demonstrated(folder):
    """Return the lines that the demonstration prints, which leaves its report in a folder."""
    capture = pytest.MonkeyPatch()
    lines = []

    def keep(*text, file=None, **_):
        if file is None:  # standard error holds progress
            lines.append(" ".join(map(str, text)))

    capture.setattr("builtins.print", keep)
    try:
        assert main(["demo", "-o", str(folder)]) == 0
    finally:
        capture.undo()
    return lines


@pytest.fixture(scope="module")
def report(printed):
    return json.loads((printed[1] / "report.json").read_text(), parse_constant=pytest.fail)


def numbers(text):
    """Numbers of a table's row, without its time."""
    text = re.sub(r"[\d.]+ m?s$", "", text.strip())
    return [float(word) for word in re.findall(r"\d+\.?\d*(?:e-\d+)?", text)]


@pytest.mark.slow
def test_the_page_shows_what_is_printed(printed):
    page = (ROOT / "docs" / "first_steps.md").read_text()
    shown = page.split("```text\n")[1].split("```")[0].strip().splitlines()
    rows = [line for line in printed[0].split("\nreport written")[0].splitlines() if line.strip()]
    shown = [line for line in shown if line.strip()]
    assert len(rows) == len(shown)
    for ours, theirs in zip(rows, shown, strict=True):
        # Accuracies are in percent: a point of rounding on another processor is not a lie.
        assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-3, abs=0.9)
        assert re.findall("[a-z]{3,}", ours) == re.findall("[a-z]{3,}", theirs)


@pytest.mark.slow
def test_every_accountant_meets_every_target(report):
    assert [need["epsilon"] for need in report["calibration"]] == [0.5, 1, 2, 4, 8]
    for need in report["calibration"]:
        rows = {row["accountant"]: row for row in need["rows"]}
        best = rows["characteristic"]
        assert best["epsilon"]["upper"] > need["epsilon"] * (1 - 1e-5)
        for row in rows.values():
            assert row["noise_multiplier"] >= best["noise_multiplier"]
            assert row["epsilon"]["upper"] <= need["epsilon"]
        assert rows["renyi"]["noise_multiplier"] > 1.05 * best["noise_multiplier"]


@pytest.mark.slow
def test_the_report_says_what_it_must(printed, report):
    folder = printed[1]
    assert {path.name for path in folder.iterdir()} == {
        "report.json",
        "statement.html",
        "sp800-226.html",
        "accuracy.svg",
        "privacy-profile.svg",
    }
    # n was counted from the table: a record is blanked, in what is printed and in what is written.
    assert report["privacy"]["neighboring_relation"] == "replace-special"
    assert "add-or-remove-one" not in printed[0] + json.dumps(report)
    assert "number of records" in report["data"]["read_from_data"]
    page = (folder / "statement.html").read_text()
    for part in ("25 trained models together", "replace-special", "What an attacker can achieve"):
        assert part in page, part
    # What one pair (epsilon, delta) allows is more than what the composition itself does.
    assert 0.9 < report["risk"]["true_positive_rate"] < 0.99
    assert len(report["runs"]) == 25
    for run in report["runs"]:
        assert run["complete"]
        assert run["epsilon"]["lower"] <= run["epsilon"]["upper"] <= run["plan"]["epsilon"]
    assert report["everything"]["epsilon"]["upper"] > 8
    assert {"unit", "neighboring_relation", "mechanism", "not_covered"} <= set(report["privacy"])
    assert report["data"]["fingerprint"]["algorithm"] == "sha256"
    assert {"dpcal", "numpy", "scipy", "dp-accounting"} <= set(report["software"])
    assert main(["verify", str(folder)]) == 0


@pytest.mark.slow
def test_nothing_was_tuned_and_the_price_of_tuning_is_told(printed, report):
    """Settings are those that any other table of this size would have."""
    n = report["runs"][0]["plan"]["n"]
    sizes = default_sizes(n, {})
    assert {name: report["training"][name] for name in sizes} == sizes
    assert report["training"]["l2"] == 1 / n
    assert any("Nothing was tuned on these records" in s for s in report["privacy"]["not_covered"])
    assert "cross-validation" not in json.dumps(report)
    told = report["training"]["tuning"]["instead"]
    plan = calibrate.dpsgd(
        n=n, epsilon=1.0, delta=1e-5, neighboring_relation="replace-special", **sizes
    )
    # The best of a random number of runs costs more than one, and less than all together; another
    # package composes the same law.
    run = epsilon(plan.event, delta=1e-5, neighboring_relation="replace-special")
    all_runs = events.SelfComposedDpEvent(plan.event, told["candidates"])
    everything = epsilon(all_runs, delta=1e-5, neighboring_relation="replace-special")
    assert told["single"] == pytest.approx(run, rel=1e-9)
    assert told["all_released"] == pytest.approx(everything, rel=1e-9)
    best = events.RepeatAndSelectDpEvent(plan.event, told["candidates"], 0.0)
    checked = epsilon(best, delta=1e-5, accountant="pld", neighboring_relation="replace-special")
    assert told["best_released"] == pytest.approx(checked, rel=1e-3)
    assert run < told["best_released"] < everything
    assert f"{told['best_released']:.3f}"[:4] in printed[0]


@pytest.mark.slow
def test_utility_is_near_the_optimum(report):
    means = [row["mean"] for row in report["accuracy"]]
    assert report["non_private_optimum"] > 0.95
    assert min(means) > 0.9
    assert means[-1] > report["non_private_optimum"] - 0.04


@pytest.mark.slow
def test_the_accuracies_can_be_drawn_again(printed, tmp_path):
    words = ["plot", "accuracy", "--report", str(printed[1]), "-o", str(tmp_path / "again.png")]
    assert main(words) == 0
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.study
def test_json_only(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demonstration, "EPSILONS", (1.0,))
    monkeypatch.setattr(demonstration, "SEEDS", (0,))
    assert main(["demo", "--json", "-o", str(tmp_path / "report")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "report" / "report.json").read_text())


def test_scaling_looks_at_one_record_at_a_time():
    task = breast_cancer()
    low, high = np.array(list(RANGES.values()), dtype=float).T
    records = np.vstack([low, high, low - 1, high + 1])
    assert np.array_equal(scaled(records)[:, 0], [-4, 4, -4, 4])
    assert np.array_equal(scaled(records)[:1], scaled(records[:1]))
    assert np.abs(task.X_train).max() <= 4
    assert np.abs(task.X_test).max() <= 4


def test_the_published_ranges_hold():
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer()
    assert [str(name) for name in table.feature_names] == list(RANGES)
    low, high = np.array(list(RANGES.values()), dtype=float).T
    assert np.all(low <= table.data)
    assert np.all(table.data <= high)


def test_the_split_does_not_look_at_records():
    training, held_out = split(569, 114)
    assert (len(training), len(held_out)) == (455, 114)
    assert np.array_equal(np.sort(np.concatenate([training, held_out])), np.arange(569))
