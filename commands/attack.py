"""``dpcal attack``: try to tell a record from a run; the exit status is 1 if a claim breaks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal import validate
from dpcal._internal.files import text_of
from dpcal.commands._mechanism import Mechanism, noise_of
from dpcal.commands._shared import Relation
from dpcal.commands._signature import Answer, flag
from dpcal.report.output import interval

if TYPE_CHECKING:
    from dpcal.calibrate import Plan

# Features of the random table that a plan's own optimizer is replayed on.
_FEATURES = 5


def attack(
    attack: Literal["replay", "likelihood", "canaries", "loader"],
    *,
    run: str | None = None,
    plan: Path | None = None,
    records: int | None = None,
    batch_size: float | None = None,
    steps: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    sampler: Literal["shuffled-epochs", "random-allocation"] = "shuffled-epochs",
    epochs: int | None = None,
    noise_multiplier: float | None = None,
    neighboring_relation: Relation | None = None,
    samples: int | None = None,
    confidence: float = 0.99,
    seed: int | None = None,
    seconds: float = 0.0,
    plot: Path | None = None,
) -> Answer:
    """Attack runs: replays on neighbours, likelihood ratios, canaries.

    The exit status is 1 if a claim breaks.

    Parameters
    ----------
    attack
        The kind: replay records a run and plays it again on neighbouring tables; likelihood bounds
        epsilon from below by likelihood ratios of canaries; canaries bounds it from one run seen
        from outside; loader by runs of a loader, on a data set that tells a record's batch.
    run
        For replay: FILE:FUNCTION, a function of a table (X, y) that trains, in a Python file;
        otherwise the plan's optimizer, on a logistic regression.
    plan
        A plan in JSON; or DP-SGD with the sizes that follow.
    records
        Number of records.
    batch_size
        Expected, of Poisson samples; of a loader, the size of its batches.
    steps
        Number of steps.
    epsilon
        The claim.
    delta
        The claim's delta.
    sampler
        Of a loader.
    epochs
        Passes of a loader, whole.
    noise_multiplier
        Of a loader: noise over the clipping norm (default: the smallest at which Poisson samples of
        these sizes meet the claim).
    neighboring_relation
        What neighbors differ by (default: add-or-remove-one; of shuffled-epochs replace-special).
    samples
        Canaries (default: 1000000), or runs of a loader (default: 100000).
    confidence
        Of bounds.
    seed
        To repeat an attack.
    seconds
        For replay: go on trying random neighbours for so long.
    plot
        For likelihood: a .png or .svg file for the trade-off that was claimed and attacked.

    Examples
    --------
    dpcal attack likelihood --records 2000 --batch-size 200 --steps 100 --epsilon 2 --delta 1e-5
    dpcal attack loader --records 60000 --batch-size 512 --epochs 1 --epsilon 1.38 --delta 1e-5
    """
    for name, value, kind in (("plot", plot, "likelihood"), ("run", run, "replay")):
        if value is not None and attack != kind:
            raise ValueError(f"{name} is for {kind}, got it with {attack}.")
    if plot is not None:
        dpcal.plot.check_picture(plot)
    claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    how: dict[str, Any] = {"confidence": confidence, "seed": seed}
    if attack == "loader":
        sizes = {"records": records, "batch_size": batch_size, "epochs": epochs, **claim}
        _needed(sizes)
        drawn = {"noise_multiplier": noise_multiplier, "neighboring_relation": neighboring_relation}
        return _loader(sampler, sizes, drawn, 100_000 if samples is None else samples, how)
    if run is not None:
        _needed({"records": records})
        return _replay(_function(run), int(records or 0), seconds, seed)
    if plan is not None:
        known = dpcal.calibrate.Plan.from_json(text_of(plan, "plan must be a readable file"))
    else:
        sizes = {"n": records, "batch_size": batch_size, "steps": steps, **claim}
        _needed({"records" if name == "n" else name: value for name, value in sizes.items()})
        relation = neighboring_relation or "add-or-remove-one"
        known = dpcal.calibrate.dpsgd(neighboring_relation=relation, **sizes)
    if attack == "replay":
        return _replay(_optimizer(known), known.n, seconds, seed)
    if attack == "canaries":
        return _canaries(known, how)
    return _likelihood(known, 1_000_000 if samples is None else samples, how, plot)


def _needed(given: dict[str, Any]) -> None:
    """Refuse what is missing."""
    missing = [flag(name) for name, value in given.items() if value is None]
    if missing:
        raise ValueError(f"attack needs {' and '.join(missing)}.")


def _replay(train: Callable[[Any], Any], records: int, seconds: float, seed: int | None) -> Answer:
    X, y = dpcal.optim.attacks.random_table(records, _FEATURES, seed=seed)
    found = dpcal.optim.attacks.replay_table(train, X, y, seconds=seconds, seed=seed)
    holds = all(each.holds for each in found)
    verdict = "no violation found" if holds else "VIOLATIONS FOUND"
    document = {"holds": holds, "replays": [each.to_dict() for each in found]}
    return Answer(document, "\n".join([*map(str, found), verdict]), 0 if holds else 1)


def _optimizer(plan: Plan) -> Callable[[Any], Any]:
    """Return a run of the plan's optimizer on a logistic regression."""
    return lambda table: dpcal.run(
        dpcal.optim.Logistic(*table, fit_intercept=False, classes=[0, 1]), plan
    )


