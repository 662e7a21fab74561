"""Tables of patients, plain and as a hospital exports them, their schema, and keys that sign."""

import numpy as np
from _tree import DATA
from cryptography.hazmat.primitives import serialization as pem

SCHEMA = (DATA / "patients.toml").read_text(encoding="utf-8")


def patients(n=1500, seed=3):
    """Return the columns of n patients, who are sick where age and risk are large together."""
    rng = np.random.default_rng(seed)
    age, risk = rng.integers(18, 95, n), rng.normal(0, 1, n).clip(-4, 4).round(2)
    clinic = rng.choice(["north", "south", "west"], n, p=[0.4, 0.3, 0.3])
    sick = np.where(age / 20 + risk > 3, "yes", "no")
    return {"age": age, "risk": risk, "clinic": clinic, "sick": sick}


def as_csv(table):
    """Return the text of a table."""
    rows = (",".join(map(str, row)) for row in zip(*table.values(), strict=True))
    return "\n".join([",".join(table), *rows]) + "\n"


def write_patients(path, n=3000):
    """Write n patients with a byte-order mark, semicolons, text and gaps, and return the path.

    The best rule predicts who is sick with an accuracy of about 0.87; fewer than 0.6 are in the
    larger class.
    """
    rng = np.random.default_rng(1)
    age, pressure = rng.integers(18, 95, n), rng.normal(125, 20, n).round(1)
    blood, smoker = rng.choice(["A", "B", "AB", "0"], n), rng.choice(["yes", "no"], n, p=[0.3, 0.7])
    risk = (age - 55) / 15 + (pressure - 125) / 25 + 1.2 * (smoker == "yes") - 0.3
    sick = np.where(risk + rng.logistic(0, 0.6, n) > 0.4, "yes", "no")
    lines = ["age;pressure;blood;smoker;note;sick"]
    for i in range(n):
        value = "" if i % 20 == 0 else f"{pressure[i]}"
        smokes = "" if i % 33 == 0 else smoker[i]
        lines.append(f'{age[i]};{value};{blood[i]};{smokes};"ward {i}; Köln";{sick[i]}')
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    return path


def write_keys(folder, key, *, password=None):
    """Write a private key, which nobody else may read, and its public part."""
    how = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, password or pem.NoEncryption())
    (folder / "own.pem").touch(mode=0o600)
    (folder / "own.pem").write_bytes(key.private_bytes(*how))
    public = key.public_key().public_bytes(how[0], pem.PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
