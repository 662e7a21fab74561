"""Parameter schedules of six papers: claims, a prover, and a checker independent of the prover.

:func:`load` returns a paper's schedule, :func:`audit` proves or refutes its claims, and
:func:`dpcal.calibrate.theory` evaluates its corrected settings, for a calibrated plan.

>>> from dpcal.calibrate.papers import load
>>> load("kan").claim("I36").formula()
'8*r*T*Lam/(32*r**2*T*Lam) = 1/(4*r)'
"""

import sys

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)

# ``dpcal.calibrate.schedules`` is another name of this package.
schedules = sys.modules[__name__]
