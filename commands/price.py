"""``dpcal epsilon``, ``delta``, ``compare`` and ``samplers``: the cost of a run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal._internal import lazy
from dpcal._internal.columns import columns
from dpcal.calibrate.runs import (
    RUN_SAMPLERS,
    SampledRun,
    Sampler,
    compare_samplers,
)
from dpcal.commands._shared import Accountant, drawn, one_or_all
from dpcal.commands._signature import Answer, extends, taken
from dpcal.errors import DisagreementWarning, UnsupportedEvent
from dpcal.report.output import answer, at_most, interval

if TYPE_CHECKING:
    from dpcal.accountants import Epsilon
    from dpcal.calibrate.runs import SamplerRow

_validate = lazy.Module("dpcal._internal.validate")

# Significant digits of an answer known that precisely, and of the ends of a wider interval.
_DIGITS, _FEW_DIGITS = 6, 4


def _how(
    run: SampledRun,
    *,
    accountant: Accountant = "auto",
    cross_check: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the keywords of an accountant.

    Parameters
    ----------
    accountant
        Accountant that computes the bounds.
    cross_check
        Check with a second accountant, and fail with status 2 if the intervals do not meet.
    settings
        Accuracy of other packages: interval and tail_mass of pld, also where pld is the check;
        eps_error and delta_error of prv.
    """
    for name, value in (settings or {}).items():
        _validate.positive(**{name: value})
    how = {"accountant": accountant, "cross_check": cross_check, **(settings or {})}
    return {"neighboring_relation": run.relation, **how}


@extends(SampledRun, _how)
def epsilon(*, delta: Sequence[float], plot: Path | None = None, **run: Any) -> Answer:
    """Bound epsilon of a run at one or more deltas.

    Parameters
    ----------
    delta
        Deltas in (0, 1), one or more; also 0, for pure privacy, where a largest loss is known.
    plot
        Picture file (.png or .svg) of the privacy profile, with a mark at each delta.

    Examples
    --------
    dpcal epsilon --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --delta 1e-6
    dpcal epsilon --n 60000 --batch-size 512 --epochs 100 --noise-multiplier 0.8 --sampler
        without-replacement --delta 1e-5 1e-6
    """
    return _bounds("epsilon", "delta", delta, run, plot)


@extends(SampledRun, _how)
def delta(*, epsilon: Sequence[float], **run: Any) -> Answer:
    """Bound delta of a run at one or more epsilons.

    Parameters
    ----------
    epsilon
        Epsilons >= 0, one or more.

    Examples
    --------
    dpcal delta --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --epsilon 8
    dpcal delta --sampling-probability 1 --steps 1 --noise-multiplier 2 --epsilon 0 1 --json
    """
    return _bounds("delta", "epsilon", epsilon, run)


def _bounds(
    name: str, given: str, values: Sequence[float], run: dict[str, Any], plot: Path | None = None
) -> Answer:
    """Return bounds on epsilon at each delta, or on delta at each epsilon."""
    asked = taken(_how, run)
    told = SampledRun(**run)
    event, how = told.event(), _how(told, **asked)
    found = [(at, getattr(dpcal, name)(event, **{given: at}, **how)) for at in values]
    documents = [{given: at, name: bound.to_dict()} for at, bound in found]
    if name == "delta":
        for document in documents:
            document |= _log_delta(event, document[given], how)
    texts = [answer(name, bound, f"{given} = {at:g}") for at, bound in found]
    if plot is not None:
        marks = [(bound.upper, at) for at, bound in found]
        texts.append(_profile(plot, told, ("characteristic",), marks))
    whole = {"mechanism": told.to_dict(), **one_or_all("answers", documents)}
    return Answer(whole, "\n".join(texts))


def _log_delta(event: Any, epsilon: float, how: dict[str, Any]) -> dict[str, Any]:
    """Return the logarithm of delta, which keeps digits; a bound on a whole run has none."""
    try:
        found = dpcal.accountants.log_delta(event, epsilon=epsilon, **how)
    except UnsupportedEvent:
        return {}
    return {"log_delta": found.to_dict()}


@extends(SampledRun)
def compare(
    *,
    delta: Sequence[float],
    accountants: Sequence[Accountant] = ("characteristic", "renyi", "pld", "prv"),
    plot: Path | None = None,
    **run: Any,
) -> Answer:
    """Compare accountants on epsilon of a run.

    The exit status is 1 if two intervals contradict each other.

    Parameters
    ----------
    delta
        Deltas in (0, 1), one or more.
    accountants
        Accountants, separated by commas (default: characteristic,renyi,pld,prv).
    plot
        Picture file (.png or .svg) of the privacy profile by each accountant.

    Examples
    --------
    dpcal compare --sampling-probability 512/60000 --noise-multiplier 1 --steps 10000 --delta 1e-6
        --accountants characteristic,renyi
    dpcal compare --n 60000 --batch-size 512 --epochs 10 --noise-multiplier 1 --delta 1e-5 1e-6
        --accountants characteristic,renyi
    """
    told = SampledRun(**run)
    if not accountants:
        raise ValueError("accountants must be one or more, got none.")
    how: dict[str, Any] = {"accountants": accountants, "neighboring_relation": told.relation}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisagreementWarning)
        tables = [dpcal.compare(told.event(), delta=at, **how) for at in delta]
    texts = ["\n\n".join(map(str, tables))]
    if plot is not None:
        names = [each for each in accountants if each in dpcal.plot.STYLES]
        texts.append(_profile(plot, told, names, []))
    status = 1 if any(table.disagreements for table in tables) else 0
    document = one_or_all("comparisons", [table.to_dict() for table in tables])
    return Answer(document, "\n".join(texts), status)


