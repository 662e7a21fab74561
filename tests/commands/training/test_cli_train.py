"""From a hospital's table to a model that others can use: tasks of users, from start to end."""

import json
import signal
import stat

import numpy as np
import pytest
from _patients import write_patients
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant

import dpcal
from dpcal.commands import tables as door
from dpcal.tables import Schema, fit, reading

TARGET = "--epsilon 1 --delta 1e-6"
PAGES = {"statement.html", "sp800-226.html", "what-an-attacker-can-find.svg"}


@pytest.fixture(scope="module")
def trained(cli, tmp_path_factory):
    """The folder in which the engineer's commands were run on a hospital's table.

    It has 3000 patients, a byte-order mark, semicolons, text, and gaps.
    """
    folder = write_patients(tmp_path_factory.mktemp("hospital") / "patients.csv").parent
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        cli("schema patients.csv -o schema.toml")
        cli("train patients.csv --schema schema.toml --target sick", TARGET)
        cli("predict dpcal-report/model.json patients.csv -o scores.csv")
    return folder


@pytest.fixture
def asked(trained, tmp_path):
    """The command that trains on the patients, into a folder that is not there."""
    table = ["train", trained / "patients.csv", "--schema", trained / "schema.toml"]
    return [*table, "--target sick", TARGET, "-o", tmp_path / "report"]


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def names(folder):
    return {path.name for path in folder.iterdir()}


# -- the engineer


@pytest.mark.slow
def test_an_engineer_gets_a_model_that_predicts(trained):
    lines = (trained / "scores.csv").read_text().splitlines()
    assert lines[0] == "prediction,probability of yes"
    found, shares = np.array([line.split(",") for line in lines[1:]]).T
    patients = (trained / "patients.csv").read_text("utf-8-sig").splitlines()[1:]
    # The best rule has an accuracy of about 0.87, and the larger class a share below 0.6.
    assert (found == [line.split(";")[-1] for line in patients]).mean() > 0.75
    assert np.array_equal(shares.astype(float) > 0.5, found == "yes")
    model = dpcal.load_model(trained / "dpcal-report" / "model.json")
    assert np.array_equal(model.predict(trained / "patients.csv"), found)
    table = {"age": [20, 90], "pressure": [100.0, None], "blood": ["A", "?"]}
    table["smoker"] = ["no", "yes"]
    assert model.predict(table).tolist() == ["no", "yes"]
    both = model.predict_proba(table)
    assert both.sum(axis=1) == pytest.approx([1, 1])
    assert (both[:, 1] > 0.5).tolist() == [False, True]
    assert model.about["claim"]["epsilon"] <= 1
    assert dpcal.load_model(trained / "dpcal-report").weights.tolist() == model.weights.tolist()


def test_the_statement_says_what_was_read_and_what_can_be_known(trained):
    report = report_of(trained / "dpcal-report")
    told = report["data"]["read_from_data"]
    assert {"number of records", "range of 'age'", "categories of 'blood'"} <= set(told)
    sentences = " ".join(report["privacy"]["not_covered"])
    assert "Read from the data, and not covered by the claim: range of 'age'" in sentences
    assert report["privacy"]["noise"] == report["runs"][0]["noise"] == "discrete"
    assert "exact" in report["privacy"]["mechanism"]
    # No attack on a (1, 1e-6)-private model does better (Kairouz, Oh and Viswanath 2015).
    assert 0.01 < report["risk"]["true_positive_rate"] <= np.e * 0.01 + 1e-6
    page = (trained / "dpcal-report" / "statement.html").read_text()
    # It loads nothing from a network.
    assert not [each for each in ("src=", "@import", "<script", "<link") if each in page]
    for part in (
        "no finding is more than 2.72 times as likely",
        "range of &#39;age&#39;",
        "<svg",
    ):
        assert part in page


@pytest.mark.usefixtures("without_pictures")
def test_a_schema_that_was_filled_in_copies_nothing(cli, trained, asked, tmp_path):
    text = (trained / "schema.toml").read_text()
    filled = [line for line in text.splitlines() if not line.startswith("copied")]
    path = tmp_path / "filled.toml"
    path.write_text("n = 3100\n" + "\n".join(filled))
    assert Schema.read(path).copied() == []
    document = cli.json(*asked, "--set epochs=2 --schema", path)
    (run,) = document["runs"]
    assert document["data"]["read_from_data"] == []
    # The schema gives a public n: the table's own number is nowhere in the report.
    assert run["plan"]["n"] == run["ledger"]["n"] == 2480
    assert run["plan"]["neighboring_relation"] == "add-or-remove-one"
    assert "training_records" not in document["data"]
    assert cli("verify", tmp_path / "report")


