"""``dpcal verify``, ``budget`` and ``attack``: whether a claim can be trusted."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal import validate
from dpcal._internal.columns import columns
from dpcal._internal.files import text_of
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.runs import Relation, SampledRun
from dpcal.commands._shared import drawn
from dpcal.commands._signature import Answer, extends
from dpcal.errors import UnsupportedEvent
from dpcal.report.output import at_least, at_most

if TYPE_CHECKING:
    from dpcal.calibrate import Plan

BOUND = (
    "Bound to each other: plan, ledger, delta, neighboring relation and claim of each run, and of "
    "all together; and to report.json the other files, by their sums."
)
NOT_BOUND = (
    "Not bound: scores, words and dates in report.json, the table, and whether runs were of silos "
    "or one after another. A report that was forged as a whole, sums and all, passes; --sign and "
    "--key bind all its files to a key."
)


def verify(
    report: Sequence[Path],
    *,
    sign: Path | None = None,
    key: Path | None = None,
    policy: Path | None = None,
    delta: float | None = None,
) -> Answer:
    """Recompute the claims of reports from their ledgers, and compose several.

    The exit status is 1 if a claim does not hold.

    Parameters
    ----------
    report
        Folder with a report.json, or that file. Several reports are composed, as reports about one
        table.
    sign
        Private Ed25519 key in PEM that signs every file of each report; the signature of FOLDER is
        FOLDER.sig.
    key
        Public key in PEM that checks the signature.
    policy
        File of limits that the claims must meet, in TOML.
    delta
        Delta in (0, 1) of several reports together (default: the largest delta of a report).

    Examples
    --------
    dpcal verify dpcal-report
    dpcal verify dpcal-report second-report --delta 1e-5
    """
    if sign is not None and key is not None:
        raise ValueError("--sign makes a signature and --key checks one: give one of them.")
    limits = None if policy is None else dpcal.report.Policy.read(policy)
    documents = [dpcal.report.read(path) for path in report]
    names, several = [str(path) for path in report], len(documents) > 1
    if delta is not None and not several:
        raise ValueError("--delta is for several reports: a single report states its own delta.")
    folders = [path if path.is_dir() else path.absolute().parent for path in report]
    tables = [dpcal.report.verify(document) for document in documents]
    changed = [*map(dpcal.report.file_problems, folders, documents)]
    texts = [*map(_of_claims, tables, documents, changed)]
    found: dict[str, Any] = {"reports": dict(zip(names, tables, strict=True))}
    if several:
        texts = [f"{name}\n{text}" for name, text in zip(names, texts, strict=True)]
        found["together"] = together = _together(documents, delta)
        texts.append(_sentences(together))
        upper, delta = together["epsilon"]["upper"], together["delta"]
    else:
        (found["claims"],) = tables
        upper, delta = tables[0][-1]["recomputed"], tables[0][-1]["delta"]
    found |= {"files": dict(zip(names, changed, strict=True)), "bound": BOUND}
    found["not_bound"] = NOT_BOUND
    texts.append(f"{BOUND}\n{NOT_BOUND}")
    problems = [*changed]
    if limits is not None:
        found["policy"] = limits.violations(dpcal.report.facts_of(documents, upper, delta))
        problems.append(found["policy"])
        texts.append("\n".join(found["policy"]) or f"policy {policy}: kept")
    if key is not None:
        signed = [dpcal.report.signature_problems(folder, key) for folder in folders]
        found["signatures"] = dict(zip(names, signed, strict=True))
        problems += signed
        texts += [
            f"signature of {name}: {'; '.join(told) or 'holds'}"
            for name, told in found["signatures"].items()
        ]
    holds = all(row["holds"] for rows in tables for row in rows) and not any(problems)
    if sign is not None:
        if not holds:
            raise ValueError("--sign signs only what holds, and a claim does not.")
        found["signed"] = [str(dpcal.report.sign(folder, sign)) for folder in folders]
        texts.append(f"signed: {', '.join(found['signed'])}")
    return Answer(found, "\n\n".join(texts), 0 if holds else 1)


def _of_claims(rows: list[dict[str, Any]], document: Any, problems: list[str]) -> str:
    """Return a table of one report's claims, and lines on its unit, relation and files."""
    table = [("claim", "delta", "claimed epsilon", "recomputed", "")]
    for row in rows:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        label = f" ({row['label']})" if row["label"] else ""
        numbers = (f"{row['delta']:.3g}", f"{row['claimed']:.9f}", f"{row['recomputed']:.9f}")
        table.append((row["claim"], *numbers, verdict + label))
    lines, privacy = columns(table), document.get("privacy", {})
    told = {"unit": privacy.get("unit"), "relation": privacy.get("neighboring_relation")}
    lines += [f"{name}: {value}" for name, value in told.items() if value is not None]
    if "files" in document:
        lines.append(f"files: {'; '.join(problems) or 'as in report.json'}")
    return "\n".join(lines)


