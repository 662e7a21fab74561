"""A report as files: a folder that is written whole or not at all, and read back.

>>> import tempfile
>>> parent = Path(tempfile.mkdtemp())
>>> with replacing(parent / "report") as folder:
...     _ = (folder / "report.json").write_text('{"format": "dpcal-report"}')
>>> [path.name for path in parent.iterdir()], read(parent / "report")
(['report'], {'format': 'dpcal-report'})
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpcal._internal.files import document
from dpcal.errors import reason_of

FORMAT = "dpcal-report"
# Files of a report, including former versions. All other files in the folder belong to the user.
FILES = frozenset(
    {
        "report.json",
        "model.json",
        "certificate.json",
        "certificate-scores.json",
        "release.csv",
        "sp800-226.html",
        "statement.html",
        "what-an-attacker-can-find.svg",
        "privacy-profile.svg",
        "privacy-profile.png",
        "what-each-column-adds.svg",
        "accuracy.svg",
        "accuracy.png",
        "fingerprint.key",
    }
)


def replace_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file whole or not at all, with a mode that the umask narrows."""
    temporary = _beside(path)
    try:
        temporary.touch(mode=mode, exist_ok=False)
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Return an unused name in the same folder, hence on the same file system."""
    return path.absolute().with_name(f"{path.name}.{secrets.token_hex(4)}")


def check_replaceable(folder: Path, *, force: bool = False) -> None:
    """Raise ``ValueError`` unless ``folder`` is absent or empty, or a report and ``force`` is set.

    A folder is a report if its ``report.json`` has the format of one.
    """
    trial = _beside(folder)
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise ValueError(
            f"output must be in a folder that can be written to, got {str(folder)!r}: "
            f"{reason_of(error)}."
        ) from error
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        known = read(folder)["format"] == FORMAT
    except (ValueError, TypeError, KeyError):
        known = False
    if not known:
        raise ValueError(
            f"output must be a new folder or an earlier report, but {str(folder)!r} holds "
            "something else; nothing was changed."
        )
    if not force:
        raise ValueError(
            f"output must be a new folder, but an earlier report is in {str(folder)!r}; --force "
            "replaces it."
        )


@contextmanager
def replacing(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``folder`` when the block ends without an error.

    Only files of a report are replaced in an earlier report; other files stay.

    Parameters
    ----------
    folder
        Where the report stands.
    force
        Whether an earlier report may be replaced.

    Raises
    ------
    ValueError
        If ``folder`` exists, and is neither empty nor a report that may be replaced.
    """
    check_replaceable(folder, force=force)
    temporary = _beside(folder)
    temporary.mkdir()
    try:
        yield temporary
        _swap(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def bind(folder: Path) -> dict[str, Any]:
    """Write into ``report.json`` the checksums of the report's other files; return the document.

    It has the SHA-256 sum of each file of a report under ``files``, by name.
    """
    held = [folder / name for name in sorted(FILES - {"report.json"})]
    sums = {path.name: digest_of(path) for path in held if path.is_file()}
    whole = {**read(folder), "files": sums}
    text = json.dumps(whole, indent=2, allow_nan=False) + "\n"
    replace_file(folder / "report.json", text.encode())
    return whole


def file_problems(folder: Path, document: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each file with another sum than ``report.json`` holds."""
    sums = document.get("files", {})
    if not isinstance(sums, Mapping) or not FILES.issuperset(sums):
        return ["files must be names of files of a report with their sums"]
    found = []
    for name, told in sums.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name!r} is missing")
        elif digest_of(path) != told:
            found.append(f"{name!r} was changed")
    return found


def digest_of(path: Path) -> str:
    """Return the SHA-256 sum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _swap(new: Path, folder: Path) -> None:
    """Put ``new`` in the place of ``folder``, and the old one back if that fails."""
    if not folder.exists():
        new.rename(folder)
        return
    foreign = [path for path in folder.iterdir() if path.name not in FILES]
    taken = [path.name for path in foreign if (new / path.name).exists()]
    if taken:
        raise ValueError(f"output {str(folder)!r} holds {taken[0]!r}, which is not of a report.")
    old = _beside(folder)
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    for path in foreign:
        (old / path.name).rename(folder / path.name)
    shutil.rmtree(old)


def read(folder: Path) -> Any:
    """Return the parsed ``report.json`` of a report.

    Parameters
    ----------
    folder
        The report's folder, or the file itself.

    Raises
    ------
    ValueError
        If there is none that can be read.
    """
    path = folder / "report.json" if folder.is_dir() else folder
    return document(path, "report must hold a readable report.json")
