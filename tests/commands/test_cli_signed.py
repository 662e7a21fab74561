"""A signature of a report binds every file of its folder to a key."""

import shutil

import pytest
from _patients import write_keys
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


def write(name, text):
    return lambda signed: (signed / name).write_text(text)


def mode(name, bits):
    return lambda signed: (signed / name).chmod(bits)


def keys(make, **options):
    return lambda signed: write_keys(signed, make(), **options)


def rsa():
    return generate_private_key(65537, 2048)


def gone(name):
    return lambda signed: (signed / name).unlink()


NEW, SEALED = Ed25519PrivateKey.generate, BestAvailableEncryption(b"word")
SIGN, KEY = "verify report --sign own.pem", "verify report --key"


@pytest.mark.parametrize(
    ("words", "status", "change", "said"),
    [
        (CHECK, 1, write("report/more.txt", ""), "'more.txt' was added"),
        (CHECK, 1, gone("report/model.json"), "'model.json' was removed"),
        (CHECK, 1, write("report/model.json", "{}"), "'model.json' was changed"),
        (CHECK, 1, keys(NEW), "not of these sums"),
        (CHECK, 1, write("report.sig", "[" * 100_000), "damaged"),
        (CHECK, 1, write("report.sig", "{}"), "damaged"),
        (CHECK, 1, of_another_report, "'model.json' was changed"),
        (CHECK, 2, gone("report.sig"), "No such file"),
        (CHECK, 2, keys(rsa), "another kind"),
        (f"{KEY} own.pem", 2, mode("own.pem", 0o600), "else"),
        (f"{KEY} none.pem", 2, mode("own.pem", 0o600), "No such file"),
        (SIGN, 2, mode("own.pem", 0o644), "chmod 600"),
        (SIGN.replace("own", "public"), 2, mode("public.pem", 0o600), "else"),
        (SIGN, 2, keys(NEW, password=SEALED), "has a password"),
        (SIGN, 2, keys(rsa), "another kind"),
    ],
)
def test_what_fails_is_named_and_no_signature_is_written(cli, signed, words, status, change, said):
    change(signed)
    before = {path.name: path.read_bytes() for path in signed.glob("*.sig")}
    assert said in (cli(words, status=1) if status == 1 else cli.refused(words))
    assert {path.name: path.read_bytes() for path in signed.glob("*.sig")} == before
