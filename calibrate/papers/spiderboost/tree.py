"""Claims of the paper: tree."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, Private, Release, claims_of
from dpcal.calibrate.papers.spiderboost.quantities import depth_first, floored_depth


def _tree_facts(depth: int) -> bool:
    """Counts of nodes, leaves and right children, and what follows each leaf."""
    order = depth_first(depth)
    leaves = [k for k, label in enumerate(order) if len(label) == depth]
    right = [label for label in order if label.endswith("1")]
    follows = all(order[k + 1].endswith("1") for k in leaves[:-1])
    noise = max(1 + label.count("1") for label in order)
    return (
        len(order) == 2 ** (depth + 1) - 2
        and len(leaves) == 2**depth
        and len(right) == 2**depth - 1
        and follows
        and noise == depth + 1
    )


def _records_of_round(depth: int) -> bool:
    """A round uses b (D/2 + 1) records."""
    right = [label for label in depth_first(depth) if label.endswith("1")]
    used = 1 + sum(Fraction(1, 2 ** len(label)) for label in right)
    return used == 1 + Fraction(depth, 2)


TREE = (
    *claims_of(
        "Theorem 3, sensitivities, noise and records of Algorithm 2",
        """
        S25: 2*2**(D - j)*(2**j/u)*v/2**(D/2) = 2*v*2**(D/2)/u
            # right-child sensitivity does not depend on the depth
        S26: 2*ell*(2*L0/u)**2 = 8*L0**2*ell/u**2  # root noise
        S26.node: 2*ell*(2*v*2**(D/2)/u)**2 = 8*2**D*v**2*ell/u**2  # node noise
        """,
        Enumeration("S27", _records_of_round, list(range(1, 9)), statement="records of a round"),
    ),
    *claims_of(
        "Section 4, tree of Algorithm 2",
        Enumeration("S29", _tree_facts, list(range(1, 9)), statement="depth-first order"),
        """
        S30: 2**(D/2) = sqrt(u/(2*D)) at u = D*2**(D + 1)
        """,
    ),
    *claims_of(
        "Theorem 4, batch b and number of rounds",
        """
        S31.b: 1/b <= n**(-2*(1/3))  # sampling error of a round's root
        S31.size: b**2 = Max(n**(4/3), n*sqrt(d + 1)/epsilon); definition  # batch of a round's root
        S32: n**(2*(1/3)) = sqrt(n)*u**(1/4)/sqrt(epsilon) at u = n**(2*(1/3))*epsilon**2
            # the two batch sizes meet
        S33: b*(D/2 + 1) <= n where (D/2 + 1)**3 <= n, sqrt(d + 1)*(D/2 + 1)**2/epsilon <= n at D =
            2*u - 2  # at least one round fits (u = D/2 + 1)
        """,
    ),
    *claims_of(
        "Lemma 5, union bound and balance",
        """
        S34: 8*32 = 256  # tail constant
        S35: 4*L0**2/u + 4*v**2*2**D/u = 4*(L0**2/u + v**2*2**D/u)  # variance proxy of a leaf
        S36: 4*2*u/p = 2*T*2**(D + 1)/p at u = T*2**(D - 1); free T
        S37: 64*log(8*x) <= 256*(1/3)*log(4*x) where x in [3, 1000000]
            # with all leaves counted the martingale part fits (log(1.25/delta) >= 1/3)
        S38: log(16) <= 4*ell*log(8) where 1/3 <= ell
            # the leaf count is absorbed when log(1.25/delta) >= 1/3
        S39.early: (L0**2/b + beta**2/2)*Max(1, (d + 1)/(b*epsilon**2)) = alpha**2 at d =
            b*epsilon**2/(1 + x) - 1; free b  # Lemma 5 balance
        S39.alpha: alpha**2 = 2*L0**2*(1 + x)/b at d = b*epsilon**2*(1 + x) - 1; free b
            # accuracy where privacy dominates
        """,
    ),
    *claims_of(
        "Lemma 6, descent of one step",
        """
        S40: -x/2 + w/4 <= -x/4 where u <= x at w = u
            # descent of one leaf step (x = stopping level, u = accuracy)
        """,
    ),
    *claims_of(
        "Theorem 4, last steps of the proof",
        """
        S41: F0/(T*u*v/(2*D)/(2*4*sqrt(v/(2*D))*L1)) = 8*L1*F0*sqrt(2*D)*(D/2 + 1)*sqrt(v)/(n*u) at
            T = n/(v*(D/2 + 1)); free T b  # contradiction threshold, v = b
        S42: n**(-(1/2))*x**(1/4) <= x where n**(-2*(1/3)) <= x
            # last step of Theorem 4's proof, x = sqrt(d)/(n epsilon)
        S44: 2*x + sqrt(u*x) <= 3*x where u <= x  # final accuracy
        S45: 64*(D + 1) <= 64*2*D where D in [1, oo]  # a floored depth keeps the constant
        """,
        Enumeration(
            "S45.depth", floored_depth, [4, 5, 15, 16, 100, 1000, 12345], statement="floored depth"
        ),
    ),
    *claims_of(
        "Theorem 3, exact noise instead of the textbook formula",
        Private(
            "S46",
            (Release("2*L0/u", "2*L0/u*(422469/100000)"),),
            epsilon=1,
            delta="1/10**6",
            statement="one release at multiplier 4.22469 is (1, 1e-6)-DP",
        ),
    ),
)
