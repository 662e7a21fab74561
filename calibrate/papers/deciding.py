"""Decide many claims: in children with limits of time and memory, and once for the same content.

A child that takes too much of either is ended, and costs its own claim only. A verdict is stored
with its evidence under a hash of all that decides it: the resolved claim, the sources of the
package, and the versions of the libraries. Whoever can write to the store can write verdicts;
:func:`dpcal.calibrate.papers.recheck.recheck` checks the evidence of any of them again.

>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.claims.notation import line
>>> claim = standalone(line("x <= x + 1 where x in [0, 1]"))
>>> [verdict.status for verdict in decided([claim])]
['PROVED']
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import dpcal
from dpcal.calibrate import papers
from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.verdicts import Verdict

SECONDS = 60  # seconds of processor time for one claim in a child; the papers need up to 2
MEGABYTES = 2_000  # memory of a child in addition to its memory at the start
BATCH = 16  # claims of one child; starting a child takes as long as deciding a claim
_SOURCES = ("calibrate", "accountants", "_ext")
_LIBRARIES = ("python-flint", "sympy", "numpy", "scipy", "mpmath")
_OVER = f"it took more than {SECONDS} seconds of processor or {MEGABYTES} MB"

Progress = Callable[[int, int], None]


def decided(
    claims: Sequence[Claim],
    *,
    processes: int = 0,
    store: Store | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Return the verdict of each claim.

    Parameters
    ----------
    claims
        Resolved claims.
    processes
        Number of children; 0 decides in this process, without a limit of memory.
    store
        Verdicts of earlier calls, which is read and written.
    progress
        Called with the number of claims that are decided, and of all.
    """
    keys = [store.key(claim) if store else "" for claim in claims]
    known = store.read(keys) if store else {}
    missing = [k for k, key in enumerate(keys) if key not in known]
    verdicts = {k: known[key] for k, key in enumerate(keys) if key in known}
    forks = processes > 0 and "fork" in multiprocessing.get_all_start_methods()
    here = ((k, papers.prove(claims[k])) for k in missing)
    for k, verdict in _in_children(claims, missing, processes) if forks else here:
        verdicts[k] = verdict
        if progress is not None:
            progress(len(verdicts), len(claims))
    if store:
        store.write({keys[k]: verdicts[k] for k in missing if keys[k]})
    return [verdicts[k] for k in range(len(claims))]


def _in_children(
    claims: Sequence[Claim], indices: Sequence[int], processes: int
) -> Iterator[tuple[int, Verdict]]:
    """Yield verdicts as children find them; a child that ends costs the claim that it decides."""
    fork, prove = multiprocessing.get_context("fork"), papers.prove  # loaded once, before the fork
    waiting, running = list(indices)[::-1], dict[Connection, tuple[Any, list[int]]]()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                batch = [waiting.pop() for _ in range(min(BATCH, len(waiting)))]
                pipe, theirs = fork.Pipe(duplex=False)
                args = (theirs, [claims[k] for k in batch], prove)
                child = fork.Process(target=_work, args=args, daemon=True)
                child.start()
                theirs.close()
                running[pipe] = child, batch
            ready = wait(list(running))
            for pipe in [known for known in running if known in ready]:
                child, batch = running[pipe]
                try:
                    fields, seconds = pipe.recv()
                    verdict = dataclasses.replace(Verdict.from_json(fields), seconds=seconds)
                    yield batch.pop(0), verdict
                except (EOFError, OSError):
                    del running[pipe]
                    child.join()
                    pipe.close()
                    if batch:
                        yield batch.pop(0), Verdict("OPEN", "none", _OVER)
                    waiting += batch[::-1]
    finally:
        for pipe, (child, _) in running.items():
            child.kill()
            child.join()
            pipe.close()


def _work(pipe: Connection, claims: Sequence[Claim], prove: Callable[[Claim], Verdict]) -> None:
    """Decide claims; an allocation or a time beyond the limits ends the child."""
    import resource

    def limit(kind: int, most: int) -> None:
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))

    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit(resource.RLIMIT_AS, pages * resource.getpagesize() + (MEGABYTES << 20))
    for claim in claims:
        limit(resource.RLIMIT_CPU, int(time.process_time()) + SECONDS)
        verdict = prove(claim)
        pipe.send((verdict.to_json(), verdict.seconds))


@contextmanager
def uncollected() -> Iterator[None]:
    """Read many small records without a search for garbage, which takes longer than to read."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@functools.cache
def fingerprint() -> str:
    """Return a hash of the package's sources and of the libraries' versions."""
    root = Path(dpcal.__file__).parent
    files = [*root.glob("*.py")]
    for folder in _SOURCES:
        files += [path for path in (root / folder).rglob("*") if path.suffix in _SUFFIXES]
    digest = hashlib.sha256(sys.version.encode())
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    for path in sorted(files):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


_SUFFIXES = (".py", ".txt", ".so", ".pyd")


def default_store() -> Store:
    """Return the store in the user's cache: ``$XDG_CACHE_HOME``, or else ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Store(Path(base).expanduser() / "dpcal" / "audit.json")


class Store:
    """Verdicts of earlier audits, in a file, under hashes of all that decides them.

    Parameters
    ----------
    path
        A JSON file; a file that cannot be read or written is as good as none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def key(self, claim: Claim) -> str:
        """Return the hash of a claim, or an empty text for one that runs a foreign program."""
        program = claim.parts.get("program")
        told = ""
        if program is not None:
            holds = program.holds
            own = str(getattr(holds, "__module__", "")).startswith("dpcal.")
            if not own or getattr(holds, "__closure__", None):
                return ""
            told = f"{holds.__module__}.{holds.__qualname__} {program.cases!r} {program.complete}"
            claim = dataclasses.replace(claim, parts={})
        same = dataclasses.replace(claim, statement="", source="")
        text = f"{fingerprint()} {same!r} {told}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _documents(self) -> dict[str, Any]:
        try:
            with uncollected():
                found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        same = isinstance(found, dict) and found.get("fingerprint") == fingerprint()
        rows = found.get("verdicts") if same else None
        return rows if isinstance(rows, dict) else {}

    def read(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """Return the known verdicts of these keys."""
        rows, found = self._documents(), {}
        for key in keys:
            with suppress(KeyError, ValueError, TypeError):
                fields, seconds = rows[key]
                found[key] = Verdict(**fields, seconds=float(seconds))
        return found

    def write(self, verdicts: dict[str, Verdict]) -> None:
        """Add verdicts; the file loses verdicts of other sources."""
        if not verdicts:
            return
        rows = self._documents()
        rows.update({key: [v.fields(), v.seconds] for key, v in verdicts.items()})
        text = json.dumps({"fingerprint": fingerprint(), "verdicts": rows})
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=self.path.parent, delete=False
            ) as file:
                file.write(text)
            Path(file.name).replace(self.path)
