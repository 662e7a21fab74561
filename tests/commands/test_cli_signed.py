"""A signature of a report binds every file of its folder to a key."""

import json
import shutil

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import dpcal
from dpcal import calibrate, report
from dpcal.cli import main
from dpcal.optim import Squared, dpsgd


def write_keys(folder, key, *, password=None):
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, password or NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "own.pem").touch(mode=0o600)
    (folder / "own.pem").write_bytes(private)
    (folder / "public.pem").write_bytes(public)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    X = [[1.0], [2.0]] * 50
    plan = calibrate.dpsgd(n=100, batch_size=50, steps=2, epsilon=1.0, delta=1e-5)
    report.save(folder / "report", dpsgd(Squared(X, [0.0, 1.0] * 50), plan, seed=1))
    (folder / "report" / "model.json").write_text('{"weights": [1.5]}')
    write_keys(folder, Ed25519PrivateKey.generate())
    assert main(["verify", str(folder / "report"), "--sign", str(folder / "own.pem")]) == 0
    return folder


@pytest.fixture
def signed(made, tmp_path):
    return shutil.copytree(made, tmp_path / "signed")


def verify(signed, option="--key", key="public.pem"):
    return main(["verify", str(signed / "report"), option, str(signed / key)])


def test_verification_says_what_it_binds(signed, capsys):
    assert verify(signed) == 0
    told = " ".join(capsys.readouterr().out.split())
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda signed: (signed / "report" / "more.txt").touch(), "'more.txt' was added"),
        (lambda signed: (signed / "report" / "model.json").unlink(), "'model.json' was removed"),
        (
            lambda signed: (signed / "report" / "model.json").write_text('{"weights": [2.5]}'),
            "'model.json' was changed",
        ),
        (lambda signed: write_keys(signed, Ed25519PrivateKey.generate()), "not of these sums"),
        (lambda signed: (signed / "report.sig").write_text("[" * 100_000), "damaged"),
        (lambda signed: (signed / "report.sig").write_text("{}"), "damaged"),
    ],
)
def test_what_fails_is_named(signed, capsys, change, said):
    change(signed)
    assert verify(signed) == 1
    assert said in capsys.readouterr().out


def test_a_signature_of_another_report_fails(signed, capsys):
    other = shutil.copytree(signed / "report", signed / "other")
    (other / "model.json").write_text("{}")
    report.sign(other, signed / "own.pem")
    shutil.copy(signed / "other.sig", signed / "report.sig")
    assert verify(signed) == 1
    assert "'model.json' was changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "key", "change", "said"),
    [
        ("--sign", "own.pem", lambda signed: (signed / "own.pem").chmod(0o644), "chmod 600"),
        ("--sign", "public.pem", lambda signed: (signed / "public.pem").chmod(0o600), "else"),
        ("--key", "own.pem", lambda signed: None, "else"),
        ("--key", "none.pem", lambda signed: None, "No such file"),
        ("--key", "public.pem", lambda signed: (signed / "report.sig").unlink(), "No such file"),
        (
            "--sign",
            "own.pem",
            lambda signed: write_keys(
                signed, Ed25519PrivateKey.generate(), password=BestAvailableEncryption(b"word")
            ),
            "has a password",
        ),
        ("--sign", "own.pem", lambda signed: write_keys(signed, RSA), "another kind"),
        ("--key", "public.pem", lambda signed: write_keys(signed, RSA), "another kind"),
    ],
)
def test_keys_that_are_refused(signed, capsys, option, key, change, said):
    before = (signed / "report.sig").read_bytes()
    change(signed)
    assert verify(signed, option, key) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (signed / "report.sig").exists() or (signed / "report.sig").read_bytes() == before


RSA = generate_private_key(65537, 2048)


def test_a_changed_file_beside_the_report_is_found(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = {"x": rng.uniform(0, 1, 400), "y": rng.choice(["a", "b"], 400)}
    columns = {"x": {"type": "number", "range": [0, 1]}}
    columns["y"] = {"type": "class", "categories": ["a", "b"]}
    found = dpcal.train(table, {"columns": columns}, target="y", epsilon=1.0, delta=1e-6)
    folder = tmp_path / "report"
    found.save(folder)
    assert main(["verify", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "unit: one training record" in told
    assert "relation: replace-special" in told
    assert "files: as report.json says" in told
    model = folder / "model.json"
    model.write_text(model.read_text().replace("yes", "no") + " ")
    (folder / "statement.html").unlink()
    assert main(["verify", str(folder), "--json"]) == 1
    (problems,) = json.loads(capsys.readouterr().out)["files"].values()
    assert problems == ["'model.json' was changed", "'statement.html' is missing"]
    document = json.loads((folder / "report.json").read_text())
    document["files"] = {"../../secret": "0"}
    (folder / "report.json").write_text(json.dumps(document))
    assert main(["verify", str(folder)]) == 1
    assert "files must be names" in capsys.readouterr().out
