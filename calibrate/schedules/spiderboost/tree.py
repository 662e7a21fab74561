"""Claims of the paper: tree."""

from __future__ import annotations

from fractions import Fraction

from sympy import Ge, Le, Rational, log, oo, sqrt

from dpcal.calibrate.auditing.language import Bound, Enumeration, Identity, Private, Release
from dpcal.calibrate.schedules.spiderboost.quantities import (
    F0,
    HALF,
    L0,
    L1,
    LATE,
    LEMMA5,
    THIRD,
    D,
    T,
    alpha,
    b,
    d,
    depth_first,
    ell,
    epsilon,
    floored_depth,
    j,
    n,
    p,
    u,
    v,
    w,
    x,
)


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


_EARLY = {d: b * epsilon**2 / (1 + x) - 1}

TREE = (
    Identity(
        "S25",
        2 * 2 ** (D - j) * (2**j / u) * v / 2 ** (D / 2),
        2 * v * 2 ** (D / 2) / u,
        statement="right-child sensitivity does not depend on the depth",
    ),
    Identity("S26", 2 * ell * (2 * L0 / u) ** 2, 8 * L0**2 * ell / u**2, statement="root noise"),
    Identity(
        "S26.node",
        2 * ell * (2 * v * 2 ** (D / 2) / u) ** 2,
        8 * 2**D * v**2 * ell / u**2,
        statement="node noise",
    ),
    Enumeration("S27", _records_of_round, list(range(1, 9)), statement="records of a round"),
    Bound("S27.cost", 2 * (D + 1) / (D + 2), 2, statement="gradient evaluations per record"),
    Identity("S28", n / (u * (D / 2 + 1)) * u * (D / 2 + 1), n, statement="budget of T rounds"),
    Enumeration("S29", _tree_facts, list(range(1, 9)), statement="depth-first order"),
    Identity("S30", 2 ** (D / 2), sqrt(u / (2 * D)), at={u: D * 2 ** (D + 1)}),
    Bound(
        "S31",
        (d + 1) / (b * epsilon) ** 2,
        sqrt(d + 1) / (n * epsilon),
        at={d: x - 1},
        statement="privacy error of a round's root, x = d + 1",
    ),
    Bound("S31.b", 1 / b, n ** (-2 * THIRD), statement="sampling error of a round's root"),
    Identity(
        "S32",
        n ** (2 * THIRD),
        sqrt(n) * u ** Rational(1, 4) / sqrt(epsilon),
        at={u: n ** (2 * THIRD) * epsilon**2},
        statement="the two batch sizes meet",
    ),
    Bound(
        "S33",
        b * (D / 2 + 1),
        n,
        where=(Le((D / 2 + 1) ** 3, n), Le(sqrt(d + 1) * (D / 2 + 1) ** 2 / epsilon, n)),
        at={D: 2 * u - 2},
        statement="at least one round fits (u = D/2 + 1)",
    ),
    Identity("S34", 8 * 32, 256, statement="tail constant"),
    Identity(
        "S35",
        4 * L0**2 / u + 4 * v**2 * 2**D / u,
        4 * (L0**2 / u + v**2 * 2**D / u),
        statement="variance proxy of a leaf",
    ),
    Identity("S36", 4 * 2 * u / p, 2 * T * 2 ** (D + 1) / p, at={u: T * 2 ** (D - 1)}, free=(T,)),
    Bound(
        "S37",
        64 * log(8 * x),
        256 * THIRD * log(4 * x),
        on={x: (3, 10**6)},
        statement="with all leaves counted the martingale part fits (log(1.25/delta) >= 1/3)",
    ),
    Bound(
        "S38",
        log(16),
        4 * ell * log(8),
        where=(Ge(ell, THIRD),),
        statement="the leaf count is absorbed when log(1.25/delta) >= 1/3",
    ),
    Identity("S39.late", LEMMA5, alpha**2, free=(b,), at=LATE, statement="Lemma 5 balance"),
    Identity("S39.early", LEMMA5, alpha**2, free=(b,), at=_EARLY, statement="Lemma 5 balance"),
    Identity(
        "S39.alpha",
        alpha**2,
        2 * L0**2 * (1 + x) / b,
        free=(b,),
        at=LATE,
        statement="accuracy where privacy dominates",
    ),
    Bound(
        "S40",
        -x / 2 + w / 4,
        -x / 4,
        at={w: u},
        where=(Le(u, x),),
        statement="descent of one leaf step (x = stopping level, u = accuracy)",
    ),
    Identity(
        "S41",
        F0 / (T * u * v / (2 * D) / (2 * 4 * sqrt(v / (2 * D)) * L1)),
        8 * L1 * F0 * sqrt(2 * D) * (D / 2 + 1) * sqrt(v) / (n * u),
        free=(T, b),
        at={T: n / (v * (D / 2 + 1))},
        statement="contradiction threshold, v = b",
    ),
    Bound(
        "S42",
        n ** (-HALF) * x ** Rational(1, 4),
        x,
        where=(Le(n ** (-2 * THIRD), x),),
        statement="last step of Theorem 4's proof, x = sqrt(d)/(n epsilon)",
    ),
    Identity(
        "S43",
        8 * L1 * F0 * sqrt(2 * D) * (D / 2 + 1) / (2 * L0**2) * (2 * L0**2),
        8 * L1 * F0 * sqrt(2 * D) * (D / 2 + 1),
        statement="second term of the constant",
    ),
    Bound("S44", 2 * x + sqrt(u * x), 3 * x, where=(Le(u, x),), statement="final accuracy"),
    Bound(
        "S45",
        64 * (D + 1),
        64 * 2 * D,
        on={D: (1, oo)},
        statement="a floored depth keeps the constant",
    ),
    Enumeration(
        "S45.depth", floored_depth, [4, 5, 15, 16, 100, 1000, 12345], statement="floored depth"
    ),
    Private(
        "S46",
        (Release(2 * L0 / u, 2 * L0 / u * Rational(422469, 100000), 1),),
        epsilon=1,
        delta=Rational(1, 10**6),
        statement="one release at multiplier 4.22469 is (1, 1e-6)-DP",
    ),
)
