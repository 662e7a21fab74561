"""Parameter schedules of six papers: claims, a prover, and a checker independent of the prover.

:func:`load` returns a paper's schedule, :func:`audit` proves or refutes its claims, and
:func:`dpcal.calibrate.theory` evaluates its corrected settings, for a calibrated plan.

>>> from dpcal.calibrate.papers import load
>>> load("kan").claim("I36").formula()
'8*r*T*Lam/(32*r**2*T*Lam) = 1/(4*r)'
"""

import sys
from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from types import ModuleType

    from dpcal.calibrate.papers import (
        dp_rgda as dp_rgda,
        gauss_psgd as gauss_psgd,
        kan as kan,
        kl_condition as kl_condition,
        moments as moments,
        spiderboost as spiderboost,
    )
    from dpcal.calibrate.papers.claims.claim import Claim as Claim
    from dpcal.calibrate.papers.claims.errata import Erratum as Erratum, errata_of as errata_of
    from dpcal.calibrate.papers.claims.kinds import Enumeration as Enumeration
    from dpcal.calibrate.papers.claims.language import (
        Quantity as Quantity,
        Schedule as Schedule,
        Setting as Setting,
        quantities_of as quantities_of,
        settings_of as settings_of,
    )
    from dpcal.calibrate.papers.claims.notation import theorems_of as theorems_of
    from dpcal.calibrate.papers.claims.verdicts import Verdict as Verdict
    from dpcal.calibrate.papers.deciding import Store as Store, default_store as default_store
    from dpcal.calibrate.papers.prover import prove as prove
    from dpcal.calibrate.papers.registry import PAPERS as PAPERS, load as load
    from dpcal.calibrate.papers.report import (
        FORMATS as FORMATS,
        Audit as Audit,
        Finding as Finding,
        audit as audit,
    )

    schedules: ModuleType
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)

    # ``dpcal.calibrate.schedules`` is another name of this package.
    schedules = sys.modules[__name__]
