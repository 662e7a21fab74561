"""A signature of a report binds every file of its folder to a key."""

import shutil
import subprocess
import tomllib

import pytest
from _patients import write_keys
from _tree import DATA
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

from dpcal import calibrate, report
from dpcal.optim import Squared, dpsgd


@pytest.fixture(scope="module")
def made(cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    X = [[1.0], [2.0]] * 50
    plan = calibrate.dpsgd(n=100, batch_size=50, steps=2, epsilon=1.0, delta=1e-5)
    report.save(folder / "report", dpsgd(Squared(X, [0.0, 1.0] * 50), plan, seed=1))
    (folder / "report" / "model.json").write_text('{"weights": [1.5]}')
    other = shutil.copytree(folder / "report", folder / "other")
    (other / "model.json").write_text("{}")
    for name in ("sealed", "rsa", "new", "."):
        key = generate_private_key(65537, 2048) if name == "rsa" else Ed25519PrivateKey.generate()
        password = BestAvailableEncryption(b"word") if name == "sealed" else None
        (folder / name).mkdir(exist_ok=True)
        write_keys(folder / name, key, password=password)
    for name in ("report", "other"):
        cli("verify", folder / name, "--sign", folder / "own.pem")
    return folder


@pytest.fixture
def signed(made, tmp_path, monkeypatch):
    """Stand in a folder with a signed report and its keys."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "signed"))
    return tmp_path / "signed"


CHECK = "verify report --key public.pem"
CHANGES = tomllib.loads((DATA / "signatures.toml").read_text(encoding="utf-8"))["changes"]


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


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: row["change"])
def test_what_fails_is_named_and_no_signature_is_written(cli, signed, row):
    subprocess.run(["sh", "-c", row["change"]], check=True)
    before = {path.name: path.read_bytes() for path in signed.glob("*.sig")}
    check = row.get("words", CHECK)
    assert row["said"] in (cli.refused(check) if "refused" in row else cli(check, status=1))
    assert {path.name: path.read_bytes() for path in signed.glob("*.sig")} == before
