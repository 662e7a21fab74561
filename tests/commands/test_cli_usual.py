"""What users of other commands try is understood, and what is wrong is one sentence."""

import pytest

TARGET = "--target y --epsilon 1 --delta 1e-6"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_and_the_version_have_other_names(cli):
    assert "usage: dpcal" in cli("help")
    assert "usage: dpcal epsilon" in cli("help epsilon")
    assert cli("-V").startswith("dpcal 0")


def test_the_first_commands_of_the_readme_run_in_an_empty_folder(cli, here):
    """With the table that is shipped, whose majority class is right about 0.53 of the patients."""
    cli("schema --example")
    assert "patients.csv" in cli.refused("schema --example")
    cli("schema patients.csv -o schema.toml")
    told = cli.json(
        "train patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6"
    )
    assert told["evaluation"]["accuracy"] > 0.75
    assert cli("verify dpcal-report")


def test_a_draft_says_that_it_is_not_private_and_asks_for_the_target(cli, here):
    (here / "p.csv").write_text("age,size\n" + "41,1.5\n55,2.5\n7,3\n" * 20)
    told = cli("schema p.csv -o s.toml")
    assert "to be replaced by what is known without them: range of 'age'" in told
    assert "which column is predicted?" in told
    assert "is not private" in (here / "s.toml").read_text().splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2])
def test_a_table_of_a_row_or_two_is_drafted_trained_and_predicted(cli, here, rows):
    (here / "few.csv").write_text("age,y\n" + "41,no\n" * rows)
    columns = '[columns.age]\ntype = "number"\nrange = [0, 99]\n[columns.y]\ntype = "class"\n'
    (here / "s.toml").write_text(columns + 'classes = ["no", "yes"]\n')
    assert "classes = two texts" in cli("schema few.csv --target y")
    cli("train few.csv", TARGET, "--schema s.toml --test-fraction 0")
    assert cli("predict dpcal-report/model.json few.csv").count("\n") == rows + 1
