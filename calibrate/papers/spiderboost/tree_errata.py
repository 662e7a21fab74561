"""Errata of the paper: tree."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Enumeration, Private, Release, errata_of, erratum
from dpcal.calibrate.papers.spiderboost.quantities import depth_first, floored_depth


def _leaves(depth: int) -> int:
    return sum(len(label) == depth for label in depth_first(depth))


def _printed_leaf_count(depth: int) -> bool:
    """A tree of this depth has 2^(D - 1) leaves."""
    return _leaves(depth) * 2 == 1 << depth


def _true_leaf_count(depth: int) -> bool:
    """A tree of this depth has 2^D leaves."""
    return _leaves(depth) == 1 << depth


def _steps_of_round(depth: int, carry: bool) -> int:
    """Count the leaf steps that reach a later iterate."""
    return _leaves(depth) if carry else _leaves(depth) - 1


def _printed_round(depth: int) -> bool:
    """Every leaf contributes a step when a round starts at the last leaf's point."""
    return _steps_of_round(depth, carry=False) == 1 << depth


def _carried_round(depth: int) -> bool:
    """Every leaf of a round contributes a step when its last step is carried over."""
    return _steps_of_round(depth, carry=True) == 1 << depth


def _integer_depth(size: int) -> bool:
    """D 2^(D + 1) = b has a whole solution D."""
    return any(k * 2 ** (k + 1) == size for k in range(1, 30))


TREE_ERRATA = errata_of(
    erratum(
        "E16",
        "The textbook Gaussian formula is used for every epsilon; it fails above about 8.4.",
        Private(
            "",
            (Release(1, "sqrt(2*log(125/100*10**5))/u"),),
            epsilon="u",
            delta="1/10**5",
            on={"u": ("1/100", 1)},
            statement="the textbook noise is enough for epsilon <= 1 (delta = 1e-5)",
        ),
        printed=Private(
            "",
            (Release(1, "sqrt(2*log(125/100*10**5))/u"),),
            epsilon="u",
            delta="1/10**5",
            on={"u": ("1/100", 12)},
            points="u = 17/2",
            statement="the textbook noise is enough for every epsilon (delta = 1e-5)",
        ),
        about="textbook noise at a fixed delta",
        use="The smallest multiplier of the exact Gaussian profile.",
        severity="privacy",
        source="Theorems 3 and 4",
    ),
    """
        E17 (rate; Theorem 4): The batch size is printed as sqrt(n d^(1/4)) for sqrt(n) d^(1/4).
            claim: (d + 1)/(b*epsilon)**2 <= sqrt(d + 1)/(n*epsilon) at d = x - 1
            printed: d/(b*epsilon)**2 <= sqrt(d)/(n*epsilon); printed b
            use: sqrt(n) d^(1/4)/sqrt(epsilon).
        E18 (rate; Theorem 4): beta is printed with sqrt(b epsilon) for sqrt(b) epsilon.
            claim: beta**2 = alpha**2*Min(1, b*epsilon**2/(d + 1)); definition; free b alpha  #
                movement in proportion to the accuracy
            settings: beta
            use: alpha min(1, sqrt(b) epsilon/sqrt(d + 1)).
        E19 (rate; Theorem 4): Lemma 5's condition involves d + 1 while alpha and beta use d.
            claim: (L0**2/b + beta**2/2)*Max(1, (d + 1)/(b*epsilon**2)) = alpha**2 at d =
                b*epsilon**2*(1 + x) - 1; free b  # Lemma 5 with d + 1
            printed: (L0**2/b + beta**2/2)*(d + 1)/(b*epsilon**2) <= alpha**2 where b*epsilon**2 <=
                d; free b; printed alpha beta  # Lemma 5 with d, where privacy dominates
            use: d + 1 in b, alpha and beta.
    """,
    erratum(
        "E20",
        "A depth-D tree has 2^D leaves, not 2^(D-1).",
        Enumeration("", _true_leaf_count, list(range(1, 9))),
        printed=Enumeration("", _printed_leaf_count, list(range(1, 9))),
        about="the leaves of a tree of any depth",
        use="N = T 2^D leaves in the union bound.",
        source="Theorem 4",
    ),
    erratum(
        "E21",
        "The step of a round's last leaf is dropped.",
        Enumeration("", _carried_round, list(range(1, 7))),
        printed=Enumeration("", _printed_round, list(range(1, 7))),
        about="the steps of a loop",
        use="Carry the last iterate into the next round.",
        severity="algorithm",
        source="Algorithm 2",
    ),
    erratum(
        "E22",
        "D 2^(D+1) = b has a whole solution for few b.",
        Enumeration("", floored_depth, [4, 5, 17, 100, 1001], statement="floored depth"),
        printed=Enumeration("", _integer_depth, [4, 16, 48, 100], statement="whole depth"),
        about="the depth of a tree of a given size",
        use="The largest D with D 2^(D+1) <= b, and b a multiple of 2^D.",
        severity="algorithm",
        source="Theorem 4",
    ),
    """
        E23 (minor; Lemma 5): The proof of Lemma 5 drops the factor D of the node variances.
            printed: D*v**2 = v**2  # variance of D nodes
            about: the variance of any D nodes
            use: beta^2 D 2^D/b, as in the statement.
        E24 (minor; Algorithm 2, and Theorem 3, index ranges): s in {0,1}^D for {0,1}^{<=D}, and
            an index in the proof of Theorem 3.
            open: index ranges in prose
            use: All labels of length at most D.
        E25 (minor; Theorem 4): Oracle complexity n counts records; gradients are up to twice as
            many.
            claim: 2*(D + 1)/(D + 2) <= 2
            printed: 2*(D + 1)/(D + 2) <= 1
            about: calls of a tree of any depth
            use: n 2 (D+1)/(D+2) gradient evaluations.
        E26 (rate; Theorem 4): The stopping level exceeds the Lipschitz constant until n is
            about 10^16.7.
            claim: 2*256*log(5/4*10**6)*log(2*10**17)*sqrt(2)*n**(-(1/3)) <= 1 where n in
                [1000000000000000000, oo] at n = 10**18  # first part of the stopping level at n
                = 10^18, in units of L0
            printed: 2*256*log(5/4*10**6)*log(10)*sqrt(2)*n**(-(1/3)) <= 1 where n in [1000,
                1000000000000]  # the stopping level is below L0 for n up to 10^12
            about: a stopping level at fixed constants
            use: The numerical schedule, or a stopping level of the user's.
    """,
)
