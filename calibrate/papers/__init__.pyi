from types import ModuleType

from dpcal.calibrate.papers import (
    dp_rgda as dp_rgda,
    gauss_psgd as gauss_psgd,
    kan as kan,
    kl_condition as kl_condition,
    moments as moments,
    spiderboost as spiderboost,
)
from dpcal.calibrate.papers.claims.language import (
    Balance as Balance,
    Bound as Bound,
    Claim as Claim,
    Definition as Definition,
    Enumeration as Enumeration,
    Erratum as Erratum,
    Feasible as Feasible,
    Identity as Identity,
    Loose as Loose,
    Priced as Priced,
    Private as Private,
    Prose as Prose,
    Quantity as Quantity,
    Rate as Rate,
    Recursion as Recursion,
    Release as Release,
    Schedule as Schedule,
    Setting as Setting,
    SoftRate as SoftRate,
    Units as Units,
    auxiliary as auxiliary,
    claims_of as claims_of,
    errata_of as errata_of,
    erratum as erratum,
    positive as positive,
    settings_of as settings_of,
    theorems_of as theorems_of,
)
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
