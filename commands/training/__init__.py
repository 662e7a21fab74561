"""What ``dpcal train`` and ``dpcal demo`` do with their options: read, calibrate, train, report.

The commands' own modules declare options and load quickly; what is here needs numpy and the rooms,
and is imported when a command runs.

``draft_schema``
    What a table's columns are, as a file to be filled in.
``predict_table``
    What a private model says of a table's records.
``fit_table``
    A private linear model of a table of one's own.
``select_model``
    The first of several models that passes a private test of second order.
``demonstrate``
    The whole way on scikit-learn's breast-cancer records.
"""

from typing import TYPE_CHECKING

from dpcal import _lazy

if TYPE_CHECKING:
    from dpcal.commands.training.demonstration import demonstrate
    from dpcal.commands.training.own_table import fit_table
    from dpcal.commands.training.prediction import predict_table
    from dpcal.commands.training.schema import draft_schema
    from dpcal.commands.training.selection import select_model

__all__ = ["demonstrate", "draft_schema", "fit_table", "predict_table", "select_model"]

__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "demonstrate": "dpcal.commands.training.demonstration",
        "draft_schema": "dpcal.commands.training.schema",
        "fit_table": "dpcal.commands.training.own_table",
        "predict_table": "dpcal.commands.training.prediction",
        "select_model": "dpcal.commands.training.selection",
    },
)
