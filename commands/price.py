"""``dpcal epsilon``, ``delta``, ``compare`` and ``samplers``: what does a run cost?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dpcal
from dpcal.commands._mechanism import SAMPLERS, Mechanism, Sampler
from dpcal.commands._prices import cell, priced, table_of
from dpcal.commands._shared import Accountant, bar
from dpcal.commands._signature import Answer, extends
from dpcal.errors import DisagreementWarning, UnsupportedEvent
from dpcal.report.output import answer, at_most

__all__ = ["compare", "delta", "epsilon", "samplers"]


class Accuracy:
    """The accuracy of other packages' accountants."""

    @staticmethod
    def of(
        *,
        pld_interval: float | None = None,
        pld_tail_mass: float | None = None,
        prv_eps_error: float | None = None,
        prv_delta_error: float | None = None,
    ) -> dict[str, dict[str, float]]:
        """Return what was given, by accountant and name.

        Parameters
        ----------
        pld_interval
            Width of dp-accounting's grid of privacy losses, > 0.
        pld_tail_mass
            Probability that it leaves out at each composition, > 0.
        prv_eps_error
            Error of epsilon, > 0, that prv-accountant is allowed.
        prv_delta_error
            Error of delta, > 0, that prv-accountant is allowed.
        """
        found: dict[str, dict[str, float]] = {"pld": {}, "prv": {}}
        for name, value in locals().copy().items():
            package, _, option = name.partition("_")
            if package not in found or value is None:
                continue
            if not value > 0:
                raise ValueError(f"{name} must be > 0, got {value!r}.")
            found[package][option] = value
        return found


def epsilon(
    run: Mechanism,
    *,
    delta: Sequence[float],
    accountant: Accountant = "auto",
    cross_check: bool = False,
    accuracy: Accuracy,
    plot: Path | None = None,
) -> Answer:
    """Bound epsilon at deltas.

    Parameters
    ----------
    delta
        One or more, in (0, 1); also 0, for pure privacy, where a largest loss is known.
    accountant
        Which one answers.
    cross_check
        Ask a second accountant, and fail with status 2 if the intervals do not meet.
    plot
        A .png or .svg file for the privacy profile, with a mark at each delta.

    Examples
    --------
    dpcal epsilon --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --delta 1e-6
    dpcal epsilon --n 60000 --batch-size 512 --epochs 100 --noise-multiplier 0.8 --sampler
        without-replacement --delta 1e-5 1e-6
    """
    event, how = run.event(), _how(run, accountant, cross_check, accuracy)
    found = [(at, dpcal.accountants.epsilon(event, delta=at, **how)) for at in delta]
    answers = [{"delta": at, "epsilon": bound.to_dict()} for at, bound in found]
    texts = [answer("epsilon", bound, f"delta = {at:g}") for at, bound in found]
    if plot is not None:
        marks = [(bound.upper, at) for at, bound in found]
        texts.append(_drawn(plot, run, ("characteristic",), marks))
    return _answered(run, answers, texts)


def delta(
    run: Mechanism,
    *,
    epsilon: Sequence[float],
    accountant: Accountant = "auto",
    cross_check: bool = False,
    accuracy: Accuracy,
) -> Answer:
    """Bound delta at epsilons.

    Parameters
    ----------
    epsilon
        One or more, >= 0.
    accountant
        Which one answers.
    cross_check
        Ask a second accountant, and fail with status 2 if the intervals do not meet.

    Examples
    --------
    dpcal delta --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --epsilon 8
    dpcal delta --sampling-probability 1 --steps 1 --noise-multiplier 2 --epsilon 0 1 --json
    """
    event, how = run.event(), _how(run, accountant, cross_check, accuracy)
    answers, texts = [], []
    for at in epsilon:
        found = dpcal.accountants.delta(event, epsilon=at, **how)
        answers.append({"epsilon": at, "delta": found.to_dict(), **_log_delta(event, at, how)})
        texts.append(answer("delta", found, f"epsilon = {at:g}"))
    return _answered(run, answers, texts)


