"""Plan builders of minimax problems: min over x, max over y of a mean over records.

In addition to :mod:`dpcal.calibrate.plans`, their parameters mean:

constants
    ``smoothness`` L, ``lipschitz`` M (unless ``max_norm`` is given) and, where there is a dual
    variable, ``strong_concavity`` mu of one record's F.
dimensions
    d1 >= 1 and d2 >= 0, the numbers of primal and dual parameters. With d2 = 0 the problem is a
    plain minimisation.
batch_size, refresh_size
    Expected records, in [1, n], of a difference (or of a step) and of a fresh gradient.
max_norm
    Bound C > 0 to which a record's pair of gradients is clipped; M when omitted.
ascent_rate
    Step size > 0 of y; 1 / L when omitted.
value_smoothness
    L_Phi > 0, the smoothness of the value function Phi; (1 + kappa) L when omitted, with kappa = L
    / mu, which is safe and often far from the truth.
sampler
    Sampler of ``dp_rgda``: ``"fixed-size"`` (the default under replace-one) or ``"poisson"`` (the
    default otherwise). Others sample by that default.
"""

__all__: list[str] = []
