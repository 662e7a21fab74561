"""How near do private optimizers come to lower bounds? The bounds' own hard instances, run.

    python -m benchmarks.problems.lower_bounds [--seeds N]

* ``two tables``: Menart et al. 2024, Theorem 8 (with erratum EL10), in one dimension. No optimizer
  that is (epsilon, delta)-private about replaced records has a mean excess below 0.2786 (n
  epsilon)^-kappa on both tables, an explicit constant: a smaller one would show a wrong price.
* ``growth``: their Theorem 6, F = |lambda w|^tau - <w, x>; error (L0 sqrt(d) / (lambda n
  epsilon))^(tau / (tau - 1)).
* ``convex``: their Theorem 7 with the corrected H (erratum EL1); error L0 D sqrt(d) / (n epsilon).
* ``stationary``: Arora et al. 2022, Theorem 2, a Huber location problem; gradient L0 sqrt(d
  log(1 / delta)) / (n epsilon).

The last three hold up to a constant and logarithms. Their proofs take fingerprinting codes; here
sqrt(d) / epsilon records are one random corner of a cube, and the others are zero: what hides them
hides every coordinate. The ratio of an optimizer's error to the bound does not fall as n and d grow
where the optimizer is as good as the bound, and grows where it is worse.
"""

import argparse
import math
import warnings

import numpy as np

from dpcal import calibrate, optim

RELATION = "replace-one"
DELTA = 1e-6
# Mean excess on the worse of two tables, times (n epsilon)^kappa: (1/2 - delta (e^(1/2) - 1) /
# (e^epsilon - 1)) e^(-1/2), for deltas of at most (1 - e^-epsilon) / 16.
TWO_TABLES = 0.2786


class TwoTables:
    """Theorem 8: n (1 + r) / 2 records of one sign, r = 1 / (n epsilon), or as many of the other.

    ``epsilon`` is such that 1 / epsilon is an even number; n is even, and n epsilon at least 10.
    """

    radius = 0.36  # where the losses are 1-Lipschitz and grow as they should (erratum EL9)

    def __init__(self, n, epsilon, kappa):
        self.n, self.kappa, self.tau = n, kappa, kappa / (kappa - 1)
        self.r = 1 / (n * epsilon)
        if n % 2 or round(1 / epsilon) % 2 or self.r > 0.1:
            raise ValueError("n and 1 / epsilon must be even, and n epsilon at least 10.")
        self.a = 0.5 * self.r ** (1 / (self.tau - 1))
        self.bound = TWO_TABLES * self.r**kappa

    def slopes(self, w, signs):
        """Return the derivative of each record's loss at a number w, shape (m,)."""
        moved = signs * w - self.a
        beyond = self.tau * np.maximum(moved, 0.0) ** (self.tau - 1)
        return signs * np.where(moved <= 0, -1.0, np.minimum(beyond, 1.0))

    def objective(self, sign):
        """Return the mean loss of the table in which ``sign`` is the more frequent."""
        signs = np.full(self.n, -float(sign))
        signs[: round(self.n * (1 + self.r) / 2)] = sign
        return optim.FromGradients(
            lambda w, rows: self.slopes(w[0], signs[rows])[:, np.newaxis],
            n=self.n,
            dimension=1,
            block=10**6,
        )

    def excess(self, w, sign):
        """Return F(w) - min F, for w brought into the radius: a function of what was released."""
        u = sign * float(np.clip(w, -self.radius, self.radius))

        def loss(v):
            return self.a - v if v <= self.a else (v - self.a) ** self.tau

        share = (1 + self.r) / 2
        return share * loss(u) + (1 - share) * loss(-u) - (1 - self.r) * self.a


class Hard:
    """Records of Theorems 2, 6 and 7: few of one corner of the cube, the others zero.

    ``kind`` is ``"growth"``, ``"convex"`` or ``"stationary"``; L0 = L1 = D = lambda = 1.
    """

    def __init__(self, kind, n, d, epsilon, *, tau=2.0, seed=0):
        self.kind, self.n, self.d, self.tau = kind, n, d, tau
        self.size = min(math.sqrt(d) / epsilon, n) / n  # norm of the mean record, for norm 1
        corner = np.random.default_rng(seed).choice([-1.0, 1.0], d) / math.sqrt(d)
        self.long = 0.25 if kind == "stationary" else 1.0
        whole = round(self.size * n)
        self.size = whole / n * self.long
        self.mean = self.size * corner
        self.X = np.zeros((n, d))
        self.X[:whole] = self.long * corner
        self.lam = self.size / 2  # Theorem 7's weight of H, for D = 1

    def gradients(self, w, X):
        """Return one gradient for each record, shape (m, d)."""
        norm = max(float(np.linalg.norm(w)), 1e-300)
        if self.kind == "stationary":
            moved = w - X
            return moved / np.maximum(1.0, np.linalg.norm(moved, axis=1, keepdims=True))
        if self.kind == "convex":
            return self.lam * w * (2 if norm <= 4 else 8 / norm) - X
        return w * (self.tau * min(norm, 1.0) ** (self.tau - 1) / norm) - X

    def loss(self, w):
        """Return F(w), of all but the Huber problem."""
        norm = float(np.linalg.norm(w))
        if self.kind == "convex":
            own = self.lam * (norm**2 if norm <= 4 else 8 * norm - 16)
        else:
            own = min(norm, 1.0) ** self.tau + self.tau * max(norm - 1.0, 0.0)
        return own - float(self.mean @ w)

    def minimizer_at(self, mean):
        """Return the point with the least loss if ``mean`` were the mean record."""
        if self.kind == "stationary":
            return mean
        if self.kind == "convex":
            w = mean / (2 * self.lam)
            return w / max(1.0, float(np.linalg.norm(w)))
        size = float(np.linalg.norm(mean))
        return mean / size * min(1.0, (size / self.tau) ** (1 / (self.tau - 1)))

    def error(self, w):
        """Return what the theorem bounds: excess loss, or the norm of the gradient."""
        if self.kind == "stationary":
            return float(np.linalg.norm(self.gradients(w, self.X).mean(axis=0)))
        return self.loss(w) - self.loss(self.minimizer_at(self.mean))

    def bound(self, epsilon):
        """Return the theorem's bound, with a constant of 1."""
        rate = math.sqrt(self.d) / (self.n * epsilon)
        if self.kind == "stationary":
            return min(1.0, rate * math.sqrt(math.log(1 / DELTA)))
        if self.kind == "convex":
            return min(1.0, rate)
        tau = self.tau
        return tau ** (-1 / (tau - 1)) * rate ** (tau / (tau - 1))

    @property
    def constants(self):
        """The public constants: of the losses, in the ball where the instance has them."""
        lipschitz = {"stationary": 1.0, "convex": 1.0 + 8 * self.lam, "growth": 1.0 + self.tau}
        smooth = {"stationary": 1.0, "convex": 2 * self.lam, "growth": self.tau * (self.tau - 1)}
        return calibrate.Constants(
            lipschitz=lipschitz[self.kind] * (1 + 1e-9),
            smoothness=smooth[self.kind],
            gap=1.0,
        )

    def objective(self):
        """Return the mean loss, by its gradients."""
        X = self.X
        return optim.FromGradients(
            lambda w, rows: self.gradients(w, X[rows]), n=self.n, dimension=self.d, block=10**6
        )