def _how(run: Mechanism, accountant: str, cross_check: bool, accuracy: Any) -> dict[str, Any]:
    """Return how an accountant is asked, with the accuracy that was given for the one package."""
    asked = "pld" if cross_check and not accuracy.get(accountant) else accountant
    asked = accountant if accountant in accuracy else asked
    for name, values in accuracy.items():
        if values and name != asked:
            raise ValueError(f"Options of {name} were given, but {name} is not asked.")
    how = {"neighboring_relation": run.relation, "cross_check": cross_check}
    return {**how, "accountant": accountant, **accuracy.get(asked, {})}


def _log_delta(event: Any, epsilon: float, how: dict[str, Any]) -> dict[str, Any]:
    """Return the logarithm of delta, which keeps the digits of a small one, where it is known."""
    try:
        found = dpcal.accountants.log_delta(event, epsilon=epsilon, **how)
    except UnsupportedEvent:
        return {}  # A run that is priced as a whole has no logarithm of its own.
    return {"log_delta": found.to_dict()}


def _answered(run: Mechanism, answers: list[dict[str, Any]], texts: list[str]) -> Answer:
    document = answers[0] if len(answers) == 1 else {"answers": answers}
    return Answer({"mechanism": run.to_dict(), **document}, "\n".join(texts))


def compare(
    run: Mechanism,
    *,
    delta: Sequence[float],
    epsilon: Sequence[float] | None = None,
    accountants: Sequence[Accountant] = ("characteristic", "renyi", "pld", "prv"),
    accuracy: Accuracy,
    plot: Path | None = None,
) -> Answer:
    """Ask several accountants for epsilon, or for the noise that a target needs.

    The exit status is 1 if two intervals contradict each other.

    Parameters
    ----------
    delta
        One or more, in (0, 1).
    epsilon
        Targets >= 0, in place of a noise multiplier.
    accountants
        Which ones, with commas between them (default: characteristic,renyi,pld,prv).
    plot
        A .png or .svg file for the privacy profile by each accountant.

    Examples
    --------
    dpcal compare --sampling-probability 512/60000 --noise-multiplier 1 --steps 10000 --delta 1e-6
        --accountants characteristic,renyi
    dpcal compare --n 60000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-6 --accountants
        characteristic,renyi
    """
    if not accountants:
        raise ValueError("accountants must be one or more, got none.")
    ask = _epsilons if epsilon is None else _noises
    tables = []
    for target, at in _targets(run, epsilon, delta):
        asked = [ask(run, target, at, accuracy, (name,)) for name in _counted(accountants)]
        rows = tuple(row for table in asked for row in table.rows)
        tables.append(replace(asked[0], rows=rows))
    documents = [table.to_dict() for table in tables]
    texts = ["\n\n".join(map(str, tables))]
    if plot is not None:
        names = [each for each in accountants if each in dpcal.plot.STYLES]
        texts.append(_drawn(plot, run, names, []))
    status = 1 if any(getattr(table, "disagreements", ()) for table in tables) else 0
    document = documents[0] if len(documents) == 1 else {"comparisons": documents}
    return Answer(document, "\n".join(texts), status)


def _targets(
    run: Mechanism, epsilon: Sequence[float] | None, delta: Sequence[float]
) -> list[tuple[float | None, float]]:
    """Return each epsilon at each delta; None for epsilon where noise was given instead."""
    if (epsilon is None) == (run.noise_multiplier is None):
        raise ValueError(
            "Exactly one of --noise-multiplier (compare epsilons) and --epsilon (compare the noise "
            "needed) must be given."
        )
    return [(target, at) for at in delta for target in epsilon or (None,)]


def _counted(names: Sequence[str]) -> Iterator[str]:
    """Yield names, and count on a terminal those that have answered."""
    reach = bar("dpcal compare", "accountant")
    for done, name in enumerate(names, start=1):
        yield name
        reach(done, len(names))


def _epsilons(
    run: Mechanism, _: float | None, delta: float, accuracy: Any, accountants: tuple[str, ...]
) -> Any:
    """Return the epsilons of accountants at one delta."""
    with warnings.catch_warnings():
        # The table and the exit status say it.
        warnings.simplefilter("ignore", DisagreementWarning)
        return dpcal.accountants.compare(
            run.event(),
            delta=delta,
            neighboring_relation=run.relation,
            options=accuracy,
            accountants=accountants,
        )


