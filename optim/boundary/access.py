"""Which oracle answers an optimizer? A new one, one with a file or a book, or one that is given.

The ledger of a run is known also if the run ends with an error or with Ctrl-C:

>>> from dpcal import calibrate, optim
>>> objective = optim.Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1])
>>> plan = calibrate.dpsgd(n=2, batch_size=2, steps=10, epsilon=1.0, delta=1e-6)
>>> def interrupt(progress):
...     raise KeyboardInterrupt
>>> try:
...     optim.dpsgd(objective, plan, callback=interrupt, callback_every=4)
... except KeyboardInterrupt as error:
...     released(error)
<Ledger of 4 answers about 2 records, add-or-remove-one>
"""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from dpcal.calibrate.plan import Plan
from dpcal.errors import DpcalError
from dpcal.optim import boundary
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.base import Objective

if TYPE_CHECKING:
    from dpcal.optim.boundary.budget.book import BudgetBook

__all__ = ["Store", "check_answers", "keeps_ledger", "oracle_of", "released", "written"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

# The oracle of the running optimizer, in a list of at most one.
_ASKED: ContextVar[list[Oracle] | None] = ContextVar("asked", default=None)


Store: TypeAlias = "str | os.PathLike[str] | BudgetBook | None"


def oracle_of(
    records: Objective | Oracle,
    plan: Plan,
    seed: Seed = None,
    store: Store = None,
    noise: str | None = None,
    every: int = 1,
) -> Oracle:
    """Return the oracle of an optimizer: a new one about an objective's records, or the one given.

    An oracle that is given has its own plan and randomness: another plan, a seed, a store or a
    noise raise a ValueError, and so does ``every``, the answers of a transaction, without a file.
    The other arguments are those of :func:`dpcal.optim.run`.
    """
    oracle = _opened(records, plan, seed, store, noise, every)
    asked = _ASKED.get()
    if asked is not None:
        asked[:] = [oracle]
    return oracle


def check_answers(records: Any) -> None:
    """Refuse an object that is neither an objective nor an oracle."""
    # isinstance(records, Oracle) does not see attributes that an object passes on from another one:
    # since Python 3.12 it asks no __getattr__.
    answers = (name for name in vars(Oracle) if not name.startswith("_"))
    if not isinstance(records, Objective) and not all(hasattr(records, name) for name in answers):
        raise TypeError(f"objective must be an Objective or an Oracle, got {records!r}.")


def _opened(
    records: Objective | Oracle, plan: Plan, seed: Seed, store: Store, noise: str | None, every: int
) -> Oracle:
    if isinstance(records, Objective):
        if store is None and every != 1:
            raise ValueError(f"store_every goes with a store, got store_every={every!r} without.")
        if store is None:
            return PrivateOracle(records, plan, seed=seed, noise=noise)
        if isinstance(store, str | os.PathLike):
            oracle = boundary.stored(store, records, plan, seed=seed, noise=noise, every=every)
            oracle.closes_with_run = True
            return oracle
        if not hasattr(store, "oracle"):
            raise TypeError(
                "store must be a path of a file, a BudgetBook, book.with_store(path), or None, got "
                f"{store!r}."
            )
        return store.oracle(records, plan, seed=seed, noise=noise, every=every)
    check_answers(records)
    if records.plan != plan:
        raise ValueError("plan must be the oracle's own, oracle.plan, got another one.")
    if seed is not None or store is not None or noise is not None or every != 1:
        raise ValueError("seed, store and noise go with an objective, got one with an oracle.")
    return records


def keeps_ledger(optimizer: Callable[_P, _T]) -> Callable[_P, _T]:
    """Add the ledger of all releases to the errors that leave an optimizer."""

    @functools.wraps(optimizer)
    def run(*args: _P.args, **options: _P.kwargs) -> _T:
        asked: list[Oracle] = []
        before = _ASKED.set(asked)
        try:
            return optimizer(*args, **options)
        except BaseException as error:
            if asked and released(error) is None:
                vars(error)["ledger"] = asked[0].ledger.frozen()
                # The error may show answers, so they are written first. If the file cannot be
                # written or read, the error of the run is still the one that is raised.
                with suppress(OSError, ValueError, sqlite3.Error, DpcalError):
                    written(asked[0])
                    vars(error)["ledger"] = getattr(asked[0], "held", asked[0].ledger).frozen()
            raise
        finally:
            _ASKED.reset(before)

    return run


def written(oracle: Oracle) -> None:
    """Write answers that wait in an oracle to its file, before anything that depends on them."""
    getattr(oracle, "flush", lambda: None)()


def released(error: BaseException) -> Ledger | None:
    """Return the ledger of a run that ended with an error; None if it had released nothing.

    It is the attribute ``ledger`` of the error that the optimizer raised, ``KeyboardInterrupt``
    too.
    """
    ledger = getattr(error, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else None
