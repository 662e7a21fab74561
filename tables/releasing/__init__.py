"""Private statistics of a table, from words to released numbers with their errors.

1. ``statistics`` and ``conditions``: words -> statistics, checked by the schema. 2. ``reading``:
the table -> the columns that are used, row by row. 3. ``planning``: statistics -> the totals that
they share, and a plan. 4. ``answering``: plan and rows -> noisy answers, through the privacy
boundary, and the report. 5. ``estimates``: noisy answers -> statistics with their errors.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.tables.releasing.answering import Release as Release
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
