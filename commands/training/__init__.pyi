from dpcal.commands.training.demonstration import demonstrate as demonstrate
from dpcal.commands.training.dry_run import show_plan as show_plan
from dpcal.commands.training.fitting import fit_table as fit_table, fitted as fitted
from dpcal.commands.training.plans import correlated_plan as correlated_plan
from dpcal.commands.training.request import (
    Request as Request,
    correlated_noise as correlated_noise,
)
