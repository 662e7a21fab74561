"""Errata of the paper: algorithm."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Enumeration, errata_of, erratum


def _corrected_inner_loop(steps: int) -> bool:
    """K inner steps let y move: the last candidate is K - 1 ascent steps away."""
    return steps - 1 >= 1


def _printed_inner_loop(steps: int) -> bool:
    """The selected candidate among k = 0..K-1 can differ from y_t."""
    return max(range(steps)) > 0


def _refresh_counts_once(literal: bool) -> bool:
    """After a refresh the new point has weight one, the old point zero."""
    at_new, at_old = 1, 0
    if literal:
        at_new, at_old = at_new + 1, at_old - 1
    return (at_new, at_old) == (1, 0)


def _smallest_is_first(values: tuple[int, ...]) -> bool:
    """The smallest of the growing noise norms is not the first one."""
    return min(range(len(values)), key=values.__getitem__) != 0


def _cumulative_norms() -> list[tuple[int, ...]]:
    """Expected squared norms of cumulative sums of five independent noises, in units of one."""
    return [tuple(range(1, 6))]


def _last_is_kept(values: tuple[int, ...]) -> bool:
    """Taking the last candidate always moves."""
    return len(values) - 1 > 0


ALGORITHM_ERRATA = errata_of(
    erratum(
        "ER-20",
        "A refresh is followed by the increment that leads to it: counted twice.",
        Enumeration("", _refresh_counts_once, [False], complete=True),
        printed=Enumeration("", _refresh_counts_once, [True]),
        about="the steps of a loop",
        use="Skip the k = 0 increment on refresh steps.",
        severity="algorithm",
        source="Algorithm 3",
    ),
    erratum(
        "ER-21",
        "K = 1 freezes y.",
        Enumeration("", _corrected_inner_loop, [2, 3, 5], statement="K >= 2"),
        printed=Enumeration("", _printed_inner_loop, [1], statement="K = 1"),
        about="the steps of a loop",
        use="K >= 2.",
        severity="algorithm",
        source="Algorithm 3, Theorem 1",
    ),
    erratum(
        "ER-22",
        "The argmin over accumulated noise picks k = 0.",
        Enumeration("", _last_is_kept, _cumulative_norms(), statement="take the last"),
        printed=Enumeration(
            "", _smallest_is_first, _cumulative_norms(), statement="take the argmin"
        ),
        about="the choice among candidates of a loop",
        use="The last candidate.",
        severity="algorithm",
        source="Algorithm 3, line 18",
    ),
    """
        ER-23 (minor; Algorithm 2, output): The surrogate gradient mapping is not defined.
            open: a missing definition
            use: (y - Proj(y + lambda u))/lambda.
        ER-24 (algorithm; Algorithm 2, line 14): Rescaling the last step of a phase leaves
            earlier steps too long.
            claim: u**2*v + u**2*w <= m*D at u = sqrt(m*D/(v + w))  # one step size for all
                steps of the phase
            printed: g**2*v + u**2*w <= m*D where m*D <= g**2*(v + w) at u = sqrt(m*D/(v + w));
                points g = 2, v = 1, w = 1, m = 1, D = 1  # earlier steps at eta_h
            about: movements of a phase, for any step lengths
            use: Rescale the whole phase.
        ER-25 (algorithm; Algorithm 2, escape phase): alpha, x_{-1} and the anchor are used
            before they are defined.
            open: undefined objects of a listing
            use: The corrected listing with a status flag.
        ER-26 (algorithm; Lemmas 4 and 5, Algorithm 2): The analysed step 1/(2L) is used as the
            length of a normalized step.
            claim: [eta] = parameter  # step length
            printed: [eta] = parameter; printed eta  # step length
            use: alpha/(2 L_Phi), normalized.
        ER-27 (algorithm; Algorithm 2, line 13): No condition makes the noise floor of v small
            enough ever to certify.
            open: no condition on the noise floor is printed, so there is no formula to refute
            use: Check it, and refuse to certify otherwise.
    """,
)
