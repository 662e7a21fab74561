"""``dpcal schedule``: a paper's corrected setting as a calibrated plan."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

import dpcal
from dpcal.commands._output import warnings_printed

EXAMPLE = "spiderboost --n 60000 --d 784 --epsilon 1 --delta 1e-6 --L0 1 --L1 1 --F0 1"

CONSTANTS = {
    "d": "dimension",
    "L0": "Lipschitz constant",
    "L1": "smoothness constant",
    "F0": "public bound on the initial gap",
    "gamma": "KL constant, or margin for kan",
    "kappa": "KL exponent in [1, 2]",
    "beta": "failure probability",
    "G": "Lipschitz constant",
    "M": "smoothness constant (gauss_psgd), Lipschitz constant (dp_rgda)",
    "L": "smoothness constant",
    "U": "initial gap",
    "rho": "Lipschitz constant of the Hessian",
    "mu": "strong concavity in the dual variable",
    "d2": "dimension of the dual variable, of the d",
    "K": "inner steps, at least 2",
    "max_norm": "clipping norm",
}
"""What planners may ask for besides n, epsilon and delta."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the paper, the sizes, the target and the problem's constants."""
    parser.add_argument("paper", help="one paper")
    parser.add_argument("--n", type=float, required=True, help="number of records")
    parser.add_argument("--epsilon", type=float, required=True, help="target epsilon")
    parser.add_argument("--delta", type=float, required=True, help="target delta")
    parser.add_argument("--neighboring-relation", help="relation of the guarantee")
    for name, meaning in CONSTANTS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, type=float, help=meaning)


def run(options: Namespace) -> int:
    """Print the plan as JSON, and on standard error what the theorem does not promise."""
    names = (*CONSTANTS, "neighboring_relation")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    with warnings_printed():
        plan = dpcal.calibrate.schedules.load(options.paper).plan(
            n=options.n, epsilon=options.epsilon, delta=options.delta, **given
        )
    document = json.loads(plan.to_json())
    print(json.dumps({**document, "priced_epsilon": float(plan.price())}, indent=2))
    return 0
