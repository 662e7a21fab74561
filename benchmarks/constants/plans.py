"""Questions for plans: what a target asks of each optimizer, and what the plan then costs."""

from functools import partial

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD

CONSTANTS = calibrate.Constants(
    lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1, strong_concavity=0.2
)
TARGET = {"n": 2_000, "epsilon": 4.0, "delta": 1e-5}
PROBLEM = {"dimension": 3}
KL = {**PROBLEM, "gamma": 2.0}
SADDLE = {"dimensions": (2, 2)}
CORRELATED = {"strategy": LambdaCGD(20, 0.5), "batch_size": 100}

# For each optimizer, its builder's arguments beside the constants and the target.
BUILT = {
    "dpsgd": [{"batch_size": 100, "epochs": 1}],
    "noisy_gd": [PROBLEM],
    "spiderboost": [PROBLEM],
    "tree_spider": [{**PROBLEM, "n": 20_000}],
    "recursive_regularization": [PROBLEM],
    "jl_glm": [{"dimension": 400, "embedding_dimension": 5}],
    "kl_spider": [KL, {**KL, "kappa": 1.0}],
    "adaptive_gd": [KL],
    "proximal_point": [{**KL, "kappa": 3.0, "inner_steps": 32}],
    "gauss_psgd": [PROBLEM, {**PROBLEM, "passes": 3, "reset": "fresh"}],
    "distributed_psgd": [PROBLEM],
    "dp_rgda": [{**SADDLE, "steps": 30, "batch_size": 200, "accuracy": 0.5}, SADDLE],
    "dp_sgda": [{**SADDLE, "steps": 60, "batch_size": 100}],
    "privatediff": [{**SADDLE, "steps": 12}],
    "sto_spider": [{**PROBLEM, "steps": 30}],
    "ada_dp_spider": [{**PROBLEM, "steps": 30}],
    "correlated_dpsgd": [
        {**CORRELATED, "statistics": False},
        {**CORRELATED, "draws": 2_000, "seed": 3, "delta": 1e-2},
    ],
}


class CostsMoreError(Exception):
    """A plan costs more than its target."""


def planned(name, options):
    """Return a plan's price, and the noise and the number of its queries."""
    asked = {**TARGET, **options}
    build = getattr(calibrate, name)
    no_constants = ("dpsgd", "correlated_dpsgd")
    plan = build(**asked) if name in no_constants else build(CONSTANTS, **asked)
    price = plan.price()
    if price.upper > asked["epsilon"] * (1 + 1e-9):
        raise CostsMoreError(f"{name} costs {price!r}.")
    found = [(price.lower, price.upper)]
    for query in plan.queries:
        found += [(float(each), float(each)) for each in (query.noise_multiplier, query.count)]
    return found


def compared():
    """Return the noise and the error of strategies side by side."""
    table = calibrate.compare_strategies(steps=32, epsilon=2.0, delta=1e-5)
    found = []
    for row in table.rows:
        found += [(float(each), float(each)) for each in (row.noise_multiplier, row.mean_error)]
    return found


def questions():
    """Return these questions by name."""
    found = {
        f"plan {name} {number}": partial(planned, name, options)
        for name, rows in BUILT.items()
        for number, options in enumerate(rows)
    }
    return {**found, "strategies compared": compared}
