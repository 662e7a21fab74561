"""Errata of the paper: privacy."""

from __future__ import annotations

from fractions import Fraction

from sympy import log, sqrt

from dpcal.accountants.events import DpEvent, dpsgd
from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Erratum,
    Identity,
    Priced,
    Private,
    Prose,
    Release,
    erratum,
)
from dpcal.calibrate.schedules.dp_rgda.quantities import _R, HALF, C, L, M, d, u, v, x, z


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


_COUNTS = [(4, 5, 2), (6, 2, 3), (10, 5, 4)]

PRIVACY_ERRATA = (
    erratum(
        "ER-01",
        "The Gaussian variance of Definition 3 lacks a factor 2 and is insufficient.",
        Private(
            "",
            (Release(1, sqrt(2) * sqrt(log(_R(125, 100) * 10**5)) / u, 1),),
            epsilon=u,
            delta=_R(1, 10**5),
            on={u: (_R(1, 10), 1)},
            statement="the textbook variance, epsilon from 0.1 to 1, delta = 1e-5",
        ),
        printed=Private(
            "",
            (Release(1, sqrt(log(_R(125, 100) * 10**5)) / u, 1),),
            epsilon=u,
            delta=_R(1, 10**5),
            on={u: (_R(1, 10), 1)},
            points=({u: _R(9, 10)},),
            statement="half the textbook variance",
        ),
        use="Solve the exact Gaussian profile for the multiplier.",
        severity="privacy",
        source="Definition 3",
    ),
    erratum(
        "ER-02",
        "Clipping the averaged gradient has sensitivity 2C, not 2C/b.",
        Private(
            "",
            (Release(2 * C / u, z * 2 * C / u, 1),),
            rho=1 / (2 * z**2),
            statement="per-example clip, then average",
        ),
        printed=Private(
            "",
            (Release(2 * C, z * 2 * C / u, 1),),
            rho=1 / (2 * z**2),
            points=({u: 64},),
            statement="clip of the average of u gradients, noise for 2C/u",
        ),
        use="Clip each example, then average.",
        severity="privacy",
        source="Algorithm 3, lines 7, 8, 14, 15",
    ),
    erratum(
        "ER-03",
        "The inner loop makes T K increment releases; the noise is for T.",
        Enumeration("", _increments_counted, _COUNTS, statement="T K minus the refreshes"),
        printed=Enumeration("", _increments_fit_rounds, _COUNTS, statement="at most T increments"),
        use="Count T K releases (T K - R in the corrected listing).",
        severity="privacy",
        source="Algorithm 3, line 2",
    ),
    erratum(
        "ER-04",
        "The x and y estimators share a batch and each spends the whole budget.",
        Private(
            "",
            (Release(1, sqrt(2) * z, 2),),
            rho=1 / (2 * z**2),
            statement="two blocks at sqrt(2) z cost one release",
        ),
        printed=Private(
            "",
            (Release(1, z, 2),),
            rho=1 / (2 * z**2),
            statement="two blocks at z cost one release",
        ),
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
            delta=1e-6,
            statement="100 joint releases at rate 0.05 and multiplier 0.8 cost 8.87",
        ),
        printed=Priced(
            "",
            lambda: _rounds(Fraction(8, 10) / Fraction(14142, 10000)),
            epsilon=8.88,
            delta=1e-6,
            statement="two blocks of the same batches at multiplier 0.8 each cost as much as one",
        ),
        use="One release of the concatenated vector.",
        severity="privacy",
        source="Algorithm 3, B.1",
    ),
    erratum(
        "ER-05",
        "The population noise is scaled by S2/n without amplification or composition.",
        Private(
            "",
            (Release(2 * L * x / u, z * 2 * L * x / u, 1),),
            rho=1 / (2 * z**2),
            statement="one pass, noise at the scale of the batch",
        ),
        printed=Private(
            "",
            (
                Release(
                    2 * L * x / 22, 2 * L * x * sqrt(log(_R(125, 100) * 10**5)) / (10**4 * HALF), 1
                ),
            ),
            epsilon=HALF,
            delta=_R(1, 10**5),
            statement="one unsampled increment, n = 1e4, S2 = 22",
        ),
        use="Noise at 1/S2 over one pass, or exact accounting of several.",
        severity="privacy",
        source="Theorem 2, B.2",
    ),
    erratum(
        "ER-06",
        "At k = 0 the increment noise is 0 although x moved.",
        Bound("", L**2 * x**2, L**2 * (x**2 + u**2), statement="joint movement covers it"),
        printed=Bound("", L**2 * x**2, L**2 * u**2, statement="movement of y covers it"),
        use="Scale noise and clip by the joint movement of (x, y).",
        severity="privacy",
        source="B.1, B.2",
    ),
    erratum(
        "ER-07",
        "No constant c appears in the noise; with c = 1 the true epsilon is several times "
        "the target.",
        Private(
            "",
            (Release(2, 2 * _R(422469, 100000), 1),),
            epsilon=1,
            delta=_R(1, 10**6),
            statement="multiplier 4.22469 at (1, 1e-6)",
        ),
        printed=Private(
            "",
            (Release(2, sqrt(log(10**6)), 1),),
            epsilon=1,
            delta=_R(1, 10**6),
            statement="c = 1 at (1, 1e-6): noise sqrt(log(1/delta)) on a sensitivity of 2",
        ),
        use="Exact calibration; print the implied c as a diagnostic only.",
        severity="privacy",
        source="Algorithm 3, lines 1 and 2",
    ),
    erratum(
        "ER-08",
        "Noise of fixed size does not vanish with movement, as Lemma 1 needs.",
        Bound("", (z * 2 * L * x / u) ** 2, (2 * z * L / u) ** 2 * x**2, statement="scaled noise"),
        printed=Bound("", C**2, v * x**2, statement="fixed noise is at most B2^2 movement^2"),
        use="Movement-scaled clip and noise.",
        severity="rate",
        source="Lemma 1, Algorithm 3",
    ),
    erratum(
        "ER-09",
        "2 sqrt(2) L for a sensitivity of 2 L per unit of movement.",
        Bound("", 2 * L * x, 2 * sqrt(2) * L * x, statement="the printed value is an upper bound"),
        printed=Identity("", 2 * L * x, 2 * sqrt(2) * L * x, statement="the sensitivity"),
        use="2 L.",
        source="(31)",
    ),
    Erratum(
        "ER-10",
        "The warm start reads the data and is not paid for.",
        Prose("ER-10.printed", "a missing entry of the ledger, not a formula"),
        use="Charge it, or choose y0 independently of the data.",
        severity="privacy",
    ),
    Erratum(
        "ER-11",
        "How differences are clipped in the experiment is not said.",
        Prose("ER-11.printed", "the code of the experiment is not available"),
        use="Clip the per-example difference.",
        severity="privacy",
    ),
    Erratum(
        "ER-12",
        "Neighboring relation and sampling are not specified.",
        Prose("ER-12.printed", "a missing definition"),
        use="State both; default replace-one with fixed-size batches.",
        severity="privacy",
    ),
    erratum(
        "ER-13",
        "Read by coordinate, assumption 1 bounds the gradient by M sqrt(d), not M.",
        Bound(
            "",
            sqrt(d * u**2),
            M,
            at={u: M / sqrt(d)},
            statement="partials M/sqrt(d) give a gradient of norm M",
        ),
        printed=Bound("", M * sqrt(d), M, statement="a gradient with all partials M"),
        use="Read it block-wise, and enforce it by clipping.",
        severity="privacy",
        source="Assumption 1, (30)",
    ),
)
