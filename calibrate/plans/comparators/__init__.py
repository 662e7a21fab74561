"""Plan builders of the methods that the papers of this package are compared with.

Their parameters mean what :mod:`dpcal.calibrate.plans` and :mod:`dpcal.calibrate.plans.minimax`
say.
"""

__all__: list[str] = []
