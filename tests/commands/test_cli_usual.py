"""What users of other commands try is understood, and what is wrong is one sentence."""

import json
import subprocess
import sys

import pytest

from dpcal.cli import main

SAMPLED = ["--sampling-probability", "0.01", "--steps", "100", "--noise-multiplier", "1"]
TARGET = ["--target", "y", "--delta", "1e-6"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,y\n" + "1,no\n2,yes\n" * 50)
    (tmp_path / "empty.json").write_text("[]")


def said(capsys, *words):
    assert main(list(words)) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("words", [["help"], ["help", "epsilon"]])
def test_help_is_a_command_too(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert "usage: dpcal" in capsys.readouterr().out


def test_the_version_has_a_short_name(capsys):
    assert main(["-V"]) == 0
    assert capsys.readouterr().out.startswith("dpcal 0")


@pytest.mark.parametrize("delta", ["-1e-5", "-.1", "-3"])
def test_a_negative_number_is_a_value_and_not_an_option(delta, capsys):
    assert "delta must be" in said(capsys, "epsilon", *SAMPLED, "--delta", delta)


def test_an_epsilon_of_zero_trains_nothing(capsys, tmp_path):
    words = ["train", "t.csv", *TARGET, "--epsilon", "0"]
    assert "epsilon must be a finite number > 0, got 0.0" in said(capsys, *words)
    assert not (tmp_path / "dpcal-report").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verify", "empty.json"], "must be a report in JSON, an object, got a list"),
        (["predict", "empty.json", "t.csv"], "must be a model file in JSON: it is no object, but"),
        (["audit", "foo"], "must be one of 'kl_condition', 'spiderboost'"),
        (["train", "t.csv", *TARGET, "--epsilon", "1", "-o", "/proc/x"], "can be written to"),
    ],
)
def test_wrong_input_is_one_sentence(words, told, capsys):
    sentence = said(capsys, *words)
    assert told in sentence
    assert sentence.count("\n") == 1
    assert not sentence.rstrip().endswith("?.")


def test_a_word_that_is_nearly_right_ends_in_a_question(capsys):
    assert said(capsys, "audit", "kl_conditon").endswith("did you mean 'kl_condition'?\n")


def test_errors_are_json_where_answers_are(capsys):
    told = json.loads(said(capsys, "epsilon", *SAMPLED, "--delta", "7", "--json"))
    assert told["status"] == 2
    assert "delta" in told["error"]


def test_a_table_that_needs_a_schema_is_told_what_drafts_one(tmp_path, capsys):
    table = tmp_path / "people.csv"
    table.write_text("age,town,sick\n40,Ulm,no\n60,Bonn,yes\n" * 20)
    asked = ["--target", "sick", "--epsilon", "1", "--delta", "1e-3", "-o", str(tmp_path / "out")]
    assert main(["train", str(table), *asked]) == 2
    said = capsys.readouterr().err
    assert f"'dpcal schema {table} -o schema.toml' drafts one" in said
    assert "Bonn" not in said


def test_row_numbers_are_no_feature_without_a_schema(capsys, tmp_path):
    (tmp_path / "my table.csv").write_text(",age,y\n" + "0,41,no\n1,55,yes\n" * 20)
    sentence = said(capsys, "train", "my table.csv", *TARGET, "--epsilon", "1")
    assert "got a column named ''" in sentence
    assert "dpcal schema 'my table.csv' -o schema.toml" in sentence


def test_a_draft_says_that_it_is_not_private_and_asks_for_the_target(capsys, tmp_path):
    (tmp_path / "p.csv").write_text("age,size\n" + "41,1.5\n55,2.5\n7,3\n" * 20)
    assert main(["schema", "p.csv", "-o", "s.toml"]) == 0
    told = capsys.readouterr().out
    assert "to be replaced by what is known without them: range of 'age'" in told
    assert "which column is predicted?" in told
    assert "is not private" in (tmp_path / "s.toml").read_text().splitlines()[0]


@pytest.mark.parametrize("rows", [1, 2])
def test_a_table_of_a_row_or_two_is_drafted_trained_and_predicted(rows, capsys, tmp_path):
    (tmp_path / "few.csv").write_text("age,y\n" + "41,no\n" * rows)
    assert main(["schema", "few.csv", "--target", "y"]) == 0
    assert "classes = two texts" in capsys.readouterr().out
    asked = ["train", "few.csv", "--target", "y", "--classes", "no,yes", "--bounds", "0:99"]
    assert main([*asked, "--test-fraction", "0", "--epsilon", "1", "--delta", "1e-6"]) == 0
    capsys.readouterr()
    assert main(["predict", "dpcal-report/model.json", "few.csv"]) == 0
    assert capsys.readouterr().out.count("\n") == rows + 1


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dpcal ca", {"calibrate"}),
        ("dpcal train --held", {"--held-out"}),
        ("dpcal train --held-out n", {"noisy", "none"}),
        ("dpcal predict t", {"t.csv"}),
    ],
)
def test_a_shell_completes_commands_options_choices_and_files(line, offered, capsys, tmp_path):
    pytest.importorskip("shtab")
    assert main(["--print-completion", "bash"]) == 0
    (tmp_path / "dpcal.bash").write_text(capsys.readouterr().out)
    ask = f"""source dpcal.bash; COMP_LINE='{line}'; COMP_POINT={len(line)}
    COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}
    $(complete -p dpcal | sed 's/.*-F \\([^ ]*\\).*/\\1/'); printf '%s\\n' "${{COMPREPLY[@]}}" """
    told = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert {each.strip() for each in told.stdout.splitlines()} == offered


def test_completion_without_its_package_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "extra 'completion'" in said(capsys, "--print-completion", "zsh")
