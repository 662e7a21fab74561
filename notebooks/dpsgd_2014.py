"""A sixth paper in one file: noisy stochastic gradient descent of Bassily, Smith, Thakurta (2014).

``dpcal audit notebooks/dpsgd_2014.py`` decides its claims. Section 2 of the paper gives Algorithm 1:
n**2 steps of one sampled record each, noise for strong composition, and excess empirical risk of
order sqrt(d)/(n epsilon) up to logarithms. The textbook Gaussian noise that it builds on
(Dwork and Roth 2014, Theorem A.1) is stated for epsilon below 1, and fails beyond.
"""

from dpcal.calibrate.papers import (
    Bound,
    Definition,
    Identity,
    Private,
    Prose,
    Quantity,
    Rate,
    Release,
    Schedule,
    Setting,
    SoftRate,
    Units,
    erratum,
)

QUANTITIES = (
    Quantity("n", "records", range="[2, oo)"),
    Quantity("d", "dimension", range="[1, oo)"),
    Quantity("epsilon", "target epsilon", range="(0, 1]"),
    Quantity("delta", "target delta", range="[1/10000000000, 1/100]"),
    Quantity("Lam", "log(1/delta), for delta up to 1/100", range="[4, oo)"),
    Quantity("L", "Lipschitz constant", {"loss": 1, "parameter": -1}),
    Quantity("D", "diameter of the feasible set", {"parameter": 1}),
    Quantity("second_moment", "bound on the squared norm of a noisy gradient"),
    Quantity("t", "step, from 1", range="[1, oo)"),
    Quantity("e", "an epsilon that may exceed 1", range="[1/100, 20]"),
)

SETTINGS = (
    Setting("T", "n**2", source="Algorithm 1, line 3: number of steps"),
    Setting(
        "variance",
        "32*L**2*n**2*(log(n) + Lam)*Lam/epsilon**2",
        source="Algorithm 1, line 1: noise variance per coordinate",
    ),
    Setting(
        "second_moment",
        "n**2*L**2 + d*variance",
        source="Theorem 2.4, proof: squared norm of the noisy step, before its expectation",
    ),
    Setting("step", "D/sqrt(t*second_moment)", source="Theorem 2.4: learning rate"),
    Setting("textbook", "sqrt(2*log(125/(100*delta)))/e", source="Dwork and Roth, Theorem A.1"),
)

CLAIMS = (
    Definition("steps", "T = n**2", statement="one pass per record", source="Algorithm 1, line 3"),
    Units(
        "step.unit",
        "step",
        {"loss": -1, "parameter": 2},
        source="Theorem 2.4",
        statement="a step turns a gradient into a movement",
    ),
    Units(
        "noise.unit",
        "sqrt(variance)",
        {"loss": 1, "parameter": -1},
        source="Algorithm 1, line 1",
        statement="noise has the unit of a gradient",
    ),
    Identity(
        "balance",
        "D**2/step + step*t*second_moment = 2*D*sqrt(t*second_moment)",
        free="second_moment",
        source="Theorem 2.4, proof: Shamir and Zhang 2013, Theorem 2",
        statement="the step balances distance and noise",
    ),
    Bound(
        "noise.dominates",
        "n**2*L**2 <= second_moment",
        source="Theorem 2.4, proof",
        statement="the second moment is at least the signal's",
    ),
    Rate(
        "excess.exact",
        "D*sqrt(second_moment)/n**2 =O D*L*sqrt(d)*log(n)/n",
        growth={"n": 1, "d": "1/2"},
        source="Theorem 2.4",
        statement="excess risk over sqrt(T) steps, with its logarithm, at d = sqrt(n)",
    ),
    SoftRate(
        "excess",
        "D*sqrt(second_moment)/n**2 =O~ D*L*sqrt(d)/n",
        growth={"n": 1, "d": "1/2"},
        source="Theorem 2.4",
        statement="excess risk ~ sqrt(d)/n up to logarithms",
    ),
    Private(
        "textbook",
        (Release(1, "textbook", 1),),
        epsilon="e",
        delta="delta",
        on={"e": ("1/100", 1)},
        source="Dwork and Roth, Theorem A.1",
        statement="the textbook noise is enough for epsilon up to 1",
    ),
    Prose(
        "Theorem 2.4",
        "an expectation over noise and samples, with a hidden constant",
        source="Theorem 2.4",
        statement="expected excess risk O(L D sqrt(d)/(n epsilon) polylog)",
    ),
    Prose(
        "Theorem 5.3",
        "a lower bound over all private algorithms",
        source="Theorem 5.3",
        statement="excess risk is at least of order sqrt(d)/(n epsilon)",
    ),
)

ERRATA = (
    erratum(
        "beyond",
        "The textbook noise is used for any epsilon; it fails beyond its range.",
        None,
        printed=Private(
            "beyond",
            (Release(1, "textbook", 1),),
            epsilon="e",
            delta="delta",
            statement="the textbook noise is enough for epsilon up to 20",
        ),
        use="The smallest multiplier of the exact Gaussian profile: calibrate.noise_multiplier.",
        severity="privacy",
        source="Dwork and Roth, Theorem A.1, outside its condition",
    ),
    erratum(
        "logarithm",
        "Without its logarithm the rate is not reached.",
        None,
        printed=Rate(
            "logarithm",
            "D*sqrt(second_moment)/n**2 =O D*L*sqrt(d)/n",
            growth={"n": 1, "d": "1/2"},
            statement="excess risk without logarithms",
        ),
        use="O-tilde, or the logarithm.",
        severity="rate",
        source="Theorem 2.4, read without its logarithms",
    ),
)

SCHEDULE = Schedule(
    name="dpsgd_2014",
    title="Noisy stochastic gradient descent on empirical risk",
    citation=(
        "Bassily, Smith, Thakurta: Private Empirical Risk Minimization: Efficient Algorithms and "
        "Tight Error Bounds, FOCS 2014, arXiv 1405.7085"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=CLAIMS,
    errata=ERRATA,
)
