"""``dpcal calibrate``: solve for the noise, the steps or the sampling that meets targets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal import validate
from dpcal.calibrate.batching import CORRELATED, PLANNED
from dpcal.commands._mechanism import SAMPLERS, Mechanism, noise_of
from dpcal.commands._shared import Accountant
from dpcal.commands._signature import Answer, extends
from dpcal.report.output import answer

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent
    from dpcal.accountants.matrix import Strategy
    from dpcal.calibrate import Plan

Noise = Literal["lambda-cgd", "banded", "bisr", "blt", "square-root", "tree"]
Drawn = Literal[
    "poisson",
    "random-allocation",
    "without-replacement",
    "with-replacement",
    "shuffled-epochs",
    "cyclic-poisson",
    "min-separation",
    "balls-in-bins",
    "full",
]
# From numbers of steps and of bands to a strategy.
STRATEGIES: Mapping[str, Callable[[int, int], Strategy]] = {
    "banded": lambda steps, bands: dpcal.accountants.matrix.Banded.optimised(steps, bands),
    "bisr": lambda steps, bands: dpcal.accountants.matrix.BISR(steps, bands),
    "blt": lambda steps, bands: dpcal.accountants.matrix.BLT.optimised(steps, bands),
    "square-root": lambda steps, bands: dpcal.accountants.matrix.SquareRoot(steps),
    "tree": lambda steps, bands: dpcal.accountants.matrix.Tree(steps),
}
_NEEDS = (
    "{what} the plan of one {run}: it needs --n, --batch-size, one --epsilon and one --delta, and "
    "no --noise-multiplier."
)


class Correlated:
    """Noise that is correlated from step to step."""

    @staticmethod
    def of(
        *,
        noise: Noise | None = None,
        decay: float | None = None,
        bands: int | None = None,
        separation: int | None = None,
        proved: bool = False,
    ) -> dict[str, Any]:
        """Return the options of correlated noise; none without it.

        Parameters
        ----------
        noise
            What correlates the noise of the steps (default: nothing).
        decay
            For lambda-cgd: share in [0, 1) of the last noise taken back.
        bands
            For banded and bisr: diagonals >= 1 of C or of its inverse (default: 4); for blt:
            buffers.
        separation
            Steps between two of one record, at least.
        proved
            Calibrate by proved bounds, not by draws, with more noise.
        """
        if (decay is not None) != (noise == "lambda-cgd"):
            lacks = decay is None
            raise ValueError(
                "noise='lambda-cgd' needs --decay." if lacks else "decay is for noise='lambda-cgd'."
            )
        if bands is not None and noise not in ("banded", "bisr", "blt"):
            raise ValueError("bands is for --noise banded, bisr or blt.")
        if noise is None and (separation is not None or proved):
            raise ValueError("--separation and --proved go with --noise.")
        kind = {"noise": noise, "decay": decay, "bands": bands}
        return {} if noise is None else {**kind, "separation": separation, "proved": proved}


@extends(Mechanism.of)
def calibrate(
    *,
    sampler: Drawn = "poisson",
    epsilon: Sequence[float],
    delta: Sequence[float],
    accountant: Accountant = "auto",
    correlated: Correlated,
    max_grad_norm: float = 1.0,
    output: Path | None = None,
    **run: Any,
) -> Answer:
    """Solve for the noise, the steps or the sampling that meets (epsilon, delta).

    Parameters
    ----------
    sampler
        How batches are drawn; the last four, and poisson and random-allocation, go with noise.
    epsilon
        Targets > 0, one or more.
    delta
        Of the targets, one or more, in (0, 1).
    accountant
        Its epsilon must meet the target, where the noise is solved for.
    max_grad_norm
        Clipping norm > 0 of a plan.
    output
        Write the plan of a run with n and batch_size as JSON, for 'dpcal train --use-plan'.

    Examples
    --------
    dpcal calibrate --n 60000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-6 -o plan.json
    dpcal calibrate --sampling-probability 0.01 --steps 10000 --epsilon 1 2 4 --delta 1e-6
    """
    noise: Any = correlated
    targets = [(target, at) for target in epsilon for at in delta]
    how: dict[str, Any] = {"max_norm": max_grad_norm, "accountant": accountant}
    if noise:
        if len(targets) > 1 or run["n"] is None or run["noise_multiplier"] is not None:
            raise ValueError(_NEEDS.format(what="--noise gives", run="run"))
        (target, at), *_ = targets
        how |= {"epsilon": target, "delta": at, "sampler": sampler}
        return _plan(_correlated(noise, **run, **how), output)
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler {sampler} goes with --noise.")
    told = Mechanism.of(sampler=sampler, **run)  # type: ignore[arg-type]
    name, solve = _unknown(told)
    planned = name == "noise_multiplier" and told.n is not None and told.sampler in PLANNED
    if planned and len(targets) == 1:
        return _plan(_dpsgd(told, *targets[0], **how), output)
    if output is not None:
        raise ValueError(_NEEDS.format(what="--output writes", run=f"run by {', '.join(PLANNED)}"))
    if accountant != "auto" and name != "noise_multiplier":
        raise ValueError("--accountant is for solving for the noise.")
    solved = [_solved(told, name, solve, accountant, *target) for target in targets]
    documents, texts = zip(*solved, strict=True)
    document = documents[0] if len(documents) == 1 else {"solutions": list(documents)}
    return Answer(document, "\n".join(texts))


def _unknown(told: Mechanism) -> tuple[str, Callable[[float], DpEvent]]:
    """Return the name of the one missing parameter, and the event as a function of its value."""
    unknown = [
        name for name in ("noise_multiplier", "steps", "rate") if getattr(told, name) is None
    ]
    if told.sampler in ("random-allocation", "shuffled-epochs"):
        unknown = ["epochs" if name == "steps" else name for name in unknown]
    if len(unknown) != 1:
        raise ValueError(
            "Exactly one of --noise-multiplier, --steps (or --epochs) and --sampling-probability "
            f"(or --n and --batch-size) must be left out, to be solved for, but {len(unknown)} are."
        )
    (name,) = unknown
    if name == "epochs":
        return name, lambda value: told.event(epochs=Fraction(value))
    if name == "rate":
        if told.sampler != "poisson":
            raise ValueError(f"--sampler {told.sampler} needs --n and --batch-size.")
        return "sampling_probability", lambda value: told.event(rate=Fraction(value))
    return name, lambda value: told.event(**{name: value})


def _solved(
    told: Mechanism,
    name: str,
    event_of: Callable[[float], DpEvent],
    accountant: str,
    epsilon: float,
    delta: float,
) -> tuple[dict[str, Any], str]:
    """Solve for one parameter at one target."""
    target = {"epsilon": epsilon, "delta": delta}
    relation: dict[str, Any] = {"neighboring_relation": told.relation}
    if name == "noise_multiplier":
        solution = noise_of(told, epsilon=epsilon, delta=delta, accountant=accountant)
    else:
        solver = {"epochs": "steps"}.get(name, name)
        solution = getattr(dpcal.calibrate, solver)(event_of, **target, **relation)
    price = dpcal.accountants.epsilon(
        event_of(solution), delta=delta, accountant=accountant, **relation
    )
    document = {
        name: solution,
        "delta": delta,
        "epsilon": price.to_dict(),
        "mechanism": {**told.to_dict(), name: solution},
    }
    return document, f"{name} = {solution!r}\n" + answer("epsilon", price, f"delta = {delta:g}")


def _dpsgd(told: Mechanism, epsilon: float, delta: float, **how: Any) -> Plan:
    """Return the plan of DP-SGD with independent noise."""
    by_epochs = told.sampler != "poisson" and told.epochs is not None
    length: dict[str, Any] = (
        {"epochs": float(told.epochs or 0)} if by_epochs else {"steps": told.steps}
    )
    sizes: dict[str, Any] = {"n": told.n, "batch_size": told.batch_size, "sampler": told.sampler}
    target: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "neighboring_relation": told.relation,
    }
    plan: Plan = dpcal.calibrate.dpsgd(**sizes, **length, **target, **how)
    return plan


def _correlated(
    noise: Mapping[str, Any],
    *,
    epsilon: float,
    delta: float,
    sampler: str,
    n: int,
    batch_size: int | None,
    sampling_probability: Fraction | None,
    steps: int | None,
    epochs: Fraction | None,
    neighboring_relation: str | None,
    **how: Any,
) -> Plan:
    """Return the plan of DP-SGD with correlated noise."""
    if sampler not in CORRELATED:
        raise ValueError(
            f"sampler must be one of {', '.join(CORRELATED)} with --noise, got {sampler!r}."
        )
    if sampling_probability is not None:
        raise ValueError("--sampling-probability is not for --noise: --batch-size says it.")
    if epochs is not None and steps is not None:
        raise ValueError("--epochs and --steps exclude each other.")
    del how["noise_multiplier"]
    if batch_size is None:
        batch_size = n if sampler == "full" else min(n, max(64, math.ceil(3 * math.sqrt(n))))
    if steps is None:
        passes = validate.positive(epochs=20.0 if epochs is None else float(epochs))
        steps = math.ceil(passes * n / batch_size)
    if noise["noise"] == "lambda-cgd":
        strategy: Strategy = dpcal.accountants.matrix.LambdaCGD(steps, noise["decay"])
    else:
        strategy = STRATEGIES[noise["noise"]](steps, min(noise["bands"] or 4, steps))
    plan: Plan = dpcal.calibrate.correlated_dpsgd(
        strategy,
        n=n,
        batch_size=batch_size,
        sampler=sampler,
        separation=noise["separation"],
        statistics=not noise["proved"],
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=neighboring_relation or "add-or-remove-one",
        **how,
    )
    return plan


def _plan(plan: Plan, output: Path | None) -> Answer:
    """Return, and write, a plan."""
    price = plan.price()
    query = plan.query("gradient")
    batches = f"{query.sampler} batches of {plan.parameters['batch_size']} of {plan.n} records"
    text = (
        f"noise_multiplier = {query.noise_multiplier!r} for {query.count} steps on {batches}\n"
        + answer("epsilon", price, f"delta = {plan.delta:g}")
    )
    if output is not None:
        dpcal.report.replace_file(output, (plan.to_json() + "\n").encode())
        text += f"\nplan written to {output}"
    document = {
        "noise_multiplier": query.noise_multiplier,
        "delta": plan.delta,
        "epsilon": price.to_dict(),
        "plan": json.loads(plan.to_json()),
    }
    return Answer(document, text)
