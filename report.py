"""What does a finished run claim? A folder that says so, written whole or not at all.

``report.json`` holds the privacy statement, the plans, the ledgers, and epsilon recomputed from
the ledgers; :func:`verify` recomputes it again from the file alone.

>>> import tempfile
>>> parent = Path(tempfile.mkdtemp())
>>> with replacing(parent / "report") as folder:
...     _ = (folder / "report.json").write_text('{"format": "dpcal-report"}')
>>> [path.name for path in parent.iterdir()], (parent / "report" / "report.json").exists()
(['report'], True)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import platform
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate import Plan, Query
    from dpcal.optim import Ledger, Result

__all__ = [
    "FORMAT",
    "check_replaceable",
    "composed_epsilon",
    "fingerprint",
    "privacy_statement",
    "released",
    "replace_file",
    "replacing",
    "software",
    "verify",
]

FORMAT = "dpcal-report"
PACKAGES = ("dpcal", "numpy", "scipy", "dp-accounting", "prv-accountant", "scikit-learn")


# -- files


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = _beside(path)
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """Return an unused name in the same folder, hence on the same file system."""
    return path.absolute().with_name(f"{path.name}.{secrets.token_hex(4)}")


def check_replaceable(folder: Path) -> None:
    """Raise ``ValueError`` unless ``folder`` is absent, empty or a report.

    A report is a folder whose ``report.json`` says that it is one.
    """
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise ValueError(f"output must be in an existing folder, got {str(folder)!r}.")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        document = json.loads((folder / "report.json").read_text())
        known = document["format"] == FORMAT
    except (OSError, ValueError, TypeError, KeyError):
        known = False
    if not known:
        raise ValueError(
            f"output must be a new folder or an earlier report, but {str(folder)!r} holds "
            "something else; nothing was changed."
        )


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``folder`` when the block ends without an error.

    Raises
    ------
    ValueError
        If ``folder`` exists and is neither empty nor a report.
    """
    check_replaceable(folder)
    temporary = _beside(folder)
    temporary.mkdir()
    try:
        yield temporary
        _swap(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap(new: Path, folder: Path) -> None:
    """Put ``new`` in the place of ``folder``, and the old one back if that fails."""
    if not folder.exists():
        new.rename(folder)
        return
    old = _beside(folder)
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old)


# -- what a report says


def software() -> dict[str, str]:
    """Return the versions of Python and of the packages that the numbers came from."""
    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def fingerprint(arrays: Iterable[NDArray[Any]], *, key: bytes | None = None) -> dict[str, str]:
    """Return a SHA-256 fingerprint of arrays: their shapes, types and bytes, in order.

    Parameters
    ----------
    arrays
        Numbers or strings.
    key
        A secret that makes the fingerprint an HMAC. A plain hash of private records is not private:
        whoever knows all records but one can test guesses of that one against it.
    """
    digest = hashlib.sha256() if key is None else hmac.new(key, digestmod=hashlib.sha256)
    for array in arrays:
        head = json.dumps({"shape": array.shape, "dtype": array.dtype.str})
        digest.update(head.encode())
        digest.update(array.tobytes())
    name = "sha256" if key is None else "hmac-sha256"
    return {"algorithm": name, "value": digest.hexdigest()}


