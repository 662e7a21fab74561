"""Signature of a report. A detached Ed25519 signature covers all files of the report.

>>> import tempfile
>>> from cryptography.hazmat.primitives import serialization as pem
>>> parent = Path(tempfile.mkdtemp())
>>> (parent / "report").mkdir()
>>> _ = (parent / "report" / "report.json").write_text("{}")
>>> key = Ed25519PrivateKey.generate()
>>> (parent / "own.pem").touch(mode=0o600)
>>> _ = (parent / "own.pem").write_bytes(
...     key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()))
>>> _ = (parent / "public.pem").write_bytes(
...     key.public_key().public_bytes(
...         pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo))
>>> sign(parent / "report", parent / "own.pem").name
'report.sig'
>>> signature_problems(parent / "report", parent / "public.pem")
[]
>>> _ = (parent / "report" / "report.json").write_text("[]")
>>> signature_problems(parent / "report", parent / "public.pem")
["'report.json' was changed"]
"""

from __future__ import annotations

import json
import os
import stat
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_pem_public_key,
)

from dpcal._internal.files import document_of, text_of
from dpcal.report.files import digest_of, replace_file

FORMAT = "dpcal-signature"


def sign(folder: Path, key: Path) -> Path:
    """Sign all files of a folder.

    Parameters
    ----------
    folder
        Folder of a report.
    key
        File of a private Ed25519 key in PEM, without a password, readable by its owner only.

    Returns
    -------
    pathlib.Path
        File of the signature, ``FOLDER.sig`` next to the folder. It holds the SHA-256 of each file
        and the signature of all of them; an earlier one is replaced.

    Raises
    ------
    ValueError
        If the key or a file of the folder is not as it must be.
    """
    private = _key(key, private=True)
    files = _sums(folder)
    document = {"format": FORMAT, "files": files, "signature": private.sign(_signed(files)).hex()}
    path = _beside(folder)
    replace_file(path, (json.dumps(document, indent=2) + "\n").encode())
    return path


def signature_problems(folder: Path, key: Path) -> list[str]:
    """Return problems of a folder's signature, in sentences; none if the signature is valid.

    Parameters
    ----------
    folder
        Folder of a report that :func:`sign` has signed.
    key
        File of the public Ed25519 key in PEM.

    Raises
    ------
    ValueError
        If the key, the signature's file or a file of the folder cannot be read.
    """
    public = _key(key, private=False)
    text = text_of(_beside(folder), "signature must be a readable file next to the report")
    found = _sums(folder)
    try:
        document = document_of(text)
        files, signature = document["files"], bytes.fromhex(document["signature"])
        if set(document) != {"format", "files", "signature"} or document["format"] != FORMAT:
            raise ValueError
        public.verify(signature, _signed(files))
    except InvalidSignature:
        return [f"the signature is not of these sums by the key in {str(key)!r}"]
    except (ValueError, TypeError, KeyError):
        return [f"the signature's file {str(_beside(folder))!r} is damaged"]
    changed = {name for name, _ in files.items() ^ found.items()}
    words = dict.fromkeys(changed, "changed") | dict.fromkeys(changed - files.keys(), "added")
    words |= dict.fromkeys(changed - found.keys(), "removed")
    return [f"{name!r} was {words[name]}" for name in sorted(words)]


def _beside(folder: Path) -> Path:
    return folder.absolute().with_name(f"{folder.absolute().name}.sig")


def _signed(files: dict[str, str]) -> bytes:
    """Return the bytes that are signed: the sums by name, in one way of writing."""
    return f"{FORMAT} 1\n{json.dumps(files, sort_keys=True)}".encode()


def _sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by its path in the folder."""
    sums = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise ValueError(
                f"report must consist of regular files to be signed, got {str(path)!r}."
            )
        sums[path.relative_to(folder).as_posix()] = digest_of(path)
    return sums


def _key(path: Path, *, private: bool) -> Any:
    """Return the Ed25519 key in a file."""
    kind = "private" if private else "public"
    load: Any = partial(load_pem_private_key, password=None) if private else load_pem_public_key
    must = f"key must be a file with a {kind} Ed25519 key in PEM"
    text = text_of(path, must)
    mode = os.stat(path).st_mode & 0o777
    if private and mode & 0o077:
        raise ValueError(
            f"A private key must be readable by its owner only, got {str(path)!r} of mode "
            f"{mode:03o}: chmod 600 it."
        )
    try:
        key = load(text.encode())
    except TypeError:
        reason = "it has a password, which openssl pkey -in FILE -out PLAIN removes"
    except (ValueError, UnsupportedAlgorithm):
        reason = "it is something else"
    else:
        if isinstance(key, Ed25519PrivateKey if private else Ed25519PublicKey):
            return key
        reason = f"it is a key of another kind ({type(key).__name__})"
    raise ValueError(f"{must}, got {str(path)!r}: {reason}.")
