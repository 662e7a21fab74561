"""``dpcal calibrate``: solve for the noise, the steps or the sampling that meets targets."""

from __future__ import annotations

import json
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal._files import document_of, text_of
from dpcal.calibrate.batching import CORRELATED, PLANNED
from dpcal.commands import training
from dpcal.commands._options import TARGETS, accountant, add_options, fields_of, relation, required
from dpcal.commands.checking.mechanism import Mechanism, add_run, noise_of
from dpcal.commands.checking.output import answer, present, warnings_printed
from dpcal.commands.checking.progress import stage
from dpcal.commands.training.tuning import CORRELATED_NOISE, NOISES
from dpcal.errors import reason_of

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate import Plan

EXAMPLES = (
    "--n 60000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-6 -o plan.json",
    "--sampling-probability 0.01 --steps 10000 --epsilon 1 2 4 --delta 1e-6",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare a mechanism with one unknown, or a run, and the targets."""
    add_run(parser, samplers=CORRELATED)
    add_options(
        parser,
        CORRELATED_NOISE,
        TARGETS,
        relation("the sampler's own"),
        accountant("whose epsilon must meet the target, where the noise is solved for"),
        """
[releases: of a table, which are no run]
--releases FILE:path  find the noise of each of these: [[release]] tables in TOML, with name,
    mechanism, sensitivity, weight and count
[plan: of a run with --n and --batch-size, for 'dpcal train --use-plan' and dpcal.run]
--max-norm C:number=1.0  clipping norm > 0
-o --output FILE:path    write the plan as JSON
""",
        noise=NOISES,
    )


def run(options: Namespace) -> int:
    """Print each solution with the interval of its epsilon."""
    required(options, "epsilon", "delta")
    if options.releases is not None:
        return _releases(options)
    targets = [(epsilon, delta) for epsilon in options.epsilon for delta in options.delta]
    noise = training.correlated_noise(options, "correlated_dpsgd" if options.noise else "dpsgd")
    if noise:
        if len(targets) > 1 or options.n is None or options.noise_multiplier is not None:
            raise ValueError(_NEEDS.format(what="--noise gives", run="run"))
        return _plan(options, _correlated(options, noise, *targets[0]))
    told = Mechanism.of(options)
    name, solve = _unknown(told)
    planned = name == "noise_multiplier" and told.n is not None and told.sampler in PLANNED
    if planned and len(targets) == 1:
        return _plan(options, _dpsgd(options, told, *targets[0]))
    if options.output is not None:
        raise ValueError(_NEEDS.format(what="--output writes", run=f"run by {', '.join(PLANNED)}"))
    if options.accountant != "auto" and name != "noise_multiplier":
        raise ValueError("--accountant is for solving for the noise.")
    documents, texts = [], []
    for epsilon, delta in targets:
        stage(options, f"{name} for epsilon = {epsilon:g} at delta = {delta:g}")
        document, text = _solved(options, told, name, solve, epsilon, delta)
        documents.append(document)
        texts.append(text)
    document = documents[0] if len(documents) == 1 else {"solutions": documents}
    present(options, document, "\n".join(texts))
    return 0


_NEEDS = (
    "{what} the plan of one {run}: it needs --n, --batch-size, one --epsilon and one --delta, and "
    "no --noise-multiplier."
)
_RUN = ("sampling_probability", "n", "batch_size", "steps", "epochs", "noise_multiplier", "output")


def _releases(options: Namespace) -> int:
    """Print the noise of each release of a file."""
    run = fields_of(options, *_RUN)
    if len(options.epsilon) * len(options.delta) > 1 or any(run.values()):
        given = ", ".join(f"--{name.replace('_', '-')}" for name, value in run.items() if value)
        raise ValueError(
            f"--releases goes with one --epsilon, one --delta and no run, got {given or 'several'}."
        )
    must = "--releases must be a readable file"
    text = text_of(options.releases, must)
    try:
        asked = dpcal.calibrate.Release.of(document_of(text, tomllib.loads))
    except ValueError as error:
        raise ValueError(f"{options.releases}: {reason_of(error)}") from error
    (target,), (delta,) = options.epsilon, options.delta
    relation = options.neighboring_relation or "add-or-remove-one"
    stage(options, f"noise of {len(asked)} releases")
    found = dpcal.calibrate.releases(
        asked, epsilon=target, delta=delta, neighboring_relation=relation
    )
    width = max(len(each.name) for each in found.noises)
    lines = [f"{n.name:<{width}}  {n.mechanism}, scale {n.scale!r}" for n in found.noises]
    document = {
        "delta": delta,
        "epsilon": found.epsilon.to_dict(),
        "releases": [
            {"name": each.name, "mechanism": each.mechanism, "scale": each.scale}
            for each in found.noises
        ],
    }
    told = "\n".join(lines) + "\n" + answer("epsilon", found.epsilon, f"delta = {delta:g}")
    present(options, document, told)
    return 0


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
    options: Namespace,
    told: Mechanism,
    name: str,
    event_of: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
) -> tuple[dict[str, Any], str]:
    """Solve for one parameter at one target."""
    target = {"epsilon": epsilon, "delta": delta}
    relation: dict[str, Any] = {"neighboring_relation": told.relation}
    if name == "noise_multiplier":
        solution = noise_of(told, epsilon=epsilon, delta=delta, accountant=options.accountant)
    else:
        solver = {"epochs": "steps"}.get(name, name)
        solution = getattr(dpcal.calibrate, solver)(event_of, **target, **relation)
    price = dpcal.accountants.epsilon(
        event_of(solution), delta=delta, accountant=options.accountant, **relation
    )
    document = {
        name: solution,
        "delta": delta,
        "epsilon": price.to_dict(),
        "mechanism": {**told.to_dict(), name: solution},
    }
    return document, f"{name} = {solution!r}\n" + answer("epsilon", price, f"delta = {delta:g}")


def _dpsgd(options: Namespace, told: Mechanism, epsilon: float, delta: float) -> Plan:
    """Return the plan of DP-SGD with independent noise."""
    by_epochs = told.sampler != "poisson" and told.epochs is not None
    plan: Plan = dpcal.calibrate.dpsgd(
        **fields_of(told, "n", "batch_size", "sampler"),
        **({"epochs": float(told.epochs or 0)} if by_epochs else {"steps": told.steps}),
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=told.relation,
        **fields_of(options, "max_norm", "accountant"),
    )
    return plan


def _correlated(options: Namespace, noise: Mapping[str, Any], epsilon: float, delta: float) -> Plan:
    """Return the plan of DP-SGD with correlated noise."""
    if options.sampler not in CORRELATED:
        raise ValueError(
            f"--sampler must be one of {', '.join(CORRELATED)} with --noise, got "
            f"{options.sampler!r}."
        )
    if options.sampling_probability is not None:
        raise ValueError("--sampling-probability is not for --noise: --batch-size says it.")
    sizes = fields_of(options, "batch_size", "steps", "max_norm", "sampler")
    sizes["epochs"] = None if options.epochs is None else float(options.epochs)
    target = {"epsilon": epsilon, "delta": delta, **fields_of(options, "n", "accountant")}
    target["neighboring_relation"] = options.neighboring_relation or "add-or-remove-one"
    given = {name: value for name, value in sizes.items() if value is not None}
    with warnings_printed():
        return training.correlated_plan(dpcal.calibrate.correlated_dpsgd, noise, target, given)


def _plan(options: Namespace, plan: Plan) -> int:
    """Print, or write, a plan."""
    stage(options, "plan")
    price = plan.price()
    query = plan.query("gradient")
    batches = f"{query.sampler} batches of {plan.parameters['batch_size']} of {plan.n} records"
    text = (
        f"noise_multiplier = {query.noise_multiplier!r} for {query.count} steps on {batches}\n"
        + answer("epsilon", price, f"delta = {plan.delta:g}")
    )
    if options.output is not None:
        dpcal.report.replace_file(options.output, (plan.to_json() + "\n").encode())
        text += f"\nplan written to {options.output}"
    document = {
        "noise_multiplier": query.noise_multiplier,
        "delta": plan.delta,
        "epsilon": price.to_dict(),
        "plan": json.loads(plan.to_json()),
    }
    present(options, document, text)
    return 0
