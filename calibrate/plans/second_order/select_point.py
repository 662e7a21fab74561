r"""Which of several points is a second-order one? Noise and thresholds of a private test.

Each candidate is tested on records that no candidate was trained on, or the costs of both are added
up. With gradients and Hessians (Tao et al. 2025, Algorithm 4) every record is in 2 T Gaussian
answers; with comparisons only (one silo) epsilon does not grow with T:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=5**0.5, smoothness=1.0, hessian_lipschitz=1.0)
>>> target = dict(n=20_000, dimension=5, epsilon=1.0, delta=1e-6)
>>> for method in ("gaussian", "above-threshold"):
...     plan = select_point(constants, candidates=50, accuracy=0.5, method=method, **target)
...     print(f"{method}: from alpha = 0.5 to {plan.parameters['accuracy']:.3f}")
gaussian: from alpha = 0.5 to 0.931
above-threshold: from alpha = 0.5 to 0.675

Thresholds, with beta = omega / (4 T), N = m n and sigma the noise of one coordinate of a mean:

    e_g = G / sqrt(N) (1 + sqrt(2 ln(1 / beta)))
          + sigma_g / sqrt(m) (sqrt(d) + sqrt(2 ln(1 / beta)))
    e_H = M sqrt(2 L / N) + 4 M L / (3 N) + sigma_H / sqrt(m) (2 sqrt(d) + 2 sqrt(ln(2 / beta)))

with L = ln(2 d / beta). A candidate passes if its gradient is at most alpha + e_g and its smallest
eigenvalue at least -(sqrt(rho alpha) + e_H). Then, up to probability omega, every alpha-point
passes, and every point that passes is an alpha'-point with alpha' = max(alpha + 2 e_g, (sqrt(rho
alpha) + 2 e_H)^2 / rho). For comparisons the noise in e_g and e_H is the scores', 3 b ln(1 / beta)
contributions; for scores with Gaussian noise of standard deviation z, z sqrt(2 ln(1 / beta)). The
power method takes half of the budget for gradients, and half for k products with the Hessian, with
errors as follows.

The power method on B = M I - H from a random direction: with fresh noise e_i in each product,

    y_i = B v_i + e_i,    v_i+1 = y_i / ||y_i||,    e_i ~ N(0, s^2 I),    v_0 uniform on the sphere.

Let H have its eigenvalues in [-M, M] and the smallest at -mu, so that b = M + mu is the largest of
B, with unit eigenvector q, and let a_i = <q, v_i>. Suppose that every v_i' H v_i is above -mu + xi.
Then ||B v_i||^2 <= b v_i' B v_i <= b (b - xi), since B^2 <= b B. Where <B v_i, e_i> <= b s t and
||e_i|| <= s (sqrt(d) + t), it follows that ||y_i|| <= b / g with

    g^-2 = 1 - xi / b + 2 s t / b + s^2 (sqrt(d) + t)^2 / b^2,

and abs(a_i+1) >= g abs(a_i + <q, e_i> / b). The size of c + N(0, 1) grows stochastically with the
size of c. So the size of a_k is stochastically at least the size of W_k, where W_i+1 = g (W_i +
N(0, s^2 / b^2)) and W_0 is normal with standard deviation 1 / (sqrt(d) + t): noise helps to leave a
bad start. W_k is normal with

    V = g^2k / (sqrt(d) + t)^2 + (s^2 / b^2) (g^2 + ... + g^2k),

but abs(a_k) <= 1, which has a chance of at most sqrt(2 / (pi V)). Five chances of ``failure / 5``
make up the whole: this one, the start's, the norms of all e_i, all <B v_i, e_i>, and the noise s t
of all released v_i' (H v_i). No gap between eigenvalues is needed. Where s sqrt(d) is small, xi is
about s^2 d / b, and so the noise matters in proportion to d / n^2, not to d / n.

>>> no_noise = Power(products=60, noise=0.0, dimension=100, failure=0.01)
>>> print(f"{no_noise.missed(0.1):.2f} {Power(240, 0.0, 100, 0.01).missed(0.1):.2f}")
0.47 0.18
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple

from dpcal._internal import validate
from dpcal._internal.roots import Sides, Stop, bisect
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.query import Query

METHODS = ("gaussian", "power-method", "gaussian-score", "above-threshold", "report-noisy-max")
_OF_SILOS = ("gaussian", "power-method")
_SCORED = {
    "gaussian-score": "saddle score",
    "above-threshold": "above threshold",
    "report-noisy-max": "noisy max",
}


_RATIO = 1.2
_MOST_PRODUCTS = 5_000
# Error over the least error: fewer products, each a pass over the records, are worth this.
_NEAR = 1.03


@common.builder("replace-one")
def select_point(
    given: Given,
    *,
    candidates: int,
    accuracy: float,
    method: str = "gaussian",
    silos: int = 1,
    rank: int | None = None,
    max_norm: float | None = None,
    failure_probability: float = 0.1,
) -> Plan:
    """Return the plan of a private test of candidates that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``smoothness`` M, ``hessian_lipschitz`` rho and ``lipschitz`` G (unless ``max_norm`` is
        given).
    n
        Number of records of each silo's holdout.
    epsilon
        Above 0 for comparisons, which have no delta.
    candidates
        The most candidates, T >= 1. The cost covers all of them, however few are tested.
    accuracy
        alpha > 0: an alpha-second-order point is to be found.
    method
        ``"gaussian"`` (a noisy gradient and a noisy Hessian of each candidate; Algorithm 4),
        ``"power-method"`` (a noisy gradient, and noisy products of the Hessian with vectors, by
        which the power method seeks a negative eigenvalue; Remark 5: less noise in many dimensions,
        for objectives without a regularizer), ``"gaussian-score"`` (one noisy number of each: how
        far it is from passing, in units of one record's contribution; its noise grows as sqrt(T)
        and not with d), ``"above-threshold"`` (the first candidate with a noisy score below a noisy
        threshold) or ``"report-noisy-max"`` (the candidate with the best noisy score; none is
        refused). The last three are for one silo: local scores do not bound the mean over silos.
    silos
        Number of silos that are averaged, m >= 1.
    rank
        Public bound on the rank of one record's Hessian, in [1, d]: 1 for linear models. Noise on
        Hessians is in proportion to its root.
    failure_probability
        omega in (0, 1), of the claims about the outcome.

    Returns
    -------
    Plan
        Queries ``"gradient"`` and ``"hessian"`` or ``"product"``, or ``"score"``, about all
        records. ``parameters`` holds the thresholds, ``candidates``, and ``accuracy``, the alpha'
        of an accepted point.

    References
    ----------
    Tao, Zhang, Yu, Cheng, Dressler and Wang 2025, Algorithm 4, Remark 5 and section 3.2, with exact
    Gaussian composition in place of Lemma 16 (erratum E11); Liu, Ganesh, Oh and Thakurta 2023 for
    comparisons; Wang, Chen and Xu 2019 for one silo.
    """
    validate.choice(METHODS, method=method)
    T, m = validate.count(candidates=candidates), validate.count(silos=silos)
    if m > 1 and method not in _OF_SILOS:
        raise ValueError(
            f"silos must be 1 for method={method!r}, got {m}: thresholds on local scores say "
            "nothing of the mean over silos. Use method='gaussian' or 'power-method'."
        )
    test = _Test(
        **vars(given),
        m=m,
        T=T,
        G=given.known("lipschitz", "max_norm", max_norm),
        M=given.known("smoothness"),
        rho=given.known("hessian_lipschitz"),
        root_of_rank=math.sqrt(
            min(given.d, validate.count(rank=given.d if rank is None else rank))
        ),
        alpha=validate.positive(accuracy=accuracy),
        omega=validate.probability(failure_probability=failure_probability),
    )
    queries, slack = test.settled(method)
    root = math.sqrt(test.rho * test.alpha)
    flat = test.alpha + 2 * slack.gradient
    parameters: dict[str, Parameter] = {
        "method": method,
        "thresholds": "explicit",
        "candidates": T,
        "silos": m,
        "failure_probability": test.omega,
        "sought": test.alpha,
        "max_norm": test.G,
        "hessian_norm": test.M,
        "gradient_threshold": test.alpha + slack.gradient,
        "hessian_threshold": root + slack.hessian,
        "accuracy": max(flat, (root + slack.beyond) ** 2 / test.rho),
    }
    return given.plan("select_point", queries, parameters)


class _Slack(NamedTuple):
    """e_g, the slack e_H of the threshold, and how far below it a point that passes may be."""

    gradient: float
    hessian: float
    beyond: float


@dataclass(frozen=True, kw_only=True)
class _Test(Given):
    """Checked numbers of the test, in the letters of the module."""

    m: int
    T: int
    G: float
    M: float
    rho: float
    root_of_rank: float
    alpha: float
    omega: float

    @property
    def beta(self) -> float:
        """The failure probability of one of four bounds on one candidate."""
        return self.omega / (4 * self.T)

    @property
    def tail(self) -> float:
        """Number that a standard normal variable exceeds with probability at most beta."""
        return math.sqrt(2 * math.log(1 / self.beta))

    @property
    def sampling(self) -> tuple[float, float]:
        """Distances of means over the records from means over the population."""
        N, L = self.m * self.n, math.log(2 * self.d / self.beta)
        gradient = self.G / math.sqrt(N) * (1 + self.tail)
        return gradient, self.M * math.sqrt(2 * L / N) + 4 * self.M * L / (3 * N)

    def settled(self, method: str) -> tuple[tuple[Query, ...], _Slack]:
        """Return the queries of a method, with the slack of its thresholds."""
        if method in _OF_SILOS:
            z = common.repeated(self.z, 2 * self.T)
            return self.products(z) if method == "power-method" else self.answers(z)
        if method == "gaussian-score":
            scale = common.repeated(self.z, self.T)
            noise = scale * self.tail  # one tail of one number, on either side of the threshold
        else:
            moved = 2 if self.target.relation == "replace-one" else 1
            scale = 2 * moved / validate.positive(epsilon=self.target.epsilon) * (1 + 1e-9)
            noise = 3 * scale * math.log(1 / self.beta)
        count = 1 if method == "report-noisy-max" else self.T
        score = common.gradients(1.0, scale, count, name="score", kind=_SCORED[method])
        gradient, hessian = self.sampling
        e_H = hessian + self.M * (noise / self.n)
        return (score,), _Slack(gradient + self.G * (noise / self.n), e_H, 2 * e_H)

    def gradient_slack(self, multiplier: float) -> float:
        """Return e_g of noisy gradients."""
        noise = multiplier * self.G / self.n / math.sqrt(self.m)
        return self.sampling[0] + noise * (math.sqrt(self.d) + self.tail)

    def answers(self, multiplier: float) -> tuple[tuple[Query, ...], _Slack]:
        """Return the queries of Algorithm 4, with one noise multiplier, and their slack."""
        gradient, norm = common.gradients(self.G, multiplier, self.T), self.M * self.root_of_rank
        hessian = dataclasses.replace(gradient, name="hessian", kind="hessian", max_norm=norm)
        wide = 2 * math.sqrt(self.d) + 2 * math.sqrt(math.log(2 / self.beta))
        e_H = self.sampling[1] + multiplier * norm / self.n / math.sqrt(self.m) * wide
        return (gradient, hessian), _Slack(self.gradient_slack(multiplier), e_H, 2 * e_H)

    def products(self, multiplier: float) -> tuple[tuple[Query, ...], _Slack]:
        """Return the queries and the slack of the power method, half of the budget each."""
        root, sampling = math.sqrt(self.rho * self.alpha), self.sampling[1]
        one = multiplier / self.n / math.sqrt(self.m)
        run, missed = best_power(one, self.d, self.beta, (root + sampling) / self.M)
        if missed >= 1:
            raise ValueError(
                f"n must be larger for method='power-method', got {self.n}: its products are too "
                f"noisy to find an eigenvalue above -smoothness, the smallest possible. Use "
                "method='gaussian-score', or a larger epsilon."
            )
        gradient, k = common.gradients(self.G, multiplier, self.T), run.products
        noise, kind = common.repeated(multiplier, k), "hessian vector"
        product = common.gradients(self.M, noise, self.T * k, name="product", kind=kind)
        beyond = self.M * missed - root + sampling
        e_H = sampling + self.M * run.slack
        return (gradient, product), _Slack(self.gradient_slack(multiplier), e_H, beyond)


@dataclass(frozen=True)
class Power:
    """A run of the power method on a Hessian with eigenvalues in [-1, 1].

    Parameters
    ----------
    products
        Number of noisy products, k >= 1.
    noise
        Standard deviation s >= 0 of each coordinate of a product, for M = 1.
    dimension
        d >= 1.
    failure
        Probability in (0, 1) that one of the statements fails.
    """

    products: int
    noise: float
    dimension: int
    failure: float

    @property
    def tail(self) -> float:
        """t: k normal variables exceed it on one side, or k norms sqrt(d) + t, so seldom."""
        return math.sqrt(2 * math.log(5 * self.products / self.failure))

    @property
    def slack(self) -> float:
        """Largest error of the released quotients v' H v, upwards or downwards."""
        return self.noise * self.tail

    def finds(self, mu: float, threshold: float) -> bool:
        """Return whether some released quotient is below -threshold where one eigenvalue is -mu.

        It is also so for all smaller eigenvalues, down to -1.
        """
        s, t, b = self.noise, self.tail, 1 + mu
        wide = math.sqrt(self.dimension) + t
        xi = mu - threshold - self.slack
        inverse = 1 - xi / b + 2 * s * t / b + (s * wide / b) ** 2
        if xi <= 0 or inverse >= 1:
            return False
        growth = -math.log(max(inverse, 1e-300))  # log g^2
        start = self.products * growth - 2 * math.log(wide)
        pumped = -math.inf
        if s > 0:
            pumped = 2 * math.log(s / 2) + self.products * growth
            pumped += math.log(-math.expm1(-self.products * growth))
            pumped -= math.log(-math.expm1(-growth))
        needed = math.log(2 / math.pi) + 2 * math.log(5 / self.failure)
        largest = max(start, pumped)
        return largest + math.log1p(math.exp(min(start, pumped) - largest)) >= needed

    def missed(self, threshold: float) -> float:
        """Return mu in (0, 1]: eigenvalues below -mu are found with a threshold; 1 if none is.

        The threshold > 0 is on the released quotients.
        """
        if not self.finds(1.0, threshold):
            return 1.0
        ends = Sides(miss=threshold, meet=1.0)
        return bisect(lambda mu: self.finds(mu, threshold), ends, Stop(evaluations=40)).meet


def best_power(
    noise_of_one: float, dimension: int, failure: float, least: float
) -> tuple[Power, float]:
    """Return the fewest products that miss next to least, and the eigenvalue that they miss.

    ``noise_of_one`` is the noise of a single product at the same epsilon; the noise of k products
    is in proportion to sqrt(k). Quotients down to ``-least`` must pass.
    """
    tried = []
    count = 1.0
    while count <= _MOST_PRODUCTS:
        k = math.ceil(count)
        run = Power(k, noise_of_one * math.sqrt(k), dimension, failure)
        passes = least + run.slack
        tried.append((run, run.missed(passes) if passes < 1 else 1.0))
        count = max(count * _RATIO, k + 1)
    best = min(missed for _, missed in tried)
    return next(each for each in tried if each[1] <= best * _NEAR)