def privacy_statement(result: Result, *, outside: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a run's claim covers, and what it does not.

    Parameters
    ----------
    result
        A run.
    outside
        Sentences on what else the claim leaves out.
    """
    return {
        "unit": "one training record (one row of the table)",
        "neighboring_relation": result.plan.neighboring_relation,
        "mechanism": _mechanism(result.plan),
        "covered": "the released parameters and every iterate of the run",
        "not_covered": [
            "The number of training records, the columns and the classes are treated as public.",
            "A seed that others know voids the claim: the noise can then be subtracted.",
            "Noise comes from numpy's generators, which are not cryptographic, and is Gaussian in "
            "floating point, not in real numbers: attacks on either are outside the claim.",
            *outside,
        ],
    }


def _mechanism(plan: Plan) -> str:
    """Say what is released, in words."""
    if plan.optimizer == "dpsgd":
        query = plan.query("gradient")
        return (
            "DP-SGD (Abadi et al. 2016, Algorithm 1): each step samples every training record "
            f"independently with probability {query.sampling_probability!r}, clips each sampled "
            f"record's gradient to L2 norm {query.max_norm!r}, and adds Gaussian noise of standard "
            "deviation noise_multiplier * max_norm to the sum. All iterates may be published."
        )
    parts = [f"{plan.optimizer} releases noisy sums, and iterates that are functions of them."]
    parts += [_answer(query) for query in plan.queries]
    budget = plan.queries[0].budget
    if budget is not None:
        parts.append(
            "Noise multipliers are chosen from earlier answers; all answers together spend no more "
            f"than one with noise multiplier {budget!r}, and are charged as that."
        )
    return " ".join(parts)


def _answer(query: Query) -> str:
    """Say what one query releases, in words."""
    records = query.sampling.sentence
    if query.composition == "disjoint":
        records += " of a part that shares none with others"
    bound = f"{query.max_norm!r}" + (" per unit of distance" if query.proportional else "")
    if query.cap is not None:
        bound += f", and {query.cap!r} at most"
    least = "at least " if query.budget is not None else ""
    noise = f"Gaussian noise of {least}{query.noise_multiplier!r} times that bound"
    if query.correlation is not None:
        noise = (
            f"row t of C^-1 z, with C the matrix of strategy {query.correlation.strategy.kind!r} "
            f"and z {noise},"
        )
    clipped, result = query.kind, "sum"
    if query.kind == "one pass":
        clipped, result = "step in a pass", "mean iterate"
    return (
        f"Query {query.name!r}, at most {query.count} times: over {records}, one record's "
        f"{clipped} is clipped to L2 norm {bound}, and {noise} is added to the {result}."
    )


def released(result: Result) -> dict[str, Any]:
    """Return a run's plan, its ledger, and epsilon recomputed from the ledger."""
    delta = result.plan.delta
    return {
        "plan": json.loads(result.plan.to_json()),
        "ledger": json.loads(result.ledger.to_json()),
        "delta": delta,
        "epsilon": result.epsilon(delta).to_dict(),
        "complete": result.complete,
        "message": result.message,
    }


def composed_epsilon(runs: Iterable[Ledger | Result], delta: float) -> dict[str, Any]:
    """Return the epsilon of releasing every run about the same records.

    A result that ended early costs its whole plan; its ledger alone would not say so.
    """
    from dpcal.optim import Ledger

    runs = list(runs)
    ledgers = [run if isinstance(run, Ledger) else run.ledger for run in runs]
    relations = {ledger.neighboring_relation for ledger in ledgers}
    if len(relations) != 1:
        raise ValueError(f"runs must share one neighboring relation, got {sorted(relations)}.")
    return _composed([run.event for run in runs], relations.pop(), delta)


def _composed(parts: list[DpEvent], relation: str, delta: float) -> dict[str, Any]:
    from dpcal.accountants import epsilon, events

    price = epsilon(events.ComposedDpEvent(parts), delta=delta, neighboring_relation=relation)
    return {"runs": len(parts), "delta": delta, "epsilon": price.to_dict()}


# -- reading it back

# What a price may differ by between two machines, relatively.
_ROUNDING = 1e-6


def verify(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Recompute the claims of a ``report.json`` from the plans and ledgers in it.

    A run costs its whole plan: it asked all of it, or it stopped on account of what it had put out.

    Parameters
    ----------
    document
        The parsed file.

    Returns
    -------
    list of dict
        One row a claim: ``claim``, ``delta``, ``claimed`` and ``recomputed`` (upper bounds of
        epsilon), ``label`` (how sure the price is, where noise was correlated) and ``holds``, which
        says that the claim is not below what is proved, but for rounding, and no ledger is outside
        its plan.

    Raises
    ------
    ValueError
        If the document is not a report.
    """
    from dpcal.accountants import epsilon

    try:
        if document["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {document['format']!r}.")
        rows, parts, relations, kept = [], [], set(), True
        for run in document["runs"]:
            event, relation, agrees = _read(run)
            proved = epsilon(event, delta=run["delta"], neighboring_relation=relation).to_dict()
            row = _checked(f"target epsilon {run['plan']['epsilon']:g}", run, proved)
            rows.append({**row, "holds": row["holds"] and agrees})
            parts.append(event)
            relations.add(relation)
            kept = kept and agrees
        everything = document["everything"]
        if len(relations) != 1:
            raise ValueError(f"runs must share one neighboring relation, got {sorted(relations)}.")
        proved = _composed(parts, relations.pop(), everything["delta"])["epsilon"]
        row = _checked("all runs together", everything, proved)
        return [*rows, {**row, "holds": row["holds"] and kept}]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"document must be a report in JSON, lacks or misuses {error}.") from error


def _read(run: Mapping[str, Any]) -> tuple[DpEvent, str, bool]:
    """Return what a run costs, its relation, and whether its ledger is within its plan."""
    from dpcal.calibrate import Plan
    from dpcal.errors import LedgerMismatch
    from dpcal.optim import Ledger
    from dpcal.optim.result import check_ledger

    plan = Plan.from_json(json.dumps(run["plan"]))
    ledger = Ledger.from_json(json.dumps(run["ledger"]))
    released = ledger.event
    try:
        check_ledger(ledger, plan, exact=False)
    except LedgerMismatch:
        return released, ledger.neighboring_relation, False
    return plan.event, plan.neighboring_relation, True


def _checked(name: str, claim: Mapping[str, Any], proved: Mapping[str, Any]) -> dict[str, Any]:
    """Compare upper bounds: that intervals meet would only say that the claim may be true."""
    claimed = claim["epsilon"]
    holds = claimed["upper"] >= proved["upper"] * (1 - _ROUNDING)
    same = all(claimed.get(each) == proved.get(each) for each in ("neighboring_relation", "label"))
    return {
        "claim": name,
        "delta": claim["delta"],
        "claimed": claimed["upper"],
        "recomputed": proved["upper"],
        "label": proved.get("label"),
        "holds": bool(holds and same),
    }
