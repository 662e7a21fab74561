"""Private statistics of a table, from words to released numbers with their errors.

1. ``words`` and ``conditions``: words -> statistics, checked by the schema. 2. ``statistics`` and
``quantiles``: the totals that a statistic is made of, their bounds, and how it is read off noisy
totals. 3. ``answering``: statistics -> a plan -> noisy answers, through the privacy boundary, and
the report.
"""

__all__: list[str] = []
