from dpcal.commands.training.demonstration import demonstrate as demonstrate
from dpcal.commands.training.fitting import fit_table as fit_table
from dpcal.commands.training.selection import select_model as select_model