def test_the_key_is_beside_the_folder_that_one_mails(trained):
    key = trained / "dpcal-report.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    secret = key.read_text().strip()
    assert len(bytes.fromhex(secret)) == 32
    for path in (trained / "dpcal-report").iterdir():
        assert secret.encode() not in path.read_bytes()


def test_a_privacy_engineer_checks_the_claim(cli, trained):
    # The run, the held-out scores, and both together.
    assert cli("verify", trained / "dpcal-report").count("holds") == 3
    (run,) = report_of(trained / "dpcal-report")["runs"]
    scale, query = run["plan"]["queries"]
    noise = dp_event.GaussianDpEvent(query["noise_multiplier"])
    sampled = dp_event.PoissonSampledDpEvent(query["sampling_probability"] or 1.0, noise)
    steps = dp_event.SelfComposedDpEvent(sampled, query["count"])
    both = [dp_event.GaussianDpEvent(scale["noise_multiplier"]), steps]
    account = PLDAccountant(NeighboringRelation.REPLACE_SPECIAL)
    again = account.compose(dp_event.ComposedDpEvent(both)).get_epsilon(1e-6)
    assert again == pytest.approx(run["epsilon"]["upper"], rel=1e-3)


def test_a_report_whose_scores_claim_too_little_is_found_out(trained):
    for change, holds in (
        (lambda scores: scores["epsilon"].update(upper=0.9), [True, False, True]),
        (
            lambda scores: scores["ledger"]["entries"][0].update(noise_multiplier=1.0),
            [True, False, False],
        ),
    ):
        document = report_of(trained / "dpcal-report")
        change(document["evaluation"])
        assert [row["holds"] for row in dpcal.report.verify(document)] == holds


# -- nothing is lost, nothing overwritten


def test_nothing_is_overwritten(cli, trained, asked, tmp_path):
    report, table = trained / "dpcal-report", trained / "patients.csv"
    before = (report / "report.json").read_bytes()
    for words in (
        [*asked, "-o", report],
        ["schema", table, "-o", trained / "schema.toml"],
        ["predict", report, table, "-o", trained / "scores.csv"],
    ):
        assert "--force" in cli.refused(*words)
    assert (report / "report.json").read_bytes() == before
    # A key that is no key, and a folder that is no report, are kept.
    (tmp_path / "report.key").write_text("my own file")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    assert "report.key" in cli.refused(*asked, "--force")
    assert "precious" in cli.refused(*asked, "-o", tmp_path / "precious")
    assert (tmp_path / "report.key").read_text() == "my own file"
    assert names(tmp_path) | names(tmp_path / "precious") == {
        "report.key",
        "precious",
        "thesis.txt",
    }


def test_options_and_extras_are_checked_before_a_record_is_read(cli, asked, tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "read", lambda *_: pytest.fail("a record was read"))
    for words in (
        *("--l2 -1", "--test-fraction 1", "--delta 2", "--set noise=tree"),
        *("--set gamma=1", "--optimizer dp_sgda", "--optimizer correlated_dpsgd"),
    ):
        assert cli.refused(*asked, words)
    found = reading.find_spec
    for package in ("polars", "matplotlib"):
        without = {package: None}
        monkeypatch.setattr(reading, "find_spec", lambda name, w=without: w.get(name, found(name)))
        message = cli.refused(*asked)
        assert package in message
        assert "pip install '.[train]'" in message
    assert names(tmp_path) == set()


@pytest.mark.usefixtures("without_pictures")
def test_a_run_that_diverged_leaves_what_it_spent(cli, asked, tmp_path):
    words = "--set learning_rate=1e308 max_norm=1e140 epochs=1"
    text = cli(*asked, words, status=1)
    assert "became infinite" in text
    assert "epsilon in [0.99999" in text
    (run,) = report_of(tmp_path / "report")["runs"]
    assert not run["complete"]
    assert cli("verify", tmp_path / "report")


