r"""What do the theorems on DP-RGDA set, once they are corrected? On records, and on a population.

On empirical risk (Theorem 1 and Lemma 6, corrected), with the rate variable ``eb = sqrt(d) z / n``,
z being the exact noise scale of the run in place of ``sqrt(log(1 / delta)) / epsilon`` and an
unknown constant:

    T = max((L F0)^(1/3) M^(-2/3) eb^(-4/3), 1 / eb)       q = 1 / (T eb^2)       b1 = n
    b2 = max(1 / (T eb^2), n / sqrt(T K))          alpha = (sqrt(F0 L M) eb)^(2/3) + M eb

On a population one pass over disjoint batches costs one Gaussian release. The exponent 1/2 that
Theorem 2 states is not reached by this estimator:

>>> small, large = (OnePass.solve(n, noise=1e5, inner=2).accuracy for n in (10**10, 10**13))
>>> import math
>>> print(f"{math.log10(large / small) / 3:.3f}, and 3/7 is {3 / 7:.3f}")
-0.427, and 3/7 is 0.429
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from dpcal import _validate
from dpcal._roots import Sides, Stop, bisect
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import (
    promise,
    replaced_in_place,
    rounded_down,
    rounded_up,
    warn_below_noise,
)
from dpcal.calibrate.plans.minimax.setting import Options, Setting
from dpcal.calibrate.plans.spiderboost import check_enough_records
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases, settled_counts
from dpcal.calibrate.query import Query

__all__ = ["OnePass", "empirical", "population"]

# Failure probability of the perturbation that the length of an escape is chosen for. It enters by
# its logarithm.
_FAILURE = 0.1


def empirical(setting: Setting, options: Options) -> Plan:
    """Return the plan of Theorem 1 and Lemma 6, corrected, on empirical risk.

    Of ``options``, ``inner_steps`` is read.
    """
    n, d, M, L = setting.n, setting.d1 + setting.d2, setting.C, setting.L
    F0, K = setting.known_gap("gap"), _inner(setting, options)
    cap = math.sqrt(F0 * L) / M

    def counts_at(rate: float) -> Releases:
        check_enough_records(n, rate, cap, "eb <= 1 and sqrt(F0 L) eb <= M", "eb")
        T = rounded_up(max(math.cbrt(L * F0 / M**2) * rate ** (-4 / 3), 1 / rate))
        q = min(T, rounded_down(1 / (T * rate**2)))
        b2 = rounded_up(min(n, max(1 / (T * rate**2), n / math.sqrt(T * K))))
        return Releases(
            n=n,
            steps=T,
            period=q,
            refresh_size=n,
            batch_size=b2,
            relation=setting.target.relation,
            inner=K,
        )

    releases, scale, rate = settled_counts(counts_at, setting.target, n=n, d=d)
    # At other sizes the noise scale is near sqrt(2) times that of one release.
    elsewhere = max(1.0, 1.05 * math.sqrt(2) * setting.z / scale)

    def accuracy(size: float) -> float:
        there = rate * n / size * (1 if size == n else elsewhere)
        return float((math.sqrt(F0 * L * M) * there) ** (2 / 3) + M * there)

    record = promise("dp_rgda", accuracy(n), ("Lipschitz constant", M), accuracy, n)
    multipliers = releases.multipliers(scale)
    bounds = Bounds(gradient=M, difference=L)
    parameters = _parameters(setting, releases, bounds, multipliers, accuracy(n))
    queries = releases.queries(multipliers, bounds)
    return setting.target.plan("dp_rgda", n, queries, {**parameters, **record})


def population(setting: Setting, options: Options) -> Plan:
    """Return the plan of one pass over disjoint batches, on population risk.

    Gradients are in units of their bound M. Of ``options``, ``inner_steps`` is read.

    Raises
    ------
    ValueError
        If the records do not suffice for an accuracy below M, or the relation moves records
        between batches.
    """
    relation = setting.target.relation
    replaced_in_place(relation)
    K, M = _inner(setting, options), setting.C
    noise = math.sqrt(setting.d1 + setting.d2) * setting.z
    descent = setting.L_Phi * setting.known_gap("gap") / M**2
    chosen = OnePass.solve(setting.n, noise=noise, inner=K, descent=descent)
    releases = Releases(
        n=setting.n,
        steps=chosen.steps,
        period=chosen.period,
        inner=K,
        refresh_size=chosen.refresh_size,
        batch_size=chosen.batch_size,
        relation=relation,
    )
    bounds, multipliers = Bounds(gradient=M, difference=setting.L), (setting.z, setting.z)
    sizes = (chosen.refresh_size, chosen.batch_size)
    pairs = zip(releases.queries(multipliers, bounds), sizes, strict=False)
    queries = tuple(_disjoint(query, size) for query, size in pairs)
    alpha = chosen.accuracy * M
    record = promise(
        "dp_rgda",
        alpha,
        ("Lipschitz constant", M),
        lambda size: M * OnePass.solve(size, noise=noise, inner=K, descent=descent).accuracy,
        setting.n,
    )
    parameters = _parameters(setting, releases, bounds, multipliers, alpha)
    parameters |= {**record, "preset": "population"}
    return setting.target.plan("dp_rgda", setting.n, queries, parameters)


@dataclass(frozen=True, kw_only=True)
class OnePass:
    """A schedule that reads each record once, in units where gradients are at most 1.

    Parameters
    ----------
    accuracy
        alpha, relative to the bound on gradients.
    steps, period
        T and q.
    refresh_size, batch_size
        b1 and b2; ``ceil(T / q) b1 + (T K - ceil(T / q)) b2 <= n``.
    """

    accuracy: float
    steps: int
    period: int
    refresh_size: int
    batch_size: int

    @classmethod
    def at(cls, accuracy: float, *, noise: float, descent: float) -> OnePass:
        """Return the schedule that reaches an accuracy, however many records that takes."""
        b1 = rounded_up(max(accuracy**-2, noise / accuracy))
        period = math.sqrt(b1) if b1 >= noise**4 else (b1 / noise) ** (2 / 3)
        steps = rounded_up(4 * descent / accuracy**2)
        q = min(steps, rounded_down(period))
        return cls(
            accuracy=accuracy,
            steps=steps,
            period=q,
            refresh_size=b1,
            batch_size=rounded_up(max(q, noise * math.sqrt(q))),
        )

    @classmethod
    def solve(cls, n: float, *, noise: float, inner: int, descent: float = 1.0) -> OnePass:
        """Return the schedule with the least accuracy that ``n`` records suffice for.

        Parameters
        ----------
        n
            Number of records.
        noise
            ``rr``: sqrt(d) times the multiplier of one release that spends the target.
        inner
            K.
        descent
            ``L_Phi F0``, in units of the squared bound on gradients.

        Raises
        ------
        ValueError
            If they suffice for no accuracy below 10^3.
        """

        def fits(log_alpha: float) -> bool:
            return cls.at(math.exp(log_alpha), noise=noise, descent=descent).records(inner) <= n

        low, high = math.log(1e-12), math.log(1e3)
        if not fits(high):
            least = cls.at(1e3, noise=noise, descent=descent).records(inner)
            raise ValueError(
                f"n must be at least {least} for one pass over disjoint batches, got {n:g}."
            )
        high = bisect(fits, Sides(meet=high, miss=low), Stop(evaluations=60)).meet
        return cls.at(math.exp(high), noise=noise, descent=descent)

    def records(self, inner: int) -> int:
        """Return how many records the schedule reads with K = ``inner``."""
        refreshes = -(-self.steps // self.period)
        increments = self.steps * inner - refreshes
        return refreshes * self.refresh_size + increments * self.batch_size


def _inner(setting: Setting, options: Options) -> int:
    default = 2 if setting.d2 else 1
    return _validate.count(inner_steps=options.inner_steps or default)


def _parameters(
    setting: Setting,
    releases: Releases,
    bounds: Bounds,
    multipliers: tuple[float, float],
    alpha: float,
) -> dict[str, Parameter]:
    """Return steps of descent, and the escape of Lemma 6, corrected, at its caps."""
    length, rate = alpha / (2 * setting.L_Phi), 1 / setting.L_Phi
    iota = math.log(8 * math.sqrt(setting.d1) / _FAILURE)
    curvature = math.sqrt(setting.value_hessian_lipschitz * alpha)
    R = curvature / (24 * setting.value_hessian_lipschitz * iota)
    patience = math.ceil(1 + 2 * iota / (rate * curvature))
    movement = (R / 2 / patience) ** 2
    floor = setting.floor(setting.errors(releases, bounds, length), multipliers)
    quiet = min(alpha, math.sqrt(movement) / rate)
    told = "the mean norm of estimated gradients in an escape phase"
    warn_below_noise("dp_rgda", setting.n, told, quiet, floor)
    return {
        "preset": "theory",
        "algorithm": "corrected",
        **setting.dimensions,
        "steps": releases.steps,
        "period": releases.period,
        "inner_steps": releases.inner,
        "refresh_size": releases.refresh_size,
        "batch_size": releases.batch_size,
        "step": "normalised",
        "step_length": length,
        "ascent_rate": 1 / setting.L,
        "escape_steps": patience,
        "escape_rate": rate,
        "perturbation": R / 2,
        "movement": movement,
        "select": "last",
        "warm_start": 0,
        "noise_floor": floor,
        "certifiable": floor < quiet,
    }


def _disjoint(query: Query, size: int) -> Query:
    """Return a query on parts of one partition of the records."""
    return dataclasses.replace(
        query,
        sampler="fixed-size",
        sampling_probability=None,
        batch_size=size,
        composition="disjoint",
        partition="one pass",
    )
