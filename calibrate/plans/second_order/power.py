r"""How negative may a smallest eigenvalue be that k noisy products with the Hessian do not find?

The power method on B = M I - H from a random direction: with fresh noise e_i in each product,

    y_i = B v_i + e_i,    v_i+1 = y_i / ||y_i||,    e_i ~ N(0, s^2 I),    v_0 uniform on the sphere.

Let H have its eigenvalues in [-M, M] and the smallest at -mu, so that b = M + mu is the largest of
B, with unit eigenvector q, and let a_i = <q, v_i>. Suppose that every v_i' H v_i is above -mu + xi.
Then ||B v_i||^2 <= b v_i' B v_i <= b (b - xi), since B^2 <= b B. Where <B v_i, e_i> <= b s t and
||e_i|| <= s (sqrt(d) + t), it follows that ||y_i|| <= b / g with

    g^-2 = 1 - xi / b + 2 s t / b + s^2 (sqrt(d) + t)^2 / b^2,

and abs(a_i+1) >= g abs(a_i + <q, e_i> / b). The size of c + N(0, 1) grows stochastically with that
of c. So the size of a_k is stochastically at least that of W_k, where W_i+1 = g (W_i + N(0, s^2 /
b^2)) and W_0 is normal with standard deviation 1 / (sqrt(d) + t): noise helps to leave a bad start.
W_k is normal with

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

import math
from dataclasses import dataclass

from dpcal._roots import Sides, Stop, bisect

__all__ = ["Power", "best_power"]

# Ratio of neighboring numbers of products that are tried.
_RATIO = 1.2
_MOST_PRODUCTS = 5_000
# What fewer products may miss, over what is missed at best: a pass over the records each, and with
# 3 percent more about half of them are saved.
_NEAR = 1.03


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
        """Error of the released quotients v' H v, on either side."""
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
            # The sum of a geometric series, with b <= 2 in front of it.
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

    ``noise_of_one`` is the noise of a single product at the same price; that of k products is in
    proportion to sqrt(k). Quotients down to ``-least`` must pass.
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
