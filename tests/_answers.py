"""One small problem, queries and oracles, and an objective that notes what it is asked."""

import numpy as np
from scipy.stats import chisquare

from dpcal.calibrate import Plan, Query
from dpcal.optim import FromGradients, Logistic, PrivateOracle, Result, Trace
from dpcal.optim.objectives.contributions import Asked, trusted

RNG = np.random.default_rng(0)
N, D = 60, 4
X = RNG.standard_normal((N, D - 1))
Y = RNG.integers(0, 2, N)
W, V = RNG.standard_normal((2, D))
LOGISTIC = Logistic(X, Y, l2=0.2, classes=[0, 1])
EVERYONE = np.arange(N, dtype=np.intp)

FULL = {"sampler": "full"}
POISSON = {"sampler": "poisson", "sampling_probability": 0.3}
FIXED = {"sampler": "fixed-size", "batch_size": 12}


def query(name="q", kind="gradient", **changes):
    given = {"max_norm": 0.5, "noise_multiplier": 2.0, "count": 10, **FULL, **changes}
    return Query(name=name, kind=kind, **given)


def plan_for(*queries, relation="replace-special", n=N, **fields):
    given = {"optimizer": "test", "epsilon": 1.0, "delta": 1e-5, **fields}
    return Plan(n=n, queries=queries, neighboring_relation=relation, **given)


def oracle_for(*queries, relation="replace-special", objective=LOGISTIC, **options):
    return PrivateOracle(objective, plan_for(*queries, relation=relation), **{"seed": 0, **options})


@trusted
class Hooked(Logistic):
    """Sums over the rows that ``chosen`` gives, each changed by ``told``."""

    def __init__(self):
        super().__init__(X, Y, l2=0.2, classes=[0, 1])
        self.seen, self.checked = [], True

    def __init_subclass__(cls):
        trusted(cls)  # what a subclass does to a sum is a test's

    def chosen(self, rows):
        return rows

    def told(self, total, rows):
        return total

    def contributions(self, rows, *at):
        return self.hooked(super().contributions(self.chosen(rows), *at), rows)

    def loss_contributions(self, rows, w):
        return self.hooked(super().loss_contributions(self.chosen(rows), w), rows)

    def hooked(self, found, rows):
        def sums(how):
            return lambda bound: self.told(getattr(found, how)(bound), rows)

        return Asked(found.size, sums("clipped"), sums("whole"))


class Watched(Hooked):
    """Notes which rows each sum was over."""

    def chosen(self, rows):
        if len(rows):  # an oracle asks about none, to see what is handed over
            self.seen.append(rows.copy())
        return rows


def untouchable():
    def fail(w, rows):
        raise AssertionError("a record was touched")

    return FromGradients(fail, n=N, dimension=D, loss=fail)


def parted(name, size, count, *, kind="gradient", partition="p", each=1, **changes):
    sizes = {"sampler": "fixed-size", "batch_size": size, "count": count, "answers_per_part": each}
    parts = {"composition": "disjoint", "partition": partition, "noise_multiplier": 3.0, **changes}
    return query(name, kind, **sizes, **parts)


def adaptive_plan(budget=2.0, *, relation="replace-one", count=1000):
    asked = (
        query("g", budget=budget, noise_multiplier=budget, count=count),
        query("n", "gradient norm", budget=budget, noise_multiplier=2 * budget, count=count),
    )
    return plan_for(*asked, relation=relation)


def result_of(oracle, **options):
    trace = Trace(step=np.array([1]), norm=np.array([0.0]), distance=np.array([0.0]))
    given = {"complete": True, "message": "done", **options}
    return Result(w=W, trace=trace, ledger=oracle.ledger, plan=oracle.plan, **given)


def check_law(seen, weights):
    """Compare counts with a law: of right laws, one in 10^6 is refused."""
    expected = seen.sum() * weights / weights.sum()
    likely = expected > 5
    assert not seen[weights == 0].any()
    total = seen[likely].sum() / expected[likely].sum()
    assert chisquare(seen[likely], expected[likely] * total).pvalue > 1e-6
