"""The base of all private estimators: a plan that is paid, a ledger, and the budget spent.

A fit makes one plan from public numbers, charges it to the budgets in use, and only then lets an
oracle read the records.

>>> from dpcal.estimators import StandardScaler
>>> scaler = StandardScaler(bounds=(0.0, 10.0), epsilon=0.5).fit([[1.0], [4.0], [7.0]] * 100)
>>> [query.name for query in scaler.ledger_.entries], bool(scaler.epsilon_spent_ <= 0.5)
(['moments'], True)
>>> scaler.report_["plan"]["n"]
300
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.utils.validation import check_is_fitted

from dpcal._internal import validate
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.calibrate import Plan, Query
from dpcal.calibrate.persons import for_group
from dpcal.calibrate.query import CHOICES
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.estimators.parts import Private, model_report, refuse_unasked
from dpcal.estimators.queries import RELATION, single_release
from dpcal.estimators.reading import (
    BY_ROW,
    by_partitions,
    checked,
    one_for_each,
    table_of,
)
from dpcal.optim import Ledger, PrivateOracle, Result
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.budget import in_use, prepaid, this_process
from dpcal.optim.linear_fit import sum_query
from dpcal.optim.objectives.domains import persons
from dpcal.optim.objectives.placed import by_row, is_placed, objective_of, opened, vectors_of
from dpcal.report import statement
from dpcal.report.saving import reported
from dpcal.tables.splitting import within_group_size

Table = NDArray[np.float64]

# Whether this thread copies a model for a score that is paid; such a copy omits these attributes.
_READING: ContextVar[bool] = ContextVar("reading", default=False)
_TOLD = {"_released", "_last", "ledger_"}


def _with_entries(text: str, base: str) -> str:
    """Return a docstring with the parameters and attributes of another one after its own."""
    for title in ("Parameters", "Attributes"):
        section = re.compile(rf"    {title}\n    -+\n(?:    .*\n|\n(?=     ))*")
        own, shared = section.search(text), section.search(base)
        if shared and own:
            entries = shared[0].split("\n", 2)[2]
            text = f"{text[: own.end()]}{entries}{text[own.end() :]}"
        elif shared:
            later = re.search(r"\n    (?:Attributes|Raises|Notes|References)\n|\n? *$", text)
            place = later.start() if later else len(text)
            text = f"{text[:place].rstrip()}\n\n{shared[0].rstrip()}\n{text[place:]}"
    return text


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(Private, BaseEstimator):  # type: ignore[misc]
    """Base class: parameters that all estimators have, the budget spent, and the answers.

    Parameters
    ----------
    epsilon
        Privacy parameter > 0 of one fit; neighbors differ by one record that is there or blanked,
        so that it contributes nothing (``"replace-special"``). The number of records is published.
    delta
        Privacy parameter in (0, 1).
    rows_per_person
        Number >= 1 of rows that a person has at most. Where it is larger than 1, the claim is about
        a person with all rows, and the noise is larger by this factor; you must declare classes,
        bounds, categories or quantiles that would be learned by a choice. Pass ``groups`` to
        ``fit``, shape (n,), with the person of each row, and it leaves out further rows of a
        person, drawn at random; without it you must see to it that no person has more.

    Attributes
    ----------
    ledger_
        The :class:`dpcal.optim.Ledger` of everything that the last fit released.
    epsilon_spent_
        Epsilon at ``delta`` of everything released since the last ``fit``, calls of
        ``partial_fit`` included, computed from the ledgers. A call that ended before its plan's
        end costs its whole plan.
    report_
        The claim with plan, ledger and cost, as JSON values.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    rows_per_person: int = 1

    _own_doc = __doc__
    _released: list[Any] = field(init=False)
    _left_budget_of: str = field(init=False)

    _numbers_of = staticmethod(table_of)
    # For tests and studies: noise that can be drawn again protects no record; so no parameter.
    _seed = cast("int | None", None)

    def __init_subclass__(cls, **given: Any) -> None:
        """Add the parameters and attributes of the base to the documentation of the class."""
        super().__init_subclass__(**given)
        for name in BY_ROW & vars(cls).keys():
            setattr(cls, name, by_partitions(vars(cls)[name]))
        text = cls._own_doc = cls.__doc__ or ""
        for base in cls.__mro__[1:]:
            text = _with_entries(text, vars(base).get("_own_doc") or "")
        cls.__doc__ = text

    @np.errstate(all="ignore")
    def fit(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Self:
        """Learn from records, shape (n, n_features).

        Parameters
        ----------
        X
            Records.
        y
            Their labels or targets, shape (n,), for estimators that learn from them.
        groups
            Persons whom they are about, shape (n,).
        """
        tables = self._within_persons(groups, *self._tables(X, y))
        if not self._is_free():
            return self._fitted(*tables)
        self._declare(tables[0])
        self._close_free(len(tables[0]))
        return self

    def _fitted(self, *tables: Any) -> Self:
        """Learn from checked records, and forget the records of earlier calls."""
        return self._learn(*tables, first=True)

    def _learn(self, *tables: Any, **options: Any) -> Self:
        """Learn from checked records; keep earlier calls unless it is the ``first``."""
        raise NotImplementedError

    def _declare(self, X: Any) -> None:
        """Keep the declared facts about records, where no fact is learned."""
        raise NotImplementedError

    def _blank_targets(self, y: Any) -> NDArray[Any]:
        """Return as many targets as there are, none of which depends on a record."""
        return np.zeros(len(y), dtype=np.intp)

    def _is_gaussian(self) -> bool:
        """Whether all answers have Gaussian noise about all records."""
        return False

    def _cost(self, epsilon: float, delta: float) -> events.DpEvent:
        """Return an event that costs as much as a fit with this target: at worst, the target."""
        if not self._is_gaussian():
            return events.EpsilonDeltaDpEvent(epsilon, delta)
        return events.GaussianDpEvent(*single_release(epsilon, delta, [1.0]))

    def _pays(self) -> bool:
        """Whether there is a budget that answers are paid from, here or where it comes from."""
        return bool(in_use()) or self._is_elsewhere()

    def _is_elsewhere(self) -> bool:
        """Whether this is a copy that came from another process with a budget in use."""
        here = this_process()
        return bool(self.__dict__.get("_left_budget_of", here) != here)

    def _refuse_unpaid(self) -> None:
        """Refuse to predict while a budget is in use, except for a score that is paid."""
        if "_reads" in self.__dict__:
            return
        self._refuse_elsewhere()
        if in_use():
            raise ValueError(
                "What reads predictions about records is an exact score, which no budget pays for: "
                "while one is in use, give scoring=dpcal.estimators.noisy_accuracy (or noisy_r2), "
                "or call it with the model; ensembles that learn from predictions cannot be "
                "fitted. Predict for other records after the end of the with statement."
            )

    def _refuse_elsewhere(self) -> None:
        """Refuse to release anything that the process of the budget should pay for."""
        if self._is_elsewhere():
            raise BudgetExceeded(
                "This estimator was sent here from a process with a budget in use, which cannot be "
                "charged from here. Use n_jobs=1, or threads; or make a new estimator to fit it "
                "outside that budget. Save a model that others may score after the budget's end."
            )

    def _read(self, X: ArrayLike, *, reset: bool = True) -> Table:
        """Return records as the estimator takes them; scikit-learn checks all else."""
        (X,) = opened(X)
        # A fit needs two records: noise hides everything about a single one.
        least = 2 if reset else 1
        table: Table = checked(self, X, numbers_of=self._numbers_of, reset=reset, least=least)
        return table

    def _tables(self, X: ArrayLike, y: Any, *, reset: bool = True) -> tuple[Any, ...]:
        """Return records as :meth:`_read` does, and a label or a target for each."""
        X, y = (X, y) if y is None else opened(X, y)
        rows, name = self._read(X, reset=reset), type(self).__name__
        if y is None:
            return rows, one_for_each(rows, y, estimator=name)
        return rows, by_row(partial(one_for_each, estimator=name), rows, y)

    def _target(self) -> tuple[float, float]:
        """Return the checked target."""
        return validate.positive(epsilon=self.epsilon), validate.probability(delta=self.delta)

    def _multipliers(self, shares: Sequence[float]) -> list[float]:
        """Return noise multipliers of single Gaussian releases that together meet the target."""
        most = validate.count(rows_per_person=self.rows_per_person)
        return [most * each for each in single_release(*self._target(), shares)]

    def _within_persons(self, groups: Any, *tables: Any) -> tuple[Any, ...]:
        """Return records, and targets, without the rows of a person that are too many.

        The rows that stay are drawn without a look at the content of any row, and no other person
        has a say.
        """
        most = validate.count(rows_per_person=self.rows_per_person)
        if groups is None:
            return tables
        if is_placed(tables[0]):
            raise ValueError(
                "groups must be None for records in partitions of a cluster, of which none sees "
                "all rows of a person: leave out further rows first, and declare rows_per_person."
            )
        people = persons("groups", groups, len(tables[0]))
        key = secrets.token_bytes(32) if self._seed is None else str(self._seed).encode()
        kept = within_group_size(people, most, key)
        return tuple(table[kept] for table in tables)

    def _plan(self, n: int, *queries: Query, **parameters: Any) -> Plan:
        epsilon, delta = self._target()
        most = validate.count(rows_per_person=self.rows_per_person)
        learned = [query.name for query in queries if query.kind in CHOICES]
        if most > 1 and learned:
            raise UnsupportedEvent(
                f"rows_per_person must be 1 where {learned[0]} are learned, got {most}: no theorem "
                "here prices that for a person with several rows. Declare them, or hand in one row "
                "a person."
            )
        return Plan(
            optimizer=type(self).__name__,
            n=n,
            queries=tuple(query.of_group(most) for query in queries),
            epsilon=epsilon,
            delta=delta,
            neighboring_relation=RELATION,
            parameters=parameters,
        )

    def _paid(self, plan: Plan) -> AbstractContextManager[None]:
        """Return a context that charges a plan to the budgets before anything is read for it."""
        self._refuse_elsewhere()
        refuse_unasked()
        return prepaid(plan)

    @contextmanager
    def _asking(self, plan: Plan, *, first: bool = True) -> Iterator[Answers]:
        """Answer queries by a plan that is paid, and keep the released answers."""
        answers = Answers(self, plan)
        with self._paid(plan):
            yield answers
        self._close(answers, first=first)

    def _mean(
        self,
        name: str,
        bound: float,
        vectors: Callable[..., Table],
        dimension: int,
        *tables: Any,
        first: bool = True,
    ) -> tuple[Table, float]:
        """Return a private mean of one vector a record, and the deviation of its sum's noise.

        It is all that a fit releases. ``bound`` is on the norm of a vector; for the other
        parameters see :meth:`Answers.mean`.
        """
        (multiplier,) = self._multipliers([1.0])
        plan = self._plan(len(tables[0]), sum_query(name, bound, multiplier))
        with self._asking(plan, first=first) as told:
            mean = told.mean(name, vectors, dimension, *tables)
        return mean, multiplier * bound

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy, which no other process than this one's budgets may fit either.

        Meta-estimators clone the models that they were sent, inside their workers.
        """
        copy: Self = _clone_parametrized(self)
        if "_left_budget_of" in self.__dict__:
            copy._left_budget_of = self._left_budget_of
        return copy

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if _READING.get() and not self._is_elsewhere():
            return {name: value for name, value in state.items() if name not in _TOLD} | {
                "_reads": True
            }
        if not self._is_elsewhere():
            state.pop("_left_budget_of", None)
        if in_use():
            state.setdefault("_left_budget_of", this_process())
        return state

    def _close(self, answers: Answers, *, first: bool) -> None:
        """Keep the released answers: the ledger, its cost, the report.

        A fit that is not complete costs its whole plan, because its end is one of its outputs.
        """
        plan, complete = answers.plan, answers.complete
        entries = [entry for ledger in answers.ledgers for entry in ledger.entries]
        ledger = Ledger(plan.n, RELATION, entries=entries)
        status, message = "finished", "released all that was planned"
        if not complete:
            status, message = "stopped", "stopped before its plan's end"
        result = Result(
            w=np.empty(0),
            ledger=ledger,
            plan=plan,
            complete=complete,
            early=not complete,
            message=message,
            status=status,
            seed_given=self._seed is not None,
            noise=PrivateOracle.noise,
        )
        result.verify()
        self._last = answers
        self._released = [*([] if first else self._released), result]
        self.ledger_ = ledger
        # All runs are accounted for with the largest person of one of them.
        sizes = [getattr(each, "group_size", 1) for each in self._released]
        parts = [
            for_group(each.event, -(-max(sizes) // size))
            for each, size in zip(self._released, sizes, strict=True)
        ]
        self.epsilon_spent_ = epsilon_of(
            events.ComposedDpEvent(parts), delta=plan.delta, neighboring_relation=RELATION
        )

    def _close_free(self, n: int) -> None:
        """Keep that a fit on n records released nothing."""
        _, delta = self._target()
        self._released, self.ledger_ = [], Ledger(n, RELATION)
        self.epsilon_spent_ = epsilon_of(
            events.NoOpDpEvent(), delta=delta, neighboring_relation=RELATION
        )

    @property
    def report_(self) -> dict[str, Any]:
        """The claim of the last fit with plan, ledger and cost, as JSON values."""
        if not self._released:
            return {}
        (*_, last) = self._released
        if not isinstance(last, Result):
            raise AttributeError("report_ of the best model of a search: its price is no plan's.")
        return {"privacy": statement.privacy_statement(last), **statement.released(last)}

    @property
    def by_silo(self) -> tuple[tuple[Result, ...], ...]:
        """The runs since the last ``fit``, as :func:`dpcal.report.save` takes them.

        NotFittedError is raised before it, and UnsupportedEvent for the best model of a search,
        which has no epsilon of its plan.
        """
        check_is_fitted(self, "ledger_")
        runs = tuple(each for each in self._released if isinstance(each, Result))
        if len(runs) < len(self._released):
            raise UnsupportedEvent(
                "A report holds plans, and the price of a search is not that of one: keep the "
                "ledger_ of the search, or charge it to a budget book."
            )
        return (runs,)


class Answers:
    """Released facts about the records, by a plan that is paid, in fields that keep them.

    Attributes
    ----------
    plan
        The plan; a fit that chooses by an answer stores the content of its report here.
    ledgers
        A ledger for each question.
    complete
        Whether the plan came to its end.
    """

    def __init__(self, asking: PrivateEstimator, plan: Plan) -> None:
        self.plan, self.complete = plan, True
        self.ledgers: list[Ledger] = []
        self._seed = asking._seed

    def part(self, query: Query, name: str) -> Plan:
        """Return the plan of one query, for an oracle of its own."""
        return replace(self.plan, optimizer=name, queries=(query,), parameters={})

    def oracle(
        self, part: Plan, vectors: Callable[..., Table], dimension: int, *tables: Any
    ) -> PrivateOracle:
        """Return the oracle of sums of one vector a record, shortened to the query's bound.

        ``vectors(w, *rows)`` returns the vectors of some rows of the tables.
        """
        objective = objective_of(partial(vectors_of, vectors, dimension), *tables)
        oracle = PrivateOracle(objective, part, seed=self._seed)
        self.ledgers.append(oracle.ledger)
        return oracle

    def mean(self, name: str, vectors: Callable[..., Table], dimension: int, *tables: Any) -> Table:
        """Return a private mean of vectors, as :meth:`oracle` takes them."""
        part = self.part(self.plan.query(name).with_count(1), "sum")
        oracle = self.oracle(part, vectors, dimension, *tables)
        return oracle.gradient(np.zeros(dimension), name)

    def choices(self, table: Any, part: Plan | None = None, **given: Any) -> PrivateChoices:
        """Return a chooser of values of a table of shape (n, columns)."""
        choices = PrivateChoices(table, part or self.plan, **given, seed=self._seed)
        self.ledgers.append(choices.ledger)
        return choices


reported.register(BaseEstimator, model_report)


def read_by_score(model: Any) -> Any:
    """Return a copy of a model with private parts that predict for a score that is paid.

    The copy is the score's permission, and goes with it into the threads of an ensemble.
    """
    before = _READING.set(True)
    try:
        return deepcopy(model)
    except Exception:
        return model  # its private parts refuse to predict
    finally:
        _READING.reset(before)