@pytest.mark.usefixtures("without_pictures")
def test_a_run_that_is_interrupted_leaves_what_it_spent(cli, asked, tmp_path, monkeypatch):
    came = []

    def interrupting(done, total):
        if not came:
            came.append(done)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(door, "bar", lambda *_: interrupting)
    before = signal.getsignal(signal.SIGINT)
    assert "stopped by the callback" in cli(*asked, status=130)
    assert signal.getsignal(signal.SIGINT) is before
    (run,) = report_of(tmp_path / "report")["runs"]
    spent = sum(entry["count"] for entry in run["ledger"]["entries"])
    assert 0 < spent < run["plan"]["queries"][-1]["count"]
    # A run that was stopped on account of what it had put out costs its whole plan.
    assert run["epsilon"]["upper"] > 1 - 1e-6
    assert cli("verify", tmp_path / "report")


@pytest.mark.slow
def test_a_picture_that_fails_loses_no_run(cli, asked, tmp_path, monkeypatch):
    monkeypatch.setattr(dpcal.plot, "svg", lambda *_, **__: 1 / 0)
    status, _, err = cli.run(*asked, "--set epochs=1")
    assert status == 0
    assert "what-an-attacker-can-find.svg could not be drawn" in err
    pages = {"statement.html", "sp800-226.html"}
    assert names(tmp_path / "report") == {"report.json", "model.json", *pages}
    assert cli("verify", tmp_path / "report")


# -- what is trained


