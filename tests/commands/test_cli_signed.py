"""A signature of a report binds every file of its folder to a key."""

import json
import shutil

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

import dpcal
from dpcal import calibrate, report
from dpcal.optim import Squared, dpsgd

PEM = pem.Encoding.PEM


def write_keys(folder, key, *, password=None):
    private = key.private_bytes(PEM, pem.PrivateFormat.PKCS8, password or pem.NoEncryption())
    public = key.public_key().public_bytes(PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    (folder / "own.pem").touch(mode=0o600)
    (folder / "own.pem").write_bytes(private)
    (folder / "public.pem").write_bytes(public)


@pytest.fixture(scope="module")
def made(cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    X = [[1.0], [2.0]] * 50
    plan = calibrate.dpsgd(n=100, batch_size=50, steps=2, epsilon=1.0, delta=1e-5)
    report.save(folder / "report", dpsgd(Squared(X, [0.0, 1.0] * 50), plan, seed=1))
    (folder / "report" / "model.json").write_text('{"weights": [1.5]}')
    write_keys(folder, Ed25519PrivateKey.generate())
    cli("verify", folder / "report", "--sign", folder / "own.pem")
    return folder


@pytest.fixture
def signed(made, tmp_path, monkeypatch):
    """Stand in a folder with a signed report and its keys."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "signed"))
    return tmp_path / "signed"


CHECK = "verify report --key public.pem"


def test_verification_says_what_it_binds(cli, signed):
    told = " ".join(cli(CHECK).split())
    assert "holds" in told.split("signature of")[1]
    for word in ("scores", "words", "dates", "silos", "forged as a whole"):
        assert word in told.split("Not bound:")[1]


def test_a_byte_of_any_file_is_bound(signed):
    public = signed / "public.pem"
    assert report.signature_problems(signed / "report", public) == []
    for path in (*(signed / "report").iterdir(), signed / "report.sig"):
        content = path.read_bytes()
        for place in {0, len(content) // 3, len(content) // 2, len(content) - 2}:
            other = bytearray(content)
            other[place] ^= 1
            path.write_bytes(other)
            (problem,) = report.signature_problems(signed / "report", public)
            assert path.name == "report.sig" or problem == f"{path.name!r} was changed"
        path.write_bytes(content)


def of_another_report(signed):
    other = shutil.copytree(signed / "report", signed / "other")
    (other / "model.json").write_text("{}")
    report.sign(other, signed / "own.pem")
    shutil.copy(signed / "other.sig", signed / "report.sig")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda signed: (signed / "report/more.txt").touch(), "'more.txt' was added"),
        (lambda signed: (signed / "report/model.json").unlink(), "'model.json' was removed"),
        (
            lambda signed: (signed / "report/model.json").write_text("{}"),
            "'model.json' was changed",
        ),
        (lambda signed: write_keys(signed, Ed25519PrivateKey.generate()), "not of these sums"),
        (lambda signed: (signed / "report.sig").write_text("[" * 100_000), "damaged"),
        (lambda signed: (signed / "report.sig").write_text("{}"), "damaged"),
        (of_another_report, "'model.json' was changed"),
    ],
)
def test_what_fails_is_named(cli, signed, change, said):
    change(signed)
    assert said in cli(CHECK, status=1)


def sealed(signed):
    write_keys(signed, Ed25519PrivateKey.generate(), password=pem.BestAvailableEncryption(b"word"))


RSA = generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    ("words", "change", "said"),
    [
        ("--sign own.pem", lambda signed: (signed / "own.pem").chmod(0o644), "chmod 600"),
        ("--sign public.pem", lambda signed: (signed / "public.pem").chmod(0o600), "else"),
        ("--sign own.pem", sealed, "has a password"),
        ("--sign own.pem", lambda signed: write_keys(signed, RSA), "another kind"),
        ("--key own.pem", lambda signed: None, "else"),
        ("--key none.pem", lambda signed: None, "No such file"),
        ("--key public.pem", lambda signed: (signed / "report.sig").unlink(), "No such file"),
        ("--key public.pem", lambda signed: write_keys(signed, RSA), "another kind"),
    ],
)
def test_keys_that_are_refused(cli, signed, words, change, said):
    change(signed)
    before = {path.name: path.read_bytes() for path in signed.glob("*.sig")}
    assert said in cli.refused("verify report", words)
    assert {path.name: path.read_bytes() for path in signed.glob("*.sig")} == before


@pytest.mark.slow
def test_a_changed_file_beside_the_report_is_found(cli, tmp_path):
    rng = np.random.default_rng(0)
    table = {"x": rng.uniform(0, 1, 400), "y": rng.choice(["a", "b"], 400)}
    columns = {"x": {"type": "number", "range": [0, 1]}}
    columns["y"] = {"type": "class", "categories": ["a", "b"]}
    found = dpcal.train(table, {"columns": columns}, target="y", epsilon=1.0, delta=1e-6)
    folder = tmp_path / "report"
    found.save(folder)
    told = cli("verify", folder)
    assert "unit: one training record" in told
    assert "relation: replace-special" in told
    assert "files: as report.json says" in told
    (folder / "model.json").write_text((folder / "model.json").read_text() + " ")
    (folder / "statement.html").unlink()
    (problems,) = cli.json("verify", folder, status=1)["files"].values()
    assert problems == ["'model.json' was changed", "'statement.html' is missing"]
    document = json.loads((folder / "report.json").read_text())
    document["files"] = {"../../secret": "0"}
    (folder / "report.json").write_text(json.dumps(document))
    assert "files must be names" in cli("verify", folder, status=1)
