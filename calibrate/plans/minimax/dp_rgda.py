"""From a target to DP-RGDA: how many outer steps, how much noise, and how long is an escape?

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=2.5, smoothness=4.0, strong_concavity=1.0, gap=0.5,
...                       hessian_lipschitz=6.0)
>>> plan = dp_rgda(constants, n=200_000, dimensions=(2, 2), epsilon=2.0, delta=1e-6,
...                value_smoothness=5.0)
>>> 0.999 < plan.price() <= 2.0
True
>>> [plan.parameters[name] for name in ("inner_steps", "certifiable")]
[8, True]
"""

from __future__ import annotations

from dpcal import _validate
from dpcal.calibrate.constants import Constants, public_constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.minimax.practical import practical
from dpcal.calibrate.plans.minimax.setting import Options, Setting
from dpcal.calibrate.plans.minimax.theory import empirical, population

__all__ = ["dp_rgda"]

PRESETS = {"practical": practical, "theory": empirical, "population": population}


@public_constants
def dp_rgda(
    constants: Constants,
    *,
    n: int,
    dimensions: tuple[int, int],
    epsilon: float,
    delta: float,
    preset: str = "practical",
    steps: int | None = None,
    period: int | None = None,
    inner_steps: int | None = None,
    batch_size: int | None = None,
    refresh_size: int | None = None,
    max_norm: float | None = None,
    difference_norm: float | None = None,
    value_smoothness: float | None = None,
    accuracy: float | None = None,
    step_length: float | None = None,
    step: str = "normalised",
    ascent_rate: float | None = None,
    escape_rate: float | None = None,
    perturbation: float | None = None,
    escape_steps: int | None = None,
    movement: float | None = None,
    select: str = "last",
    split: str = "balanced",
    sampler: str | None = None,
    warm_start: int = 0,
    algorithm: str = "corrected",
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of DP-RGDA that meets (epsilon, delta).

    Parameters
    ----------
    constants
        Public constants of one record's F: ``lipschitz`` M (unless ``max_norm`` is given),
        ``smoothness`` L, ``strong_concavity`` mu (where there is a dual variable), ``gap`` (unless
        ``steps`` and ``accuracy`` are given) and ``hessian_lipschitz`` rho (unless ``escape_steps``
        is given).
    n
        Number of records, >= 1, public.
    dimensions
        d1 >= 1 and d2 >= 0, the numbers of primal and dual parameters. With d2 = 0 the problem is
        a plain minimisation, and the run looks for a second-order stationary point of it.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    preset
        ``"practical"``: what is not given is derived as
        :mod:`dpcal.calibrate.plans.minimax.practical` says. ``"theory"``: the paper's
        Theorem 1 and Lemma 6, corrected; warns where they promise nothing. ``"population"``: one
        pass over disjoint batches, for the population risk; needs a relation under which records
        stay in place. The last two take ``inner_steps``, ``max_norm`` and ``value_smoothness`` of
        the options below, and no other.
    steps, period, inner_steps
        T outer steps; q of them from one refresh to the next, at most T; K >= 2 inner estimates of
        an outer step (1 without a dual variable).
    batch_size, refresh_size
        Expected records, in [1, n], of an increment and of a refresh; all records for a refresh
        when omitted.
    max_norm
        C1 > 0, to which a record's pair of gradients is clipped; M when omitted.
    difference_norm
        Rule A: the bound > 0 on a record's difference, whatever the movement. When omitted, rule B:
        ``min(L ||(x, y) - (x', y')||, 2 C1)``, so that noise falls with the movement.
    value_smoothness
        L_Phi > 0, the smoothness of Phi; (1 + kappa) L when omitted, which is safe and often far
        from the truth.
    accuracy
        alpha > 0: an escape is tried where the estimated gradient is shorter.
    step_length, step
        eta > 0: the length of a step for ``"normalised"``, its factor for ``"plain"``.
    ascent_rate
        lambda > 0, the step size of y; 1 / L when omitted.
    escape_rate, perturbation, escape_steps, movement
        eta_H > 0, at most 1 / L_Phi; the radius r > 0 of the perturbation; t_thres >= 1 steps that
        a phase must last; Dbar > 0, the squared movement that a step of it may make on average.
    select
        ``"last"`` or ``"argmin"``; see :class:`dpcal.optim.minimax.tracking.Tracking`.
    split
        ``"balanced"`` gives refreshes and increments the noises that make the least error at one
        price; ``"common"`` gives them one multiplier.
    sampler
        ``"fixed-size"`` (the default under replace-one) or ``"poisson"`` (the default otherwise).
    warm_start
        How many noisy ascent steps y makes at x_0 before the first outer step; they are paid for.
    algorithm
        ``"literal"`` runs the loop as printed, with its errors and an honest price; for audits.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    Plan
        Queries ``"refresh"``, ``"difference"`` and, if asked for, ``"warm start"``; each answer is
        about both blocks. ``parameters`` holds the setting, the root mean square ``noise_floor`` of
        the estimated gradient in x, and whether a phase can last (``certifiable``).

    Raises
    ------
    ValueError
        For an argument out of range, or a constant that is needed and infinite or missing.

    Warns
    -----
    VacuousSchedule
        If the noise is as large as the accuracy, or no phase can last, or alpha is not below M.

    References
    ----------
    Xu, Tao, Ding, Fan and Wang 2026, Algorithms 2 and 3, corrected; see the errata.
    """
    build = PRESETS[_validate.choice(tuple(PRESETS), preset=preset)]
    options = Options(
        steps=steps,
        period=period,
        inner_steps=inner_steps,
        batch_size=batch_size,
        refresh_size=refresh_size,
        difference_norm=difference_norm,
        accuracy=accuracy,
        step_length=step_length,
        step=step,
        ascent_rate=ascent_rate,
        escape_rate=escape_rate,
        perturbation=perturbation,
        escape_steps=escape_steps,
        movement=movement,
        select=select,
        split=split,
        sampler=sampler,
        warm_start=warm_start,
        algorithm=algorithm,
    )
    target = (epsilon, delta, neighboring_relation)
    setting = Setting.of(constants, n, dimensions, target, max_norm, value_smoothness)
    options.check(setting, preset)
    return build(setting, options)
