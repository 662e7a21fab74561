"""Private statistics of a table, from words to released numbers with their errors.

A statistic is one class of ``statistics`` or ``quantiles``: the totals that it is made of, their
bounds, and how it is read off noisy totals. 1. ``words`` and ``conditions``: words -> statistics,
checked by the schema. 2. ``reading``: the table -> the columns that are used, row by row. 3.
``planning``: statistics -> a plan. 4. ``answering``: plan and rows -> noisy answers, through the
privacy boundary, and the report.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.tables.releasing.answering import Release as Release
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
