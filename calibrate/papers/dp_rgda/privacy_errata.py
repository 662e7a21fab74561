"""Errata of the paper: privacy."""

from __future__ import annotations

import math
from fractions import Fraction

from dpcal.accountants.events import DpEvent, dpsgd
from dpcal.calibrate.papers.claims.language import (
    Enumeration,
    Priced,
    Private,
    Release,
    errata_of,
    erratum,
)


def _releases(case: tuple[int, int, int, bool]) -> int:
    total, inner, period, skip = case
    refreshes = -(-total // period)
    return total * inner - (refreshes if skip else 0)


def _increments_fit_rounds(case: tuple[int, int, int]) -> bool:
    """The inner loop makes at most T increment releases."""
    return _releases((*case, False)) <= case[0]


def _increments_counted(case: tuple[int, int, int]) -> bool:
    """The corrected inner loop makes T K minus the number of refreshes."""
    total, inner, period = case
    made = sum(
        not (step == 0 and round_ % period == 0) for round_ in range(total) for step in range(inner)
    )
    return made == _releases((total, inner, period, True))


def _rounds(noise_multiplier: Fraction) -> DpEvent:
    """100 Poisson-sampled Gaussian releases at rate 0.05."""
    sigma = float(noise_multiplier)
    return dpsgd(sampling_probability=0.05, noise_multiplier=sigma, steps=100)


def _sampled_increment() -> DpEvent:
    """One increment with the noise of Theorem 2 at epsilon 1/2, delta 1e-5, n = 1e4, S2 = 22.

    A record changes the mean over S2 records by L times the movement over S2.
    """
    deviation = 2 * math.sqrt(math.log(1.25e5)) / (1e4 * 0.5)
    return dpsgd(sampling_probability=22 / 1e4, noise_multiplier=22 * deviation, steps=1)


_COUNTS = [(4, 5, 2), (6, 2, 3), (10, 5, 4)]

PRIVACY_ERRATA = errata_of(
    erratum(
        "ER-01",
        "The Gaussian variance of Definition 3 lacks a factor 2 and is insufficient.",
        Private(
            "",
            (Release(1, "sqrt(2)*sqrt(log(125/100*10**5))/u"),),
            epsilon="u",
            delta="1/10**5",
            on={"u": ("1/10", 1)},
            statement="the textbook variance, epsilon from 0.1 to 1, delta = 1e-5",
        ),
        printed=Private(
            "",
            (Release(1, "sqrt(log(125/100*10**5))/u"),),
            epsilon="u",
            delta="1/10**5",
            on={"u": ("1/10", 1)},
            points="u = 9/10",
            statement="half the textbook variance",
        ),
        about="textbook noise at a fixed delta",
        use="Solve the exact Gaussian profile for the multiplier.",
        severity="privacy",
        source="Definition 3",
    ),
    erratum(
        "ER-02",
        "Clipping the averaged gradient has sensitivity 2C, not 2C/b.",
        Private(
            "",
            (Release("2*C/u", "z*2*C/u"),),
            rho="1/(2*z**2)",
            statement="per-example clip, then average",
        ),
        printed=Private(
            "",
            (Release("2*C", "z*2*C/u"),),
            rho="1/(2*z**2)",
            points="u = 64",
            statement="clip of the average of u gradients, noise for 2C/u",
        ),
        about="the sensitivity of any clip",
        use="Clip each example, then average.",
        severity="privacy",
        source="Algorithm 3, lines 7, 8, 14, 15",
    ),
    erratum(
        "ER-03",
        "The inner loop makes T K increment releases; the noise is for T.",
        Enumeration("", _increments_counted, _COUNTS, statement="T K minus the refreshes"),
        printed=Enumeration("", _increments_fit_rounds, _COUNTS, statement="at most T increments"),
        about="the count of a loop",
        use="Count T K releases (T K - R in the corrected listing).",
        severity="privacy",
        source="Algorithm 3, line 2",
    ),
    erratum(
        "ER-04",
        "The x and y estimators share a batch and each spends the whole budget.",
        Private(
            "",
            (Release(1, "sqrt(2)*z", 2),),
            rho="1/(2*z**2)",
            statement="two blocks at sqrt(2) z cost one release",
        ),
        printed=Private(
            "",
            (Release(1, "z", 2),),
            rho="1/(2*z**2)",
            statement="two blocks at z cost one release",
        ),
        about="the cost of two releases of any noise",
        use="Clip and release the concatenated vector.",
        severity="privacy",
        source="Algorithm 3, B.1, B.2",
    ),
    erratum(
        "ER-04.sampled",
        "From one sampled batch, two blocks counted apart hide most of their cost.",
        Priced(
            "",
            lambda: _rounds(Fraction(8, 10)),
            epsilon=8.88,
            delta=1e-06,
            statement="100 joint releases at rate 0.05 and multiplier 0.8 cost 8.87",
        ),
        printed=Priced(
            "",
            lambda: _rounds(Fraction(8, 10) / Fraction(14142, 10000)),
            epsilon=8.88,
            delta=1e-06,
            statement="two blocks of the same batches at multiplier 0.8 each cost as much as one",
        ),
        about="one run at fixed numbers",
        use="One release of the concatenated vector.",
        severity="privacy",
        source="Algorithm 3, B.1",
    ),
    erratum(
        "ER-05",
        "The population noise is scaled by S2/n without amplification or composition.",
        Private(
            "",
            (Release("2*L*x/u", "z*2*L*x/u"),),
            rho="1/(2*z**2)",
            statement="one pass, noise at the scale of the batch",
        ),
        printed=Priced(
            "",
            _sampled_increment,
            epsilon=0.5,
            delta=1e-5,
            statement="one increment, Poisson-sampled at S2/n, n = 1e4, S2 = 22",
        ),
        about="one run at fixed numbers",
        use="Noise at 1/S2 over one pass, or exact accounting of several.",
        severity="privacy",
        source="Theorem 2, B.2",
    ),
    """
        ER-06 (privacy; B.1, B.2): At k = 0 the increment noise is 0 although x moved.
            claim: L**2*x**2 <= L**2*(x**2 + u**2)  # joint movement covers it
            printed: L**2*x**2 <= L**2*u**2  # movement of y covers it
            about: a sensitivity, for any movement
            use: Scale noise and clip by the joint movement of (x, y).
    """,
    erratum(
        "ER-07",
        "No constant c appears in the noise; with c = 1 the true epsilon is several times "
        "the target.",
        Private(
            "",
            (Release(2, "2*(422469/100000)"),),
            epsilon=1,
            delta="1/10**6",
            statement="multiplier 4.22469 at (1, 1e-6)",
        ),
        printed=Private(
            "",
            (Release(2, "sqrt(log(10**6))"),),
            epsilon=1,
            delta="1/10**6",
            statement="c = 1 at (1, 1e-6): noise sqrt(log(1/delta)) on a sensitivity of 2",
        ),
        about="noise at a fixed target",
        use="Exact calibration; print the implied c as a diagnostic only.",
        severity="privacy",
        source="Algorithm 3, lines 1 and 2",
    ),
    """
        ER-08 (rate; Lemma 1, Algorithm 3): Noise of fixed size does not vanish with movement,
            as Lemma 1 needs.
            printed: C**2 <= v*x**2  # fixed noise is at most B2^2 movement^2
            about: a variance, for any movement
            use: Movement-scaled clip and noise.
        ER-09 (minor; (31)): 2 sqrt(2) L for a sensitivity of 2 L per unit of movement.
            claim: 2*L*x <= 2*sqrt(2)*L*x  # the printed value is an upper bound
            printed: 2*L*x = 2*sqrt(2)*L*x  # the sensitivity
            about: a sensitivity, for any movement
            use: 2 L.
        ER-10 (privacy; Algorithm 2, warm start): The warm start reads the data and is not paid
            for.
            open: a missing entry of the ledger, not a formula
            use: Charge it, or choose y0 independently of the data.
        ER-11 (privacy; Section 5.1, clipping): How differences are clipped in the experiment is
            not said.
            open: the code of the experiment is not available
            use: Clip the per-example difference.
        ER-12 (privacy; Definition 3, neighboring relation): Neighboring relation and sampling
            are not specified.
            open: a missing definition
            use: State both; default replace-one with fixed-size batches.
        ER-13 (privacy; Assumption 1, (30)): Read by coordinate, assumption 1 bounds the
            gradient by M sqrt(d), not M.
            claim: sqrt(d*u**2) <= M at u = M/sqrt(d)  # partials M/sqrt(d) give a gradient of
                norm M
            printed: M*sqrt(d) <= M  # a gradient with all partials M
            about: a norm, for any dimension
            use: Read it block-wise, and enforce it by clipping.
    """,
)
