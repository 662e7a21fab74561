"""Whatever a subclass overrides, a record moves a sum by at most its bound, or a run is refused."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest
from _cluster import array_in_parts, two_workers

from dpcal import optim
from dpcal.calibrate import Plan, Query
from dpcal.errors import DpcalError
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import Contributions


@pytest.fixture(scope="module")
def client():
    with two_workers(__name__, processes=False) as made:
        yield made


@pytest.fixture
def started(request, name):
    """Start the workers that hold partitions, for a family that has them."""
    if name == "Partitioned":
        request.getfixturevalue("client")


def pairs(X):
    """Return the gradients of F = <a, x> <a, y> of each record a."""

    def gradients(x, y, rows):
        A = X[rows]
        return (A @ y)[:, np.newaxis] * A, (A @ x)[:, np.newaxis] * A

    return gradients


def minimax(cls, X, **more):
    losses = lambda x, y, rows: (X[rows] @ x) * (X[rows] @ y)  # noqa: E731
    return cls(pairs(X), n=N, dimensions=(D, D), loss=losses, dual_l2=1.0, **more)


RNG = np.random.default_rng(0)
N, D, BOUND = 40, 3, 0.5
X = RNG.standard_normal((N, D))
Y = RNG.integers(0, 3, N)
FAMILIES = {
    "Logistic": lambda cls, X: cls(X, Y > 0, classes=[False, True]),
    "Squared": lambda cls, X: cls(X, Y.astype(float)),
    "Softmax": lambda cls, X: cls(X, Y, classes=[0, 1, 2]),
    "MLP": lambda cls, X: cls(X, Y, classes=[0, 1, 2], width=2),
    "KAN": lambda cls, X: cls(X, Y > 0, classes=[False, True], width=2),
    **{name: lambda cls, X: cls(X, Y.astype(float)) for name in ("Huber", "Cauchy", "Welsch")},
    "Sigmoid": lambda cls, X: cls(X, Y > 0, classes=[False, True]),
    "FromGradients": lambda cls, X: cls(
        lambda w, rows: X[rows] - w, n=N, dimension=D, loss=lambda w, rows: X[rows, 0]
    ),
    "Users": lambda cls, X: cls(
        optim.FromGradients(lambda w, rows: X[rows] - w, n=N, dimension=D),
        np.arange(N),
        group_size=1,
    ),
    "Minimax": minimax,
    "Partitioned": lambda cls, X: cls(
        optim.Squared, array_in_parts(X, 15), array_in_parts(Y.astype(float), 15)
    ),
}
CHANGED = X.copy()
CHANGED[7] = [900.0, -700.0, 800.0]


def leaking(family, name):
    """Return a class in which a method returns something of all records, many times too long."""
    before = getattr(family, name)

    def method(self, *given, **options):
        seen = SEEN[0].sum() * 1e3
        found = (
            before.fget(self) if isinstance(before, property) else before(self, *given, **options)
        )
        if isinstance(found, np.ndarray) and found.dtype.kind == "f":
            return found + seen
        if isinstance(found, Contributions):
            return np.full((len(given[0]), found.size), seen)
        if isinstance(found, Iterator):
            return iter([each for each in found for _ in range(3)])
        return found + seen if isinstance(found, float) else found

    if isinstance(before, property):
        replaced = property(method)
    elif name == "constants_for":
        replaced = staticmethod(lambda *given, **options: method(None, *given, **options))
    else:
        replaced = method
    return type(f"Own{family.__name__}", (family,), {name: replaced})


SEEN = [X]


def overridable(family):
    # Other families override what this one inherits; here an answer takes a second.
    names = vars(family) if family is optim.Partitioned else dir(family)
    return sorted(
        name
        for name in names
        if not name.startswith("_")
        and (callable(getattr(family, name)) or isinstance(getattr(family, name), property))
        and not isinstance(getattr(family, name), type)
        and name != "abc"
    )


FINAL = {
    *("clipped_sum", "clipped_difference_sum", "clipped_loss_sum"),
    *("regularizer", "regularizer_gradient", "strengths"),
}
KINDS = {
    "gradient": "gradient",
    "gradient difference": "difference",
    "gradient norm": "norm",
    "scalar": "scalar",
}


def sums(make, cls, table):
    """Return the sum behind an answer of each kind, without its noise; None where it is refused."""
    SEEN[0] = table
    persons = {"clipped": "user", "group_size": 1} if issubclass(cls, optim.Users) else {}
    given = {"sampler": "full", "max_norm": BOUND, "noise_multiplier": 1e-3, "count": 1, **persons}
    queries = tuple(Query(name=kind, kind=kind, **given) for kind in KINDS)
    plan = Plan(optimizer="x", n=N, queries=queries, epsilon=1e9, delta=1e-6)
    found = dict.fromkeys(KINDS)
    try:
        oracle = optim.PrivateOracle(make(cls, table), plan, seed=3)
    except (DpcalError, TypeError, ValueError):
        return found
    w = np.full(oracle.dimension, 0.1)
    for kind, method in KINDS.items():
        at = [w, -w] if kind == "gradient difference" else [w]
        with suppress(DpcalError, TypeError, ValueError):
            found[kind] = N * np.atleast_1d(getattr(oracle, method)(*at, kind))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.usefixtures("started")
def test_one_record_moves_a_sum_by_its_bound_whatever_is_overridden(name):
    family, make = getattr(optim, name), FAMILIES[name]
    # What is not overridden is answered.
    assert sum(each is not None for each in sums(make, family, X).values()) >= 3
    for method in overridable(family):
        if method in FINAL:
            with pytest.raises(TypeError, match=f"{method} must not be overridden"):
                leaking(family, method)
            continue
        cls = leaking(family, method)
        before, after = (sums(make, cls, table) for table in (X, CHANGED))
        for kind in KINDS:
            if before[kind] is None or after[kind] is None:
                continue
            moved = np.linalg.norm(before[kind] - after[kind])
            # A replaced record moves a sum by twice the bound; noises differ by 1e-3 of it, times a
            # normal: six of them, in each of at most 20 coordinates.
            most = 2 * BOUND + 6e-3 * BOUND * np.sqrt(2 * 20)
            assert moved <= most, (method, kind, moved)


def test_objectives_are_all_there():
    classes = {name for name in optim.__all__ if isinstance(getattr(optim, name), type)}
    models = {name for name in classes if issubclass(getattr(optim, name), Objective)}
    assert models == {"Objective", *FAMILIES}


def arrays_of(objective):
    """Yield the arrays that an objective and its kernel show to whoever holds it."""
    kernel = getattr(objective, "kernel", None)
    for owner in (objective, *([] if kernel is None else [kernel])):
        for name in dir(owner):
            if name.startswith("_"):
                continue
            try:
                value = getattr(owner, name)
            except DpcalError:
                continue
            if isinstance(value, np.ndarray | memoryview):
                yield name, np.asarray(value)


@pytest.mark.parametrize(
    "family", [name for name in FAMILIES if name not in ("Users", "Minimax", "Partitioned")]
)
def test_no_array_that_is_shown_makes_a_record_weigh_more(family):
    """Rows are sealed: norms are taken once, and clipping relies on them."""
    objective = FAMILIES[family](getattr(optim, family), X)
    w, rows = np.full(objective.dimension, 0.1), np.arange(N)
    before = objective.clipped_sum(w, rows, BOUND)
    for name, array in arrays_of(objective):
        if name == "features":
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                array.flags.writeable = True
            continue
        try:
            array.flags.writeable = True
            array[...] = 0
        except ValueError:
            continue
    np.testing.assert_array_equal(objective.clipped_sum(w, rows, BOUND), before)
    for row in rows:
        alone = objective.clipped_sum(w, np.array([row]), BOUND)
        assert np.linalg.norm(alone) <= BOUND * (1 + 1e-9)