def _noises(
    run: Mechanism, epsilon: Any, delta: float, accuracy: Any, accountants: tuple[str, ...]
) -> Any:
    """Return the noise that one target needs, by accountants."""
    if any(accuracy.values()):
        raise ValueError("Options of pld and prv are for comparing epsilons (--noise-multiplier).")
    run.event(noise_multiplier=1.0)  # What is missing is named before anything is solved.
    return dpcal.calibrate.compare(
        lambda sigma: run.event(noise_multiplier=sigma),
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=run.relation,
        accountants=accountants,
    )


def _drawn(
    path: Path, run: Mechanism, names: Sequence[str], marks: Sequence[tuple[float, float]]
) -> str:
    """Draw the privacy profile of a run by accountants, with marks at (epsilon, delta)."""
    dpcal.plot.check_picture(path)
    label = f"epsilon = {at_most(marks[0][0], digits=5)}" if marks else ""
    how: dict[str, Any] = {"accountants": tuple(names), "neighboring_relation": run.relation}
    curve = dpcal.plot.Curve.of(run.event(), label, target=marks[0] if marks else None, **how)
    figure = dpcal.plot.profile(curve)
    axes = figure.axes[0]
    for at, mark in marks[1:]:
        color = axes.lines[0].get_color()
        axes.plot(at, mark, marker="D", markersize=8, color=color, zorder=4)
        text = f"epsilon = {at_most(at, digits=5)}\ndelta = {mark:g}"
        dpcal.plot.note(axes, text, (at, mark), (-10, -6), ha="right", va="top", color=color)
    about = [run.sentence(), run.relation, f"dpcal {dpcal.report.software()['dpcal']}"]
    dpcal.plot.save(figure, path, title="Privacy profile", description=" | ".join(about))
    return f"picture written to {path}"


@extends(Mechanism.of, without=("sampler", "sampling_probability"))
def samplers(
    *,
    n: int,
    batch_size: int,
    delta: Sequence[float],
    epsilon: Sequence[float] | None = None,
    only: Sequence[Sampler] = (),
    plot: Path | None = None,
    **run: Any,
) -> Answer:
    """Compare what each way of drawing batches costs, by the best accountant of each.

    Parameters
    ----------
    n
        Number of records, public.
    batch_size
        (Expected) batch, in [1, n].
    delta
        One or more, in (0, 1).
    epsilon
        Targets > 0, in place of a noise multiplier: the noise that each sampler needs.
    only
        Samplers with commas between them (default: all).
    plot
        A .png or .svg file for a picture of the epsilons at one delta.

    Examples
    --------
    dpcal samplers --n 6000 --batch-size 512 --epochs 10 --noise-multiplier 1 --delta 1e-5
    dpcal samplers --n 6000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-5 --only
        poisson,shuffled-epochs
    """
    sizes = {"n": n, "batch_size": batch_size, **run}
    told = Mechanism.of(**sizes)
    targets = _targets(told, epsilon, delta)
    told.known("steps")
    rows = priced(sizes, only or tuple(SAMPLERS), targets)
    heads = [
        f"delta = {at:g}" if target is None else f"({target:g}, {at:g})" for target, at in targets
    ]
    text = table_of(rows, heads)
    if plot is not None:
        text += f"\n{_drawn_samplers(plot, told, rows, targets)}"
    return Answer({"samplers": rows}, text)


def _drawn_samplers(
    path: Path,
    run: Mechanism,
    rows: Sequence[Mapping[str, Any]],
    targets: Sequence[tuple[float | None, float]],
) -> str:
    """Draw epsilon of each sampler that has a price."""
    dpcal.plot.check_picture(path)
    if len(targets) != 1 or targets[0][0] is not None:
        raise ValueError("plot draws the epsilons of one noise multiplier at one delta.")
    drawn = [
        (f"{row['sampler']}\n{row['neighboring_relation']}", cell(each), each["epsilon"])
        for row in rows
        for each in row["answers"]
    ]
    figure = dpcal.plot.samplers(drawn, delta=targets[0][1])
    about = (
        f"{run.n} records, batches of {run.batch_size}, {run.passes} passes, noise of "
        f"{run.noise_multiplier!r} clipping norms | dpcal {dpcal.report.software()['dpcal']}"
    )
    dpcal.plot.save(figure, path, title="Epsilon by how batches are drawn", description=about)
    return f"picture written to {path}"
