"""Errata of the paper: algorithm."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Enumeration, errata_of, erratum


def _printed_restart(case: tuple[int, int]) -> bool:
    """The next round starts at a tested iterate: index t - 1 after leaving at t."""
    limit, leaves_at = case
    index = min(leaves_at, limit) - 1
    return index == min(leaves_at, limit)


def _repaired_restart(case: tuple[int, int]) -> bool:
    """Index t after leaving at t is defined and was tested, or ends a full round."""
    limit, leaves_at = case
    index = min(leaves_at, limit)
    return 0 <= index <= limit


def _first_round_is_defined(start: int) -> bool:
    """The loop over rounds begins with the round that was initialized."""
    return start == 1


_ROUNDS = [(limit, leave) for limit in (1, 3) for leave in (0, 1, 3)]

ALGORITHM_ERRATA = errata_of(
    erratum(
        "EA1",
        "The next round starts at w_{k,t-1}, which is undefined when a round leaves at t = 0.",
        Enumeration("", _repaired_restart, _ROUNDS, statement="start at the tested iterate"),
        printed=Enumeration("", _printed_restart, _ROUNDS, statement="index t - 1 was tested"),
        about="the index at which a loop restarts",
        use="w_{k,t}, the iterate whose gradient was just tested.",
        severity="algorithm",
        source="Algorithm 1, line 17",
    ),
    erratum(
        "EA2",
        "w_{0,0} is initialized but the first round is k = 1.",
        Enumeration("", _first_round_is_defined, [1], complete=True, statement="w_{1,0} = w0"),
        printed=Enumeration("", _first_round_is_defined, [0], statement="w_{0,0} starts round 1"),
        about="the index at which a loop starts",
        use="w_{1,0} = w0.",
        source="Algorithm 1",
    ),
    """
        EA3 (minor; Algorithm 1, output): The stop test is printed with grad_{t,k} for
            grad_{k,t}.
            open: the order of two indices
            use: grad_{k,t}.
        EA4 (algorithm; Algorithm 1): When F0 is already small the printed number of rounds is
            negative.
            claim: 1 <= K at F0 = 3*(gamma*L0*X)**kappa; free X a  # at three times the target
                there is at least one round
            printed: 0 <= K at F0 = (gamma*L0*X)**kappa/3; free X a  # the number of rounds is
                not negative, whatever F0
            use: Return w0 when F0 <= (gamma L0 X)^kappa or beta' >= 1/6.
        EA5 (algorithm; Lemma 2): When the floor exceeds F0, nothing prevents the output from
            being worse than the start.
            claim: u <= Phi where u <= F0, Max(Phi_before, u) <= Phi  # Phi >= floor
            printed: u <= Max(Phi_before, Min(u, F0))  # Phi >= floor, capped at F0
            about: the order of any two risks and a floor
            use: Return w0 when the floor is at least F0.
        EA6 (minor; Algorithm 2, output): The budget sum of Algorithm 3 has rho_t inside a sum
            over j.
            open: an index inside a sum
            use: rho_j.
        EA7 (rate; Algorithm 4): The step 1/(Ltil t) of Algorithm 4 does not match the weights 2
            t/(T (T + 1)).
            claim: t*(1/(2*eta_in) - Ltil/2) - (t - 1)*Ltil*t/4 = 0  # weighted terms telescope;
                (t-1)/(2 eta_{t-1}) = (t-1) Ltil t/4
            printed: t*(1/(2*eta_in) - Ltil/2) - (t - 1)*Ltil*(t - 1)/2 = 0; printed eta_in  #
                weighted terms telescope with eta_t = 1/(Ltil t)
            use: eta_t = 2/(Ltil (t + 1)).
        EA8 (algorithm; Algorithm 2): A convex loss has Ltil = 0, for which Algorithms 2 and 4
            divide by zero.
            claim: Phi**((2 - kappa)/kappa)/(8*gamma**2) <= lam  # the staged weight stays
                positive as Ltil goes to 0
            settings: lam
            use: The stage-dependent weight, which accepts Ltil = 0.
    """,
)