def _profile(
    path: Path, run: SampledRun, names: Sequence[str], marks: Sequence[tuple[float, float]]
) -> str:
    """Draw the privacy profile of a run by accountants, with marks at (epsilon, delta)."""
    how: dict[str, Any] = {"accountants": tuple(names), "neighboring_relation": run.relation}
    figure = dpcal.plot.profile(run.event(), marks=marks, **how)
    return drawn(figure, path, "Privacy profile", str(run), run.relation)


@extends(SampledRun, without=("sampler", "sampling_probability"))
def samplers(
    *,
    n: int,
    batch_size: int,
    delta: float,
    epsilon: float | None = None,
    only: Sequence[Sampler] = tuple(RUN_SAMPLERS),
    **run: Any,
) -> Answer:
    """Compare the cost of each way to draw batches, by the best accountant for each.

    Parameters
    ----------
    n
        Public number of records.
    batch_size
        Batch size in [1, n]; expected, where the size is random.
    delta
        Delta in (0, 1).
    epsilon
        Target > 0, in place of a noise multiplier: the noise that each sampler needs.
    only
        Samplers, separated by commas (default: all).

    Examples
    --------
    dpcal samplers --n 6000 --batch-size 512 --epochs 10 --noise-multiplier 1 --delta 1e-5
    dpcal samplers --n 6000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-5 --only
        poisson,shuffled-epochs
    """
    told = SampledRun(n=n, batch_size=batch_size, **run)
    rows = compare_samplers(told, epsilon=epsilon, delta=delta, samplers=only)
    document = {"samplers": [_document(row, epsilon, delta) for row in rows]}
    return Answer(document, _table(rows, epsilon, delta))


def _document(row: SamplerRow, epsilon: float | None, delta: float) -> dict[str, Any]:
    """Return the answer of a sampler as JSON values, or the reason why there is none."""
    found: dict[str, Any] = {"delta": delta, "epsilon": epsilon}
    if row.epsilon is None:
        found["noise_multiplier"] = row.run.noise_multiplier
    else:
        found["epsilon"] = row.epsilon.to_dict()
    return {
        "sampler": row.run.sampler,
        "neighboring_relation": row.run.relation,
        "assumes": row.assumes,
        "mechanism": row.run.to_dict(),
        "answers": [] if row.refused else [found],
        **({"refused": row.refused} if row.refused else {}),
    }


def _cell(row: SamplerRow) -> str:
    """Return the noise of an answer, or the upper end of its epsilon, or both ends of a bracket."""
    if row.refused:
        return "refused"
    if row.epsilon is None:
        return at_most(row.run.noise_multiplier or 0.0, digits=_DIGITS)
    if _is_bracket(row.epsilon):
        return interval(row.epsilon.lower, row.epsilon.upper, digits=_FEW_DIGITS)
    return at_most(row.epsilon.upper, digits=_DIGITS)


def _is_bracket(found: Epsilon) -> bool:
    """Whether the ends of an answer differ in the digits that are shown."""
    return found.lower < found.upper * (1 - 10.0 ** (1 - _DIGITS))


def _table(rows: Sequence[SamplerRow], epsilon: float | None, delta: float) -> str:
    """Return a table of samplers, in 80 columns, with numbered notes below it."""
    head = f"delta = {delta:g}" if epsilon is None else f"({epsilon:g}, {delta:g})"
    table, notes = [("", "sampler", "relation", head)], []
    for place, row in enumerate(rows, start=1):
        table.append((f"({place})", row.run.sampler, row.run.relation, _cell(row)))
        notes.append((f"({place})", row.assumes))
    lines = [*columns(table), "", "Each claim holds if", *columns(notes)]
    lines += [f"\n{row.run.sampler}: {row.refused}" for row in rows if row.refused]
    if any(row.epsilon is not None and _is_bracket(row.epsilon) for row in rows):
        lines += ["", "[lower, upper] is a bracket: epsilon is proved to be between its ends."]
    if epsilon is not None:
        lines += ["", "Numbers are the noise multipliers that meet the target (epsilon, delta)."]
    return "\n".join(lines)
