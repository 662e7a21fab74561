"""The demonstration keeps its promises.

Three of its five targets are run here.
"""

import contextlib
import io
import json
import re

import demonstration
import numpy as np
import pytest
from _installed import once
from breast_cancer import RANGES, breast_cancer, scaled, split

from dpcal import calibrate
from dpcal.accountants import epsilon, events
from dpcal.tables.request import default_sizes

TARGETS = (0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demonstration prints, the folder of its report, and the report; made once."""
    with once(tmp_path_factory, "demo") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "EPSILONS", TARGETS)
        report = folder / "report"
        if not (folder / "printed").exists():
            folder.mkdir(exist_ok=True)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                demonstration.demonstrate(report)
            (folder / "printed").write_text(out.getvalue())
        document = json.loads((report / "report.json").read_text(), parse_constant=pytest.fail)
        return (folder / "printed").read_text(), report, document


@pytest.mark.slow
def test_the_report_says_what_it_must(cli, demo):
    printed, folder, report = demo
    pages = {"statement.html", "sp800-226.html", "accuracy.svg", "privacy-profile.svg"}
    assert {path.name for path in folder.iterdir()} == {"report.json", *pages}
    # n was counted from the table: a record is blanked, in what is printed and in what is written.
    assert report["privacy"]["neighboring_relation"] == "replace-special"
    assert "add-or-remove-one" not in printed + json.dumps(report)
    assert "number of records" in report["data"]["read_from_data"]
    assert [run["complete"] for run in report["runs"]] == [True] * 15
    # One model is published, at its own price; what all would cost stands right below.
    page, whole = (folder / "statement.html").read_text(), report["everything"]["epsilon"]["upper"]
    attack, claim, together = re.findall('<p class="claim[^>]*>(.*)</p>', page)
    assert "finds at most 2.0 percent" in attack
    assert "The trained model is <span>(1.0000, 1e-05)" in claim
    assert "15 models" in together
    assert f"<span>({whole:.2f}"[:-1] in together
    assert report["runs"][report["published_run"]]["plan"]["epsilon"] == 1.0
    assert whole > 2
    assert cli("verify", folder)
    # With so many records of two classes a model is near the optimum.
    assert report["non_private_optimum"] > 0.95
    means = [row["mean"] for row in report["accuracy"]]
    assert min(means) > 0.88
    assert means[-1] > report["non_private_optimum"] - 0.04


@pytest.mark.slow
def test_nothing_was_tuned_and_the_price_of_tuning_is_told(demo):
    """Settings are those that any other table of this size would have."""
    printed, _, report = demo
    n = report["runs"][0]["plan"]["n"]
    sizes = default_sizes(n, {})
    assert {name: report["training"][name] for name in sizes} == sizes
    assert report["training"]["l2"] == 1 / n
    assert any("Nothing was tuned on these records" in s for s in report["privacy"]["not_covered"])
    told = report["training"]["tuning"]["instead"]
    relation = {"delta": 1e-5, "neighboring_relation": "replace-special"}
    plan = calibrate.dpsgd(n=n, epsilon=1.0, **relation, **sizes)
    # The best of a random number of runs costs more than one, and less than all together; another
    # package composes the same law.
    run = epsilon(plan.event, **relation)
    everything = epsilon(events.SelfComposedDpEvent(plan.event, told["candidates"]), **relation)
    best = events.RepeatAndSelectDpEvent(plan.event, told["candidates"], 0.0)
    assert told["single"] == pytest.approx(run, rel=1e-9)
    assert told["all_released"] == pytest.approx(everything, rel=1e-9)
    checked = epsilon(best, accountant="pld", **relation)
    assert told["best_released"] == pytest.approx(checked, rel=1e-3)
    assert run < told["best_released"] < everything
    assert f"{told['best_released']:.3f}"[:4] in printed


def test_scaling_and_splitting_look_at_no_other_record():
    from sklearn.datasets import load_breast_cancer

    task, table = breast_cancer(), load_breast_cancer()
    low, high = np.array(list(RANGES.values()), dtype=float).T
    records = np.vstack([low, high, low - 1, high + 1])
    assert np.array_equal(scaled(records)[:, 0], [-4, 4, -4, 4])
    assert np.array_equal(scaled(records)[:1], scaled(records[:1]))
    assert max(np.abs(task.X_train).max(), np.abs(task.X_test).max()) <= 4
    # The published ranges hold.
    assert [str(name) for name in table.feature_names] == list(RANGES)
    assert np.all((low <= table.data) & (table.data <= high))
    training, held_out = split(569, 114)
    assert (len(training), len(held_out)) == (455, 114)
    assert np.array_equal(np.sort(np.concatenate([training, held_out])), np.arange(569))
