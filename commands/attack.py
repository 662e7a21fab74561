"""``dpcal attack``: test a privacy claim; the exit status is 1 if the claim breaks."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal import validate
from dpcal._internal.files import text_of
from dpcal.calibrate.runs import SampledRun
from dpcal.commands._shared import drawn
from dpcal.commands._signature import Answer, extends

if TYPE_CHECKING:
    from dpcal.calibrate import Plan

_FEATURES = 5
_OF_ONE = {"plot": "likelihood", "samples": "likelihood", "run": "replay", "trials": "replay"}


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
    given = {"plot": plot, "samples": samples, "run": run, "trials": trials}
    for name, kind in _OF_ONE.items():
        if given[name] is not None and attack != kind:
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
