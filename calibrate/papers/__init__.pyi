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
