"""The command line: every command answers, and wrong input gets one sentence and status 2."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from dpcal.cli import main
from dpcal.commands import COMMANDS, load

MECHANISM = ["--sampling-probability", "0.01", "--noise-multiplier", "1", "--steps", "10000"]
TARGET = ["--epsilon", "1", "--delta", "1e-5"]


def ask(capsys, *words):
    """Run a command that must succeed, and return its JSON."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def refuse(capsys, *words):
    """Run a command that must be refused, and return its sentence."""
    assert main([*map(str, words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    # On a slow machine a line says before it what takes long.
    message = captured.err.splitlines(keepends=True)[-1]
    assert message.startswith("dpcal: ")
    assert message.endswith(".\n")
    return message


@pytest.fixture
def table(tmp_path):
    """A separable table of 200 rows, three features, two classes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (200, 3))
    labels = np.where(X @ [1.0, -1.0, 0.5] > 2.5, "yes", "no")
    path = tmp_path / "table.csv"
    lines = [
        ",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), labels, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,answer", *lines]) + "\n")
    return path


# -- answers


def test_epsilon(capsys):
    answer = ask(capsys, "epsilon", *MECHANISM, "--delta", "1e-6")
    epsilon = answer["epsilon"]
    assert epsilon["lower"] <= 6.907384495 + 1e-9
    assert epsilon["upper"] == pytest.approx(6.907384495, abs=1e-9)
    assert epsilon["accountant"] == "characteristic"
    assert epsilon["neighboring_relation"] == "add-or-remove-one"
    assert epsilon["method"]


def test_delta(capsys):
    answer = ask(capsys, "epsilon", *MECHANISM, "--epsilon", "8")
    assert answer["delta"]["upper"] == pytest.approx(2.0283809414912160718e-8, rel=1e-10)
    assert answer["log_delta"]["upper"] == pytest.approx(math.log(answer["delta"]["upper"]))


def test_text_is_rounded_outward(capsys):
    assert main(["epsilon", *MECHANISM, "--delta", "1e-6"]) == 0
    low, high = map(float, capsys.readouterr().out.split("[")[1].split("]")[0].split(","))
    assert low < 6.9073844951 < high
    assert high - low < 3e-9


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (["--sampling-probability", "0.01", "--steps", "10000"], "noise_multiplier"),
        (["--sampling-probability", "0.01", "--noise-multiplier", "1"], "steps"),
        (["--noise-multiplier", "1", "--steps", "1000"], "sampling_probability"),
    ],
)
def test_calibrate_solves_for_what_is_left_out(capsys, given, name):
    answer = ask(capsys, "calibrate", *given, "--epsilon", "2", "--delta", "1e-6")
    assert answer["epsilon"]["upper"] <= 2.0
    expected = {"noise_multiplier": 2.355618, "steps": 874, "sampling_probability": 0.009442}
    assert answer[name] == pytest.approx(expected[name], rel=1e-4)


def test_calibrate_writes_a_plan(capsys, tmp_path):
    from dpcal.calibrate import Plan

    path = tmp_path / "plan.json"
    run = ["--n", "60000", "--batch-size", "600", "--epochs", "10"]
    answer = ask(capsys, "calibrate", *run, *TARGET, "-o", path)
    plan = Plan.from_json(path.read_text())
    assert json.loads(plan.to_json()) == answer["plan"]
    assert plan.price() <= 1.0
    assert [item.name for item in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.slow
def test_compare_epsilons(capsys):
    answer = ask(capsys, "compare", *MECHANISM, "--delta", "1e-6", "--accountants", "renyi,pld")
    assert [row["accountant"] for row in answer["rows"]] == ["renyi", "pld"]
    assert answer["rows"][0]["upper"] > answer["rows"][1]["upper"] > 6.907384


@pytest.mark.slow
def test_compare_noise_is_safe_and_tight(capsys):
    from dpcal import accountants
    from dpcal.accountants import events

    asked = ["--sampling-probability", "0.1", "--steps", "100", *TARGET]
    answer = ask(capsys, "compare", *asked)
    rows = {row["accountant"]: row for row in answer["rows"]}
    assert set(rows) == {"characteristic", "renyi", "pld", "prv"}
    least = rows["characteristic"]["noise_multiplier"]
    for name, row in rows.items():
        sigma = row["noise_multiplier"]
        event = events.dpsgd(sampling_probability=0.1, noise_multiplier=sigma, steps=100)
        upper = accountants.epsilon(event, delta=1e-5, accountant=name).upper
        assert upper <= 1.0
        assert upper > 1.0 - 2e-3
        assert sigma >= least * (1 - 1e-6)
        assert row["epsilon"]["upper"] <= 1.0


def test_a_contradiction_between_accountants_is_status_1(capsys, monkeypatch):
    from dpcal import accountants
    from dpcal.accountants.interface import Compared, Comparison

    rows = (Compared("pld", 2.0, 3.0, 0.1), Compared("prv", 0.5, 1.0, 0.1))
    comparison = Comparison(1e-6, "add-or-remove-one", rows)
    monkeypatch.setattr(accountants, "compare", lambda *_, **__: comparison)
    assert main(["compare", *MECHANISM, "--delta", "1e-6"]) == 1
    out = capsys.readouterr().out
    assert "CONTRADICTION" in out
    assert "proves at least" in out


@pytest.mark.slow
def test_compare_passes_options_to_the_backends(capsys):
    words = ["compare", *MECHANISM, "--delta", "1e-6", "--accountants", "characteristic,pld"]
    fine = ask(capsys, *words)["rows"][1]["upper"]
    coarse = ask(capsys, *words, "--pld-interval", "5e-3")["rows"][1]["upper"]
    assert coarse > fine > 6.907384
    assert "--pld-interval" in refuse(capsys, *words, "--pld-interval", "-1")


@pytest.mark.slow
def test_epsilon_cross_check(capsys, monkeypatch):
    from dpcal.accountants import characteristic
    from dpcal.accountants.answers import Bounds

    words = ["epsilon", *MECHANISM, "--delta", "1e-6"]
    checked = ask(capsys, *words, "--cross-check", "--pld-interval", "1e-3")
    assert checked["epsilon"] == ask(capsys, *words)["epsilon"]
    assert "pld is not asked" in refuse(capsys, *words, "--pld-interval", "1e-3")
    broken = Bounds(3.0, 3.1, "broken")
    monkeypatch.setattr(characteristic, "epsilon_bounds", lambda *_: broken)
    monkeypatch.setattr(
        characteristic, "log_delta_bounds", lambda *_: Bounds(-30.0, -29.0, "broken")
    )
    message = refuse(capsys, *words, "--cross-check", "--pld-interval", "2e-4")
    assert "[3, 3.1]" in message
    assert "do not meet" in message


@pytest.mark.slow
def test_plot_profile(capsys, tmp_path):
    path = tmp_path / "profile.png"
    answer = ask(capsys, "plot", "profile", *MECHANISM, "--delta", "1e-6", "-o", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    exact, renyi = answer["profile"]
    assert max(exact["delta"]) <= 1
    assert np.all(np.diff(exact["delta"]) < 0)
    inside = np.interp(exact["epsilon"], renyi["epsilon"], np.log(renyi["delta"]))
    assert np.all(inside[20:-20] > np.log(exact["delta"])[20:-20])


@pytest.mark.slow
def test_plot_trade_off(capsys, tmp_path):
    path = tmp_path / "trade-off.png"
    answer = ask(capsys, "plot", "trade-off", *MECHANISM, "-o", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    rates, missed = np.array(answer["false_positive_rate"]), answer["false_negative_rate"]
    assert np.all(np.diff(missed["lower"]) < 0)
    assert np.all(np.array(missed["upper"]) <= 1 - rates + 1e-9)


@pytest.mark.slow
def test_plot_renyi(capsys, tmp_path):
    path = tmp_path / "renyi.png"
    answer = ask(capsys, "plot", "renyi", *MECHANISM, "--delta", "1e-6", "-o", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    # Renyi divergences rise with the order.
    assert np.all(np.diff(answer["divergence"]) > 0)
    assert "delta" in refuse(capsys, "plot", "renyi", *MECHANISM, "--delta", "2", "-o", path)


def test_help_has_an_example_that_parses(capsys):
    from dpcal.cli import _parser

    for name in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        # A line that ends in a backslash goes on in the next one, as in a shell.
        text = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
        for example in load(name).EXAMPLES:
            assert f"dpcal {name} {example}" in text
            assert _parser(name).parse_args([name, *example.split()]).command == name


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from dpcal.cli import main\n"
        "try: main(['epsilon', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'dp_accounting', 'matplotlib', 'sympy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_python_m_dpcal():
    command = [sys.executable, "-m", "dpcal", "--version"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    assert answer.stdout.startswith("dpcal ")


# -- refusals


def replaced(option, value):
    words = list(MECHANISM)
    words[words.index(option) + 1] = value
    return words


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "command"),
        (["unknown"], "unknown"),
        (["epsilon"], "--delta"),
        (["epsilon", "--delta", "1e-6"], "--sampling-probability"),
        (["epsilon", *MECHANISM, "--delta", "1e-6", "--epsilon", "1"], "--epsilon"),
        (["epsilon", *MECHANISM, "--delta", "1e-6", "--bogus"], "--bogus"),
        (["epsilon", *MECHANISM, "--delta", "x"], "--delta"),
        (["epsilon", *MECHANISM, "--delta", "0"], "delta"),
        (["epsilon", *MECHANISM, "--delta", "1"], "delta"),
        (["epsilon", *MECHANISM, "--delta", "nan"], "delta"),
        (["epsilon", *MECHANISM, "--epsilon", "-1"], "epsilon"),
        (["epsilon", *MECHANISM, "--epsilon", "inf"], "epsilon"),
        (["epsilon", *MECHANISM, "--delta", "1e-6", "--accountant", "psychic"], "--accountant"),
        (["epsilon", *replaced("--sampling-probability", "0"), "--delta", "1e-6"], "(0, 1]"),
        (["epsilon", *replaced("--sampling-probability", "1.1"), "--delta", "1e-6"], "(0, 1]"),
        (["epsilon", *replaced("--sampling-probability", "nan"), "--delta", "1e-6"], "quotient"),
        (["epsilon", *replaced("--noise-multiplier", "0"), "--delta", "1e-6"], "> 0"),
        (["epsilon", *replaced("--noise-multiplier", "inf"), "--delta", "1e-6"], "> 0"),
        (["epsilon", *replaced("--steps", "0"), "--delta", "1e-6"], "steps"),
        (["epsilon", *replaced("--steps", "2.5"), "--delta", "1e-6"], "--steps"),
        (["epsilon", *replaced("--steps", "inf"), "--delta", "1e-6"], "--steps"),
        (
            ["epsilon", *MECHANISM, "--delta", "1e-6", "--neighboring-relation", "replace-two"],
            "replace-two",
        ),
        (["calibrate", *TARGET], "--noise-multiplier"),
        (["calibrate", *MECHANISM, *TARGET], "--noise-multiplier"),
        (["calibrate", *MECHANISM[:2], "--steps", "10", *TARGET, "-o", "p.json"], "--output"),
        (["calibrate", "--n", "10", "--batch-size", "11", "--epochs", "1", *TARGET], "batch_size"),
        (["calibrate", "--n", "10", *TARGET], "--batch-size"),
        (["compare", *MECHANISM], "--delta"),
        (["compare", *MECHANISM, "--delta", "1e-6", "--accountants", "psychic"], "'psychic'"),
        (["plot", "profile", *MECHANISM, "-o", "profile.jpg"], ".png"),
        (["plot", "profile", *MECHANISM, "-o", "nowhere/profile.png"], "existing folder"),
        (["plot", "accuracy", "-o", "a.png"], "--report"),
        (["plot", "accuracy", "--report", "nowhere", "-o", "a.png"], "nowhere"),
        (["verify", "nowhere"], "nowhere"),
        (["demo", "-o", "nowhere/report"], "existing folder"),
    ],
    ids=lambda item: " ".join(item)[:70] if isinstance(item, list) else None,
)
def test_wrong_input_is_one_sentence(capsys, tmp_path, monkeypatch, words, named):
    monkeypatch.chdir(tmp_path)
    assert named in refuse(capsys, *words)
    assert list(tmp_path.iterdir()) == []


# -- train


@pytest.mark.slow
def test_train(capsys, table, tmp_path):
    folder = tmp_path / "report"
    asked = ["train", "--csv", table, "--target", "answer", *TARGET, "--bounds", "0:10"]
    answer = ask(capsys, *asked, "--epochs", "5", "--seed", "1", "-o", folder)
    assert json.loads((folder / "report.json").read_text()) == answer
    assert {path.name for path in folder.iterdir()} == {
        "report.json",
        "model.json",
        "privacy-profile.svg",
        "statement.html",
        "sp800-226.html",
    }
    (run,) = answer["runs"]
    assert run["epsilon"]["upper"] <= 1.0
    assert run["plan"]["n"] == answer["data"]["training_records"]
    assert 130 <= run["plan"]["n"] <= 185  # 160 on average, with a standard deviation of 5.7
    assert answer["data"]["rows"] == 200
    assert answer["data"]["read_from_data"] == [
        "number of records",
        "names of the columns",
        "classes of 'answer'",
    ]
    assert set(answer["model"]["weights"]) == {"a", "b", "c"}
    assert answer["model"]["classes"] == ["no", "yes"]
    # Noise of standard deviation 5 on each count of about 40 held-out records tells little.
    assert answer["evaluation"]["held_out"] == "noisy"
    assert 0 <= answer["evaluation"]["accuracy"] <= 1
    assert main(["verify", str(folder)]) == 0


@pytest.mark.slow
def test_train_squared_without_evaluation(capsys, table, tmp_path):
    rows = [line.split(",") for line in table.read_text().splitlines()]
    numeric = tmp_path / "numeric.csv"
    numeric.write_text("\n".join(",".join(row[:3]) for row in rows))
    asked = ["train", "--csv", numeric, "--target", "c", "--loss", "squared", *TARGET]
    bounds = ["--bounds", "0:10", "--target-bounds", "0:10", "--test-fraction", "0"]
    answer = ask(capsys, *asked, *bounds, "--epochs", "2", "-o", tmp_path / "report")
    assert answer["evaluation"]["held_out"] == "left out"
    assert not (tmp_path / "report" / "accuracy.svg").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one"])
def test_train_by_another_optimizer(capsys, table, tmp_path, relation):
    folder = tmp_path / "report"
    asked = ["train", "--csv", table, "--target", "answer", *TARGET, "--bounds", "0:10"]
    words = ["--optimizer", "noisy_gd", "--seed", "1", "--neighboring-relation", relation]
    words += ["--n", "200"] if relation == "add-or-remove-one" else []
    answer = ask(capsys, *asked, *words, "-o", folder)
    (run,) = answer["runs"]
    (query,) = run["plan"]["queries"]
    # Three features in [-4, 4] and an intercept: ||x||^2 <= 49, so L0 = 7 and L1 = 49 / 4.
    assert query["max_norm"] == pytest.approx(7.0)
    assert run["plan"]["parameters"]["learning_rate"] == pytest.approx(4 / 49)
    assert query["sampler"] == "full"
    assert 1.0 - 1e-4 < run["epsilon"]["upper"] <= 1.0
    assert answer["training"]["optimizer"] == "noisy_gd"
    assert "over all records" in answer["privacy"]["mechanism"]
    assert main(["verify", str(folder)]) == 0
    capsys.readouterr()
    tuned = ["--max-norm", "1", "--steps", "7", "--learning-rate", "0.5", "--force"]
    query = ask(capsys, *asked, *words, *tuned, "-o", folder)["runs"][0]["plan"]["queries"][0]
    assert (query["max_norm"], query["count"]) == (1.0, 7)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--optimizer", "adam"], "optimizer must be one of 'dpsgd', 'noisy_gd'"),
        (["--optimizer", "noisy_gd"], "noisy_gd needs lipschitz: give --max-norm, or"),
        (["--optimizer", "noisy_gd", "--epochs", "2"], "--epochs is not for --optimizer noisy_gd"),
    ],
)
def test_train_says_what_an_optimizer_needs(capsys, table, tmp_path, words, named):
    asked = ["train", "--csv", table, "--target", "answer", *TARGET, *words]
    assert main([*map(str, asked), "-o", str(tmp_path / "report")]) == 2
    assert named in capsys.readouterr().err


def test_optimizers_are_listed(capsys):
    rows = ask(capsys, "optimizers")["optimizers"]
    assert {"dpsgd", "noisy_gd"} <= {row["name"] for row in rows}
    assert ask(capsys, "optimizers", "noisy_gd")["optimizers"][0]["measure"] == "gradient norm"
    assert main(["optimizers", "adam"]) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
def test_train_is_repeatable_with_a_seed_only(capsys, table, tmp_path):
    def weights(*seed):
        asked = ["train", "--csv", table, "--target", "answer", *TARGET, "--epochs", "1"]
        folder = tmp_path / "report"
        return ask(capsys, *asked, *seed, "--force", "-o", folder)["model"]["weights"]

    assert weights("--seed", "3") == weights("--seed", "3")
    assert weights() != weights()


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
def test_the_fingerprint_is_that_of_the_records_under_the_key(capsys, table, tmp_path):
    from dpcal.report import fingerprint

    folder = tmp_path / "report"
    asked = ["train", "--csv", table, "--target", "answer", *TARGET, "--epochs", "1"]
    answer = ask(capsys, *asked, "--test-fraction", "0", "-o", folder)
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    X = np.array([row[:3] for row in rows], dtype=float)
    y = np.array([row[3] == "yes" for row in rows], dtype=float)
    arrays = [X, y, X[:0], y[:0]]
    key = bytes.fromhex((tmp_path / "report.key").read_text())
    assert answer["data"]["fingerprint"] == fingerprint(arrays, key=key)
    assert answer["data"]["fingerprint"] != fingerprint(arrays, key=b"another key")


def edited(table, line, text):
    lines = table.read_text().splitlines()
    lines[line] = text
    table.write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("edit", "options", "named"),
    [
        (None, ["--target", "nothing"], "'nothing'"),
        (lambda table: table.unlink(), [], "table.csv"),
        (lambda table: table.write_text(""), [], "at least one record"),
        (lambda table: table.write_text("a,b,c,answer\n"), [], "at least one record"),
        (lambda table: table.write_bytes(b"\xff\xfe\x00"), [], "readable"),
        (lambda table: table.write_text("a,a\n1,2\n"), [], "distinctly"),
        (
            lambda table: edited(table, 6, "1,two,3,yes"),
            [],
            "column 'b' must be a finite number, got one that is none",
        ),
        (
            lambda table: edited(table, 6, "1,nan,3,yes"),
            [],
            "column 'b' must be a finite number, got one that is none",
        ),
        (
            lambda table: edited(table, 6, "1,,3,yes"),
            [],
            "column 'b' must be a finite number, got an empty one",
        ),
        (lambda table: edited(table, 6, "1,2,yes"), [], "column 'c'"),
        (lambda table: edited(table, 6, "1,2,3,perhaps"), [], "two classes"),
        (lambda table: edited(table, 6, "1,2,3,"), [], "column 'answer' lacks one"),
        (None, ["--batch-size", "201"], "batch_size"),
        (None, ["--batch-size", "0"], "batch_size"),
        (None, ["--epochs", "0"], "epochs"),
        (None, ["--delta", "2"], "delta"),
        (None, ["--epsilon", "-1"], "epsilon"),
        (None, ["--max-norm", "0"], "max_norm"),
        (None, ["--max-norm", "1e300"], "max_norm"),
        (None, ["--learning-rate", "nan"], "learning_rate"),
        (None, ["--l2", "-1"], "l2"),
        (None, ["--seed", "-1"], "seed"),
        (None, ["--test-fraction", "1"], "test_fraction"),
        (None, ["--bounds", "10:0"], "low < high"),
        (None, ["--bounds", "nothing"], "LOW:HIGH"),
        (None, ["--bounds", "zero:one"], "LOW:HIGH"),
        (None, ["--target-bounds", "0:1"], "--target-bounds"),
        (None, ["--loss", "squared"], "column 'answer'"),
        (None, ["--loss", "hinge"], "--loss"),
    ],
)
def test_train_refuses_and_leaves_nothing(capsys, table, edit, options, named):
    if edit is not None:
        edit(table)
    before = sorted(table.parent.iterdir())
    folder = table.parent / "report"
    asked = ["train", "--csv", table, "--target", "answer", *TARGET, "-o", folder, *options]
    assert named in refuse(capsys, *asked)
    assert sorted(table.parent.iterdir()) == before


def test_train_keeps_a_folder_that_is_not_a_report(capsys, table, tmp_path):
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    asked = ["train", "--csv", table, "--target", "answer", *TARGET, "-o", folder]
    assert "precious" in refuse(capsys, *asked)
    assert (folder / "thesis.txt").read_text() == "years of work"


# -- certificates


def test_certify_and_check(capsys, tmp_path):
    path = tmp_path / "certificate.json"
    made = ask(capsys, "certify", *MECHANISM, "--epsilon", "8", "-o", path)
    assert json.loads(path.read_text()) == made
    assert float(made["lower"]) < 2.0283809414912160718e-8 < float(made["upper"])
    checked = ask(capsys, "certify", "--check", path)
    assert checked == {"holds": True, "certificate": made}
    assert main(["certify", "--check", str(path)]) == 0
    assert capsys.readouterr().out.startswith("holds: delta in [")


def test_certify_epsilon(capsys):
    made = ask(capsys, "certify", *MECHANISM, "--delta", "1e-6", "--width", "1e-6")
    assert made["quantity"] == "epsilon"
    assert float(made["lower"]) < 6.907384495 < float(made["upper"])


@pytest.mark.parametrize(
    ("method", "told"), [("contour", "contour"), ("convex-order", "convex order")]
)
def test_certify_by_the_method_that_is_named(capsys, method, told):
    run = ["--sampler", "random-allocation", "--n", "20", "--batch-size", "2", "--epochs", "10"]
    words = ["certify", *run, "--noise-multiplier", "2", "--epsilon", "2.1420731081"]
    assert main([*words, "--width", "0.3", "--method", method]) == 0
    assert capsys.readouterr().out.count(f"below by {told}, above by {told}") == 2
    made = ask(capsys, *words, "--width", "0.3", "--method", method)
    assert float(made["lower"]) < 1e-5 < float(made["upper"]) < 1.5e-5
    words[2] = "shuffled-epochs"
    assert "must be 'auto'" in refuse(capsys, *words, "--method", method)


def test_a_changed_certificate_does_not_hold(capsys, tmp_path):
    made = ask(capsys, "certify", *MECHANISM, "--epsilon", "8")
    made["mechanisms"][0]["count"] = 9_999
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(made))
    assert main(["certify", "--check", str(path)]) == 1
    assert capsys.readouterr().out.startswith("DOES NOT HOLD: digest of the certificate")
    assert main(["certify", "--check", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_certify_refuses(capsys, tmp_path):
    assert "--method is for a run" in refuse(capsys, "certify", tmp_path, "--method", "contour")
    assert "Exactly one of --epsilon and --delta" in refuse(capsys, "certify", *MECHANISM)
    missing = tmp_path / "none.json"
    for words in (("certify", "--check", missing), ("verify", tmp_path / "none")):
        sentence = refuse(capsys, *words)
        assert "readable" in sentence
        assert "none" in sentence
        assert "Errno" not in sentence
    assert "--steps" in refuse(capsys, "certify", *MECHANISM[:4], "--epsilon", "1")