def _together(documents: list[Any], delta: float | None) -> dict[str, Any]:
    """Return the cost of all reports together, with notes."""
    seeds = sum(bool(run.get("seed_given")) for each in documents for run in each["runs"])
    notes = [
        "The reports are taken to be about the same records: their fingerprints have different "
        "keys, and cannot show it.",
        "The claim holds if no run was chosen by the results of another run.",
    ]
    if seeds > 1:
        notes.append(
            f"{seeds} runs had seeds that were given: if two had one seed, their noise cancels, "
            "and no claim holds. A budget book (dpcal train --budget) refuses that."
        )
    return {**dpcal.report.composed_reports(documents, delta), "notes": notes}


def _sentences(together: dict[str, Any]) -> str:
    upper = at_most(together["epsilon"]["upper"], digits=9)
    head = (
        f"all {together['runs']} runs together: epsilon at most {upper} at delta = "
        f"{together['delta']:g}, {together['epsilon']['neighboring_relation']}, unit: "
        f"{together['unit']}"
    )
    return "\n".join([head, *together["notes"]])


def budget(
    book: Path,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    change_total: bool = False,
    neighboring_relation: Relation | None = None,
    composition: Literal["exact", "renyi", "zcdp", "gdp"] | None = None,
    add_records: Path | None = None,
) -> Answer:
    """Print the runs of a data set, their cost, and the remaining budget.

    Parameters
    ----------
    book
        File of the budget book; a new file if you give a total.
    epsilon
        Total epsilon of a new book, > 0.
    delta
        Delta of the total, in (0, 1).
    change_total
        Change the total; the book keeps the former one.
    neighboring_relation
        Neighboring relation (default: the relation of the book's first run).
    composition
        Rule of composition. Use exact if you fix all runs before you see a result. Use renyi if you
        choose runs by earlier results; zcdp and gdp do the same for Gaussian noise only (default:
        exact).
    add_records
        Table with another form of the same people's records, which runs may use from now on.

    Examples
    --------
    dpcal budget clinic.budget --epsilon 3 --delta 1e-6
    dpcal budget clinic.budget --json
    """
    if change_total and epsilon is None and delta is None:
        raise ValueError("--change-total needs --epsilon or --delta.")
    total: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    opened = dpcal.optim.BudgetBook(
        book,
        **({} if change_total else total),
        neighboring_relation=neighboring_relation,
        composition=composition,
    )
    if change_total:
        opened.change_total(**total)
    if add_records is not None:
        opened.add_records(add_records)
    return Answer(opened.to_dict(), _of_book(opened))


_FEWER_ROWS = (
    "         runs about fewer rows are charged for that many rows, and do not count them:",
    "         the claim is about persons with at most that many rows in the table",
)


def _of_book(book: Any) -> str:
    """Return the text on past runs, their cost and the remaining budget."""
    runs, delta = book.runs, book.delta
    lines = [
        f"budget book {book.path}: {book.neighboring_relation or 'the relation of its first run'}, "
        f"composition {book.composition}",
        f"unit     {unit_of(book.group_size)}",
        *(_FEWER_ROWS if len({run.plan.group_size for run in runs}) > 1 else ()),
        f"total    epsilon {book.epsilon:g} at delta {delta:g}",
        f"spent    epsilon at most {at_most(book.spent().upper, digits=6)} by {len(runs)} "
        f"run{'s' * (len(runs) != 1)} together (not a sum)",
    ]
    if runs:
        lines.append(f"         if a run was chosen after a look at results: {_whatever(book)}")
    lines.append(
        f"left     one more run of epsilon up to {at_least(book.left(), digits=4)} at delta "
        f"{delta:g}, if its noise is Gaussian"
    )
    for since, former, at in book.totals[:-1]:
        lines.append(f"former   epsilon {former:g} at delta {at:g}, since {since}")
    lines += [f"records  {name}, since {added}" for name, added in book.records]
    table = [("run", "started", "label", "alone", "delta", "rows", "state")]
    for run in runs:
        plan = run.plan
        numbers = (f"{plan.epsilon:.4g}", f"{plan.delta:.2g}", str(plan.group_size))
        table.append((str(run.number), run.started, run.label, *numbers, run.state))
    lines += ["", *columns(table)] if runs else []
    lines += ["", *book.unfinished()] if book.unfinished() else []
    return "\n".join(lines)


def _whatever(book: Any) -> str:
    """Return the bound that holds where runs were chosen by results."""
    if book.composition != "exact":
        return f"at most the total, epsilon {book.epsilon:g},"
    try:
        return f"epsilon at most {at_most(book.spent_whatever_was_chosen(), digits=6)}"
    except UnsupportedEvent:
        return "no bound is known"


_FEATURES = 5