def one_gradient(n, d, epsilon, max_norm, **changes):
    """Return the plan of one noisy gradient on all records, whose opposite is the result."""
    return calibrate.noisy_gd(
        calibrate.Constants(lipschitz=max_norm, smoothness=1.0),
        n=n,
        dimension=d,
        epsilon=epsilon,
        delta=DELTA,
        steps=1,
        learning_rate=1.0,
        max_norm=max_norm,
        neighboring_relation=RELATION,
        **changes,
    )


def two_tables(seeds, *, n=400, epsilon=0.5, kappas=(2.0, 3.0), plan=None):
    """Return, by optimizer and kappa, the mean excess on the worse table over its bound.

    The best way is the sign of one noisy gradient at zero, and a step of length a that way; its
    ``plan`` may be given.
    """
    found = {}
    target = {"n": n, "epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}
    ones = calibrate.Constants(lipschitz=1.0, smoothness=math.inf, gap=0.36)
    for kappa in kappas:
        pair = TwoTables(n, epsilon, kappa)
        proximal = {"dimension": 1, "gamma": 1.0, "kappa": kappa, "inner_steps": 64}
        plans = {
            "one gradient": plan or one_gradient(n, 1, epsilon, 1.0),
            "dpsgd": calibrate.dpsgd(batch_size=40, steps=200, learning_rate=1e-3, **target),
            "proximal_point": calibrate.proximal_point(ones, **proximal, **target),
        }
        for name, asked in plans.items():
            means = []
            for sign in (1, -1):
                objective = pair.objective(sign)
                ends = [optim.run(objective, asked, seed=seed).w[0] for seed in range(seeds)]
                if name == "one gradient":
                    ends = [math.copysign(pair.a, w) for w in ends]
                means.append(np.mean([pair.excess(w, sign) for w in ends]))
            found[name, kappa] = max(means) / pair.bound
    return found


def ratios(kind, seeds, *, epsilon=1.0, tau=2.0, sizes=((1_000, 16), (4_000, 16), (4_000, 256))):
    """Return, for each (n, d), mean errors over the bound with a constant of 1.

    Of the minimizer at the mean record that one noisy gradient at zero releases, and of noisy_gd.
    """
    found = {}
    for n, d in sizes:
        ratio = []
        for seed in range(seeds):
            hard = Hard(kind, n, d, epsilon, tau=tau, seed=seed)
            objective, bound = hard.objective(), hard.bound(epsilon)
            released = optim.noisy_gd(objective, one_gradient(n, d, epsilon, hard.long), seed=seed)
            plan = calibrate.noisy_gd(
                hard.constants,
                n=n,
                dimension=d,
                epsilon=epsilon,
                delta=DELTA,
                steps=20,
                neighboring_relation=RELATION,
            )
            w = optim.noisy_gd(objective, plan, seed=seed).w
            best = hard.minimizer_at(released.w)
            ratio.append([hard.error(best) / bound, hard.error(w) / bound])
        found[n, d] = np.mean(ratio, axis=0).tolist()
    return found


def main():
    parser = argparse.ArgumentParser(description="Hard instances of lower bounds.")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore", calibrate.VacuousSchedule)
    with optim.replaying():
        for (name, kappa), ratio in two_tables(options.seeds).items():
            print(f"two tables, kappa {kappa}: {name}, {ratio:.3g} times the bound", flush=True)
        for kind, tau in (("growth", 2.0), ("growth", 3.0), ("convex", 2.0), ("stationary", 2.0)):
            row = ratios(kind, options.seeds, tau=tau)
            text = "; ".join(f"n {n}, d {d}: {a:.3g}, {b:.3g}" for (n, d), (a, b) in row.items())
            label = f"growth, tau {tau}" if kind == "growth" else kind
            print(f"{label}, one gradient and noisy_gd over the bound: {text}", flush=True)


if __name__ == "__main__":
    main()
