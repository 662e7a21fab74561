"""What ``dpcal train`` and ``dpcal demo`` do, apart from declaring their options.

The options of ``dpcal train`` go one way. ``fitting`` calls five steps; each is given what the step
before it returned, and nothing is changed on the way:

1. ``request``: options -> a frozen ``Request``, checked before a record is read, with the help of
   ``tuning``, ``minimax``, ``silos`` and ``constants``. The options enter seven files:
   ``commands/train``, ``_options``, ``checking/progress``, ``fitting``, ``request``, ``tuning`` and
   ``minimax``.
2. ``data``: request -> records, coded by the schema and split, as a task.
3. ``plans``: request and task -> a calibrated plan.
4. ``task``: plan and task -> a run. From here on there is no request, only values of it.
5. ``evaluation`` and ``documents``: run -> scores and the report.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
