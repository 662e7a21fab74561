"""``dpcal epsilon``: bound epsilon at deltas, or delta at epsilons."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import dpcal
from dpcal.commands._options import (
    BACKENDS,
    TARGETS,
    accountant,
    add_options,
    backends,
    relation,
)
from dpcal.commands.checking.mechanism import Mechanism, add_run
from dpcal.commands.checking.output import answer, present
from dpcal.commands.checking.progress import stage
from dpcal.errors import UnsupportedEvent

EXAMPLES = (
    "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --delta 1e-6",
    "--n 60000 --batch-size 512 --epochs 100 --noise-multiplier 0.8 --sampler "
    "without-replacement --delta 1e-5 1e-6",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the mechanism, deltas or epsilons, and the accountant."""
    add_run(parser)
    add_options(
        parser,
        TARGETS,
        relation("the sampler's own"),
        accountant("who is asked"),
        """
--cross-check  ask a second accountant, and fail with status 2 if the intervals do not meet
""",
        BACKENDS,
    )


def run(options: Namespace) -> int:
    """Print an interval for each epsilon or delta."""
    if (options.epsilon is None) == (options.delta is None):
        raise ValueError("Exactly one of --delta and --epsilon must be given.")
    told = Mechanism.of(options)
    event = told.event()
    how = {
        "neighboring_relation": told.relation,
        "accountant": options.accountant,
        "cross_check": options.cross_check,
        **_accuracy(options),
    }
    texts, answers = [], []
    for delta in options.delta or ():
        stage(options, f"epsilon at delta = {delta:g}")
        epsilon = dpcal.accountants.epsilon(event, delta=delta, **how)
        answers.append({"delta": delta, "epsilon": epsilon.to_dict()})
        texts.append(answer("epsilon", epsilon, f"delta = {delta:g}"))
    for at in options.epsilon or ():
        stage(options, f"delta at epsilon = {at:g}")
        found = dpcal.accountants.delta(event, epsilon=at, **how)
        answers.append({"epsilon": at, "delta": found.to_dict(), **_log_delta(event, at, how)})
        texts.append(answer("delta", found, f"epsilon = {at:g}"))
    document: dict[str, Any] = {"mechanism": told.to_dict()}
    document |= answers[0] if len(answers) == 1 else {"answers": answers}
    present(options, document, "\n".join(texts))
    return 0


def _log_delta(event: Any, epsilon: float, how: dict[str, Any]) -> dict[str, Any]:
    """The logarithm of delta, which keeps the digits of a small one, where it is known."""
    try:
        found = dpcal.accountants.log_delta(event, epsilon=epsilon, **how)
    except UnsupportedEvent:
        return {}  # A run that is priced as a whole has no logarithm of its own.
    return {"log_delta": found.to_dict()}


def _accuracy(options: Namespace) -> dict[str, float]:
    """Return the accuracy that was given for the one other package."""
    given = backends(options)
    asked = options.accountant
    if asked not in given and options.cross_check:
        asked = "pld"
    for name, values in given.items():
        if values and name != asked:
            raise ValueError(f"Options of {name} were given, but {name} is not asked.")
    return given.get(asked, {})