@pytest.mark.slow
def test_a_report_has_all_that_was_spent_and_read(cli, table, tmp_path):
    words = "--target answer --epsilon 1 --delta 1e-5 --set epochs=5 --seed 1 --schema"
    told = cli.json("train", table, words, table.with_suffix(".toml"), "-o", tmp_path / "report")
    assert report_of(tmp_path / "report") == told
    assert names(tmp_path / "report") == {"report.json", "model.json", *PAGES}
    (run,) = told["runs"]
    assert run["plan"]["n"] == told["data"]["training_records"]
    assert (run["plan"]["n"], told["data"]["held_out_records"]) == (160, 40)
    assert told["data"]["rows"] == 200
    read = ["number of records", "classes of 'answer'"]
    assert told["data"]["read_from_data"] == read
    assert set(told["model"]["weights"]) == {"a", "b", "c"}
    assert told["model"]["classes"] == ["no", "yes"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
def test_a_run_without_a_seed_is_not_repeated_and_a_key_repeats_its_fingerprint(
    cli, table, tmp_path
):
    asked = ["train", table, "--target answer --epsilon 1 --delta 1e-5 --set epochs=1 --force"]
    asked += ["--test-fraction 0 -o", tmp_path / "report"]
    first, second = (cli.json(*asked) for _ in range(2))
    assert first["model"]["weights"] != second["model"]["weights"]
    rows = np.array([line.split(",") for line in table.read_text().splitlines()[1:]])
    X, y = rows[:, :3].astype(float), (rows[:, 3] == "yes").astype(float)
    key = bytes.fromhex((tmp_path / "report.key").read_text())
    arrays = [X, y, X[:0], y[:0]]
    found = second["data"]["fingerprint"]
    assert found == dpcal.report.fingerprint(arrays, key=key)
    assert found != dpcal.report.fingerprint(arrays, key=b"another key")


@pytest.mark.slow
def test_noisy_scores_are_near_the_true_ones_and_paid(cli, trained, asked, tmp_path):
    noisy = report_of(trained / "dpcal-report")["evaluation"]
    assert noisy["held_out"] == "noisy"
    (answer,) = noisy["ledger"]["entries"]
    assert (answer["count"], answer["sampler"], answer["max_norm"]) == (2, "full", 1.0)
    # Two Gaussian answers are as one with less noise, exactly (Balle and Wang 2018).
    event = dpcal.accountants.events.GaussianDpEvent(answer["noise_multiplier"] / 2**0.5)
    assert dpcal.accountants.epsilon(event, delta=1e-6) == pytest.approx(1.0, abs=1e-4)
    true = cli.json(*asked, "--held-out unprotected")["evaluation"]
    assert not true["covered_by_the_claim"]
    # About 600 records; another split and run, so that five standard errors are allowed.
    error = noisy["standard_error"] + true["standard_error"]
    assert abs(noisy["accuracy"] - true["accuracy"]) < 5 * error
    assert true["majority_baseline"] < 0.65 < 0.75 < true["accuracy"]
    assert true["auc"] > 0.85


@pytest.mark.usefixtures("without_pictures")
def test_a_model_that_learned_nothing_is_called_so(cli, tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random(2000), rng.choice(["u", "v"], 2000)
    rows = [f"{a:.3f},{b}" for a, b in zip(x, y, strict=True)]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(rows))
    schema = tmp_path / "s.toml"
    schema.write_text("[columns.a]\ntype='number'\nrange=[0, 5]\n[columns.b]\ntype='number'")
    words = "--target b --set steps=5 --optimizer noisy_gd --epsilon 21 --delta 0.01 --schema"
    asked = ["train", tmp_path / "t.csv", words, schema, "-o", tmp_path / "report"]
    status, out, err = cli.run(*asked, "--json")
    assert status == 0
    (sentence,) = json.loads(out)["evaluation"]["warnings"]
    assert "may not separate the classes" in sentence
    for part in (sentence, "delta = 0.01 exceeds 1/n", "above 20"):
        assert part in err


@pytest.mark.slow
def test_weights_of_classes_are_learned_from_at_the_same_price():
    x = np.random.default_rng(0).uniform(-4, 4, 1000)
    target = {"type": "class", "classes": ["no", "yes"]}
    columns = {"x": {"type": "number", "range": [-4, 4]}, "y": target}
    heavy = columns | {"y": target | {"weights": [1, 5]}}
    table = {"x": x, "y": np.where(x > 2, "yes", "no")}
    options = {"epsilon": 8.0, "delta": 1e-6, "held_out": "none", "seed": 3}
    none, heavier = (
        dpcal.train(table, {"columns": each}, target="y", **options) for each in (columns, heavy)
    )
    # The argument is the schema's weights, in whatever order, and has no more to say.
    weighted = {"class_weights": {"yes": 5, "no": 1}}
    told = dpcal.train(table, {"columns": columns}, target="y", **weighted, **options)
    assert told.result.w.tolist() == heavier.result.w.tolist() != none.result.w.tolist()
    assert told.document["training"] == heavier.document["training"]
    for found, weights in ((none, None), (heavier, {"no": 1, "yes": 5})):
        assert found.document["training"].get("class_weights") == weights
        query = found.result.plan.queries[0]
        assert query.noise_multiplier == none.result.plan.queries[0].noise_multiplier


@pytest.mark.usefixtures("without_pictures")
def test_predictions_of_numbers_are_in_the_unit_of_the_target(cli, tmp_path):
    x = np.random.default_rng(0).uniform(-5, 5, 4000)
    path, folder = tmp_path / "t.csv", tmp_path / "report"
    path.write_text("\n".join(["x,y", *(f"{a:.4f},{250 + 30 * a:.3f}" for a in x)]))
    (tmp_path / "s.toml").write_text(
        'target = "y"\n[columns.x]\ntype = "number"\nrange = [-5, 5]\n'
        '[columns.y]\ntype = "number"\nrange = [0, 500]\n'
    )
    words = "--loss squared --epsilon 8 --delta 1e-6 --schema"
    told = cli.json("train", path, words, tmp_path / "s.toml", "-o", folder)["evaluation"]
    assert told["held_out"] == "noisy"
    assert told["baseline"] == pytest.approx(30 * x.std(), rel=0.1)
    assert told["root_mean_squared_error"] < told["baseline"] / 3
    assert not (folder / "accuracy.svg").exists()
    model = dpcal.load_model(folder)
    assert model.schema.column("x").range == (-5.0, 5.0)
    assert model.predict({"x": [-4.0, 4.0]}) == pytest.approx([130, 370], abs=30)
    with pytest.raises(ValueError, match="has no classes"):
        model.predict_proba({"x": [1.0]})
    lines = cli("predict", folder, path).splitlines()
    assert (lines[0], len(lines)) == ("prediction", 4001)


def test_what_is_no_model_and_a_table_that_does_not_fit_one(cli, trained, tmp_path):
    path, model = tmp_path / "model.json", trained / "dpcal-report" / "model.json"
    for old, new, sentence in (
        ("{", "no JSON", "model must be a model file"),
        ("dpcal-model", "other", "its format must be"),
        ('"intercept"', '"sect"', "lacks 'intercept'"),
        ('"blood=A"', '"blood=C"', "lacks 'blood=A'"),
    ):
        path.write_text(model.read_text().replace(old, new))
        with pytest.raises(ValueError, match=sentence):
            dpcal.load_model(path)
    for text, said in (
        ("age,blood,smoker\n3,A,no\n", "must have a column 'pressure'"),
        ("age,pressure,blood,smoker\n3, 1 ,A,no\nx,1,A,no\n", "'age' must be a finite number"),
    ):
        path.write_text(text)
        assert said in cli.refused("predict", model, path)
