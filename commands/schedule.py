"""``dpcal schedule``: a paper's corrected setting as a calibrated plan."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

import dpcal
from dpcal.commands._options import fields_of, number, whole
from dpcal.commands.checking.output import warnings_printed

EXAMPLES = (
    "spiderboost --n 60000 --d 784 --epsilon 1 --delta 1e-6 --L0 1 --L1 1 --F0 1",
    "spiderboost --n 60000 --d 784 --epsilon 2 --delta 1e-6 --L0 1 --L1 1 --F0 1 --json",
)

SCHEDULES = {
    "spiderboost": ("Arora et al. 2022, Algorithm 1", "d L0 L1 F0"),
    "tree_spider": ("Arora et al. 2022, Algorithm 2", "d L0 L1 F0 [beta]"),
    "recursive_regularization": ("Arora et al. 2022, Algorithm 3", "d L0 L1 [W]"),
    "jl_glm": ("Arora et al. 2022, Algorithm 4", "d L0 L1 F0 [rank]"),
    "kl_condition": ("Menart et al. 2024, Algorithm 1", "d L0 L1 F0 gamma [kappa beta]"),
    "proximal_point": ("Menart et al. 2024, Algorithm 2", "d L0 F0 gamma [kappa beta Ltil]"),
    "adaptive_gd": ("Menart et al. 2024, Algorithm 3", "d L0 L1 F0 gamma [kappa beta]"),
    "gauss_psgd": ("Tao et al. 2025, Algorithms 1 and 2", "d G M U rho"),
    "select_point": ("Tao et al. 2025, Algorithm 4", "d G M rho candidates alpha [beta]"),
    "dp_rgda": ("Xu et al. 2026, Theorem 1", "d M L F0 mu rho [d2 K]"),
    "kan": ("Wang et al. 2026, Corollaries 5.3 to 5.6", "d gamma [corollary max_norm lam rho]"),
    "moments": ("Abadi et al. 2016, Algorithm 1", "q T [max_norm]"),
}
"""What may be asked for: source, and constants that it takes; those in brackets are optional."""

CONSTANTS = {
    "d": "dimension",
    "d2": "dimension of the maximized variable (dp_rgda)",
    "L0": "Lipschitz constant",
    "L1": "smoothness constant",
    "F0": "public bound on the initial gap",
    "gamma": "KL constant, or margin for kan",
    "kappa": "KL exponent: in [1, 2], or at least 2 for proximal_point",
    "beta": "failure probability",
    "Ltil": "weak convexity constant (proximal_point)",
    "W": "public bound on the norm of a minimizer (recursive_regularization)",
    "rank": "public bound on the rank of the features (jl_glm)",
    "G": "Lipschitz constant",
    "M": "smoothness constant (gauss_psgd, select_point), Lipschitz constant (dp_rgda)",
    "L": "smoothness constant",
    "U": "initial gap",
    "mu": "strong concavity (dp_rgda)",
    "rho": "Lipschitz constant of the Hessian; for kan and 5.3, sampling rate",
    "K": "inner steps, at least 2 (dp_rgda)",
    "candidates": "number of points (select_point)",
    "alpha": "accuracy of a candidate (select_point)",
    "corollary": "5.3, 5.5 (the default without lam) or 5.6, of SGD without noise (kan)",
    "max_norm": "clipping norm (kan, moments)",
    "lam": "correlation of the noise (kan)",
    "q": "sampling probability (moments)",
    "T": "steps (moments)",
}
"""What planners may ask for besides n, epsilon and delta."""

_WHOLE = ("d2", "rank", "K", "T", "candidates")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the paper, the sizes, the target and the problem's constants."""
    known = "; ".join(
        f"{name} ({source}) takes {needs}" for name, (source, needs) in SCHEDULES.items()
    )
    parser.add_argument("schedule", help=f"one of: {known}")
    parser.add_argument("--n", type=number, required=True, help="number of records")
    parser.add_argument("--epsilon", type=number, required=True, help="target epsilon")
    parser.add_argument("--delta", type=number, required=True, help="target delta")
    parser.add_argument("--neighboring-relation", help="relation of the guarantee")
    for name, meaning in CONSTANTS.items():
        kind = str if name == "corollary" else whole if name in _WHOLE else number
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, type=kind, help=meaning)


def run(options: Namespace) -> int:
    """Print the plan as JSON, and on standard error what the theorem does not promise."""
    values = fields_of(options, "n", "epsilon", "delta", "neighboring_relation", *CONSTANTS)
    given = {name: value for name, value in values.items() if value is not None}
    with warnings_printed():
        plan = dpcal.calibrate.schedules.plan_of(options.schedule, **given)
    document = {**json.loads(plan.to_json()), "priced_epsilon": float(plan.price())}
    print(json.dumps({**document, "accuracy_kind": plan.accuracy_kind}, indent=2))
    return 0