def _function(place: str) -> Callable[[Any], Any]:
    """Return the function that ``FILE:FUNCTION`` names."""
    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise ValueError(f"run must be FILE:FUNCTION with a Python file, got {place!r}.")
    spec = importlib.util.spec_from_file_location("attacked", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"run must name a Python file, got {path!r}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"run must name a function in {path!r}, got {name!r}.")
    return function  # type: ignore[no-any-return]


def _likelihood(plan: Plan, samples: int, how: dict[str, Any], plot: Path | None) -> Answer:
    curve = None
    if plot is not None:  # before the attack, for not every plan has a curve
        relation = plan.neighboring_relation
        curve = dpcal.accountants.trade_off(plan.event, neighboring_relation=relation)
    found = dpcal.optim.attacks.likelihood(plan, samples=samples, **how)
    if curve is not None and plot is not None:
        many = len(found.members) + len(found.others)
        figure = dpcal.plot.trade_off_curve(
            curve,
            f"claimed, epsilon = {plan.epsilon:.4g}",
            attacks=[(f"likelihood ratios, {many} canaries", *found.rates())],
        )
        dpcal.plot.save(figure, plot)
    return _said(found.holds, found.to_dict(), str(found))


def _canaries(plan: Plan, how: dict[str, Any]) -> Answer:
    found, expected = dpcal.optim.attacks.plant(plan, **how)
    power = (
        f"of a run that leaks all that it may, such an attack shows about epsilon "
        f"{expected.epsilon:.4g}, mu {expected.mu:.4g}"
    )
    document = {**found.to_dict(), "expected": expected.to_dict()}
    return _said(found.holds, document, f"{found}\n{power}")


def _loader(
    sampler: Any, sizes: dict[str, Any], drawn: dict[str, Any], samples: int, how: dict[str, Any]
) -> Answer:
    size = validate.count(batch_size=sizes["batch_size"])
    told = Mechanism.of(
        sampler=sampler, n=sizes["records"], batch_size=size, epochs=sizes["epochs"], **drawn
    )
    target: dict[str, Any] = {"epsilon": sizes["epsilon"], "delta": sizes["delta"]}
    noise, words = told.noise_multiplier, ""
    if noise is None:
        noise = noise_of(replace(told, sampler="poisson"), **target)
        words = ", with which Poisson samples of these sizes meet the claim"
    told = replace(told, noise_multiplier=noise)
    relation: dict[str, Any] = {"neighboring_relation": told.relation}
    price = dpcal.accountants.epsilon(told.event(), delta=target["delta"], **relation)
    found = dpcal.optim.attacks.loader(
        told.sampler,
        n=sizes["records"],
        batch_size=size,
        noise_multiplier=noise,
        epochs=told.passes,
        samples=samples,
        **how,
        **target,
        **relation,
    )
    text = (
        f"{told.sentence()}{words}\n{found}\nits price: epsilon in "
        f"{interval(price.lower, price.upper, digits=5)}, {price.method}, {told.relation}"
    )
    document = {**found.to_dict(), "mechanism": told.to_dict(), "price": price.to_dict()}
    return _said(found.holds, document, text)


def _said(holds: bool, document: dict[str, Any], text: str) -> Answer:
    """Return an outcome with its verdict and exit status."""
    verdict = "the claim holds" if holds else "THE CLAIM DOES NOT HOLD"
    return Answer({**document, "holds": holds}, f"{text}\n{verdict}", 0 if holds else 1)
