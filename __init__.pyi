from dpcal import (
    accountants as accountants,
    adapters as adapters,
    calibrate as calibrate,
    estimators as estimators,
    optim as optim,
    plot as plot,
    report as report,
    tables as tables,
)
from dpcal.accountants import events as events
from dpcal.accountants.certificates.certify import certify as certify
from dpcal.accountants.certificates.verify import verify_certificate as verify_certificate
from dpcal.accountants.curves.tradeoff import attack_risk as attack_risk, trade_off as trade_off
from dpcal.accountants.interface import compare as compare, delta as delta, epsilon as epsilon
from dpcal.calibrate.noise import (
    batch_size as batch_size,
    noise_multiplier as noise_multiplier,
    steps as steps,
)
from dpcal.calibrate.plan import Plan as Plan
from dpcal.calibrate.query import Query as Query
from dpcal.optim.algorithms import run as run
from dpcal.optim.boundary.budget.book import BudgetBook as BudgetBook
from dpcal.optim.boundary.ledger import Ledger as Ledger
from dpcal.optim.boundary.oracle import PrivateOracle as PrivateOracle
from dpcal.optim.budget import budget as budget
from dpcal.optim.objectives.custom import FromGradients as FromGradients
from dpcal.optim.objectives.linear import Logistic as Logistic, Squared as Squared
from dpcal.optim.objectives.softmax import Softmax as Softmax
from dpcal.optim.result import Result as Result
from dpcal.report.verification import verify as verify
from dpcal.tables.api import release as release, train as train
from dpcal.tables.model import load_model as load_model

__version__: str