@extends(SampledRun)
def attack(
    attack: Literal["replay", "likelihood", "canaries"],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    sampler: Literal["poisson", "random-allocation", "shuffled-epochs"] = "poisson",
    run: str | None = None,
    plan: Path | None = None,
    samples: int | None = None,
    confidence: float = 0.99,
    seed: int | None = None,
    trials: int | None = None,
    plot: Path | None = None,
    **sizes: Any,
) -> Answer:
    """Attack a run by replays on neighboring tables, likelihood ratios or canaries.

    The exit status is 1 if a claim breaks.

    Parameters
    ----------
    attack
        Kind of attack. replay records a run, and repeats it on neighboring tables. likelihood
        bounds epsilon from below by likelihood ratios of canaries. canaries bounds epsilon from one
        run, seen from outside.
    epsilon
        Epsilon of the claim.
    delta
        Delta of the claim.
    sampler
        Way to draw batches.
    run
        For replay: FILE:FUNCTION, a function in a Python file that trains on a table (X, y).
        Without it, the plan's optimizer runs on a logistic regression.
    plan
        Plan in JSON (default: DP-SGD with the given sizes and claim).
    samples
        For likelihood: number of canaries (default: 1000000).
    confidence
        Confidence of the bounds, in (0, 1).
    seed
        Seed, to repeat an attack.
    trials
        For replay: number of random neighbors (default: 8).
    plot
        For likelihood: picture file (.png or .svg) of the claimed and the attacked trade-off.

    Examples
    --------
    dpcal attack likelihood --n 2000 --batch-size 200 --steps 100 --epsilon 2 --delta 1e-5
    dpcal attack canaries --n 2000 --batch-size 200 --steps 100 --epsilon 2 --delta 1e-5
    """
    of_one: dict[str, tuple[str, Any]]
    of_one = {"plot": ("likelihood", plot), "samples": ("likelihood", samples)}
    of_one |= {"run": ("replay", run), "trials": ("replay", trials)}
    for name, (kind, value) in of_one.items():
        if value is not None and attack != kind:
            raise ValueError(f"{name} is for {kind}, got it with {attack}.")
    how: dict[str, Any] = {"confidence": confidence, "seed": seed}
    if run is not None:
        return _replay(_function(run), validate.count(n=sizes["n"]), trials, seed)
    if plan is None:
        sampled = SampledRun(sampler=sampler, **sizes)
        sampled.known("n", "length")
        if epsilon is None or delta is None:
            raise ValueError("epsilon and delta are needed: the claim that is attacked.")
        told = sampled.plan(epsilon=epsilon, delta=delta)
    else:
        told = dpcal.Plan.from_json(text_of(plan, "plan must be a readable file"))
    if attack == "replay":
        known: dict[str, Any] = {"fit_intercept": False, "classes": [0, 1]}
        return _replay(
            lambda rows: dpcal.run(dpcal.Logistic(*rows, **known), told), told.n, trials, seed
        )
    if attack == "canaries":
        return _canaries(told, how)
    return _likelihood(told, how | ({} if samples is None else {"samples": samples}), plot)


def _replay(train: Callable[[Any], Any], n: int, trials: int | None, seed: int | None) -> Answer:
    search: dict[str, Any] = {} if trials is None else {"trials": trials}
    X, y = dpcal.optim.attacks.random_table(n, _FEATURES, seed=seed)
    found = dpcal.optim.attacks.replay_table(train, X, y, seed=seed, **search)
    holds = all(each.holds for each in found)
    lines = [*map(str, found), "no violation found" if holds else "VIOLATIONS FOUND"]
    document = {"holds": holds, "replays": [each.to_dict() for each in found]}
    return Answer(document, "\n".join(lines), 0 if holds else 1)


def _canaries(plan: Plan, how: dict[str, Any]) -> Answer:
    found, expected = dpcal.optim.attacks.plant(plan, **how)
    power = f"epsilon {expected.epsilon:.4g}, mu {expected.mu:.4g}"
    text = f"{found}\nof a run that leaks all that it may, such an attack shows about {power}"
    return _judged(found, text, expected=expected.to_dict())


def _likelihood(plan: Plan, how: dict[str, Any], plot: Path | None) -> Answer:
    curve = None
    if plot is not None:  # fails before the attack: not every plan has a curve
        curve = dpcal.trade_off(plan.event, neighboring_relation=plan.neighboring_relation)
    found = dpcal.optim.attacks.likelihood(plan, **how)
    if curve is not None and plot is not None:
        many = len(found.members) + len(found.others)
        attacked = [(f"likelihood ratios, {many} canaries", *found.rates())]
        claimed = f"claimed, epsilon = {plan.epsilon:.4g}"
        drawn(dpcal.plot.trade_off_curve(curve, claimed, attacks=attacked), plot)
    return _judged(found, str(found))


def _judged(found: Any, text: str, **more: Any) -> Answer:
    """Return an outcome with its verdict and exit status."""
    verdict = "the claim holds" if found.holds else "THE CLAIM DOES NOT HOLD"
    document = {**found.to_dict(), **more, "holds": found.holds}
    return Answer(document, f"{text}\n{verdict}", 0 if found.holds else 1)


def _function(place: str) -> Callable[[Any], Any]:
    """Return the function that ``FILE:FUNCTION`` names."""
    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise ValueError(f"run must be FILE:FUNCTION with a Python file, got {place!r}.")
    function: Any = runpy.run_path(path).get(name)
    if not callable(function):
        raise ValueError(f"run must name a function in {path!r}, got {name!r}.")
    return lambda table: function(table)
