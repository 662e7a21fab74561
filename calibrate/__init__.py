"""How much noise does a target need?"""

from dpcal.calibrate.plan import Plan, Query

__all__ = ["Plan", "Query"]
