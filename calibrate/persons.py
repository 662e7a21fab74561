"""Persons with several rows: sums of sampled rows, and events of a group of records.

>>> event = rows_of_one_person(noise_multiplier=4.0, group_size=2, sampling_probability=0.5)
>>> event.sensitivities, [round(share, 6) for share in event.sampling_probs]
((0.0, 1.0, 2.0), [0.25, 0.5, 0.25])
>>> print(f"{rows_of_one_person(noise_multiplier=4.0, group_size=2).noise_multiplier:.9f}")
2.000000000

If you draw rows by coins, or in batches of a fixed size, the same function gives the event of a
user:

>>> from dpcal.accountants.samplers import FixedSize, Poisson
>>> for_group(Poisson(0.5).event(events.GaussianDpEvent(4.0), 100), 4).sensitivities
(0.0, 1.0, 2.0, 3.0, 4.0)
>>> batch = FixedSize(100).event(events.GaussianDpEvent(4.0), 10_000)
>>> for_group(batch, 4, "add-or-remove-one").sensitivities
(0.0, 2.0, 4.0, 6.0, 8.0)

Where examples have several owners, a choice of them has at most k of each:

>>> choose_examples([["ann"], ["ann", "bob"], ["bob"], ["bob"]], rows=1, ids=["a", "b", "c", "d"])
(0, 3)
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.mechanisms.row import row_of
from dpcal.errors import UnsupportedEvent


def unit_of(group_size: int) -> str:
    """Return the unit of a claim, in words.

    >>> unit_of(4)
    'one person, who has at most 4 training records (rows of the table)'
    """
    if group_size == 1:
        return "one training record (one row of the table)"
    return f"one person, who has at most {group_size} training records (rows of the table)"


def for_group(
    event: events.DpEvent, group_size: int, neighboring_relation: str | None = None
) -> events.DpEvent:
    """Return an event that bounds the loss of k records together, from one that bounds each.

    Noise scales are divided by k: neighbors that differ in k records are k steps apart. Poisson
    samples have the law of :func:`rows_of_one_person`, and batches of a fixed size, under
    add-or-remove-one, the law of :func:`in_batches`; ranges of bounded-range mechanisms add up
    along the steps; and (epsilon, delta) becomes (k epsilon, delta (1 + e^epsilon + ... + e^((k -
    1) epsilon))) (Dwork and Roth 2014, Theorem 2.2 and its proof). A delta without an epsilon is
    the failure probability of noise in the same event, such as a threshold's: for several records
    one after another the noise multiplies it, so it is refused.

    Parameters
    ----------
    event
        Event of one record.
    group_size
        Number of records k >= 1.
    neighboring_relation
        The neighboring relation, if it is known; None for any.

    Raises
    ------
    UnsupportedEvent
        If no theorem here covers a part of the event.

    >>> for_group(events.SelfComposedDpEvent(events.LaplaceDpEvent(6.0), 3), 2)
    SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=2.9999999999999996), count=3)
    """
    k = validate.count(group_size=group_size)
    if k == 1:
        return event
    if isinstance(event, events.ComposedDpEvent):
        parts = [for_group(each, k, neighboring_relation) for each in event.events]
        return events.ComposedDpEvent(parts)
    if isinstance(event, events.SelfComposedDpEvent):
        one = for_group(event.event, k, neighboring_relation)
        return events.SelfComposedDpEvent(one, event.count)
    row = row_of(event)
    found = (row and row.group(event, k)) or _of_samples(event, k, neighboring_relation)
    if found is not None:
        return found
    under = "" if neighboring_relation is None else f" under {neighboring_relation!r}"
    raise UnsupportedEvent(
        f"No theorem here prices {event!r} for a person with {k} records{under}: the unit of this "
        "run is one record. Rows that are drawn by coins have a price, and so have persons who are "
        "drawn as records, the sum of their rows clipped (clipped='user')."
    )


def _of_samples(
    event: events.DpEvent, k: int, neighboring_relation: str | None
) -> events.DpEvent | None:
    """Return the event for k records of a Gaussian answer about a sample; None without one."""
    inner = getattr(event, "event", None)
    if not isinstance(inner, events.GaussianDpEvent):
        return None
    noise = {"noise_multiplier": inner.noise_multiplier, "group_size": k}
    if isinstance(event, events.PoissonSampledDpEvent):
        return rows_of_one_person(**noise, sampling_probability=event.sampling_probability)
    batches = isinstance(event, events.SampledWithoutReplacementDpEvent)
    if not batches or neighboring_relation != "add-or-remove-one":
        return None
    return in_batches(**noise, n=event.source_dataset_size, batch_size=event.sample_size)


def rows_of_one_person(
    *, noise_multiplier: float, group_size: int, sampling_probability: float = 1.0
) -> events.DpEvent:
    """Return the event of one noisy sum, for a person with up to so many rows.

    Each row is clipped to norm 1 and sampled on its own, so that j of k rows are sampled with
    binomial probability, and then move the sum by up to j. A mixture of Gaussians with these
    sensitivities dominates the answer (Ganesh 2024, arXiv:2401.10294, Tight group-level DP
    guarantees for DP-SGD with sampling via mixture of Gaussians mechanisms, the theorem on Poisson
    sampling). Fewer rows cost no more than k.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, in units of the bound on one row.
    group_size
        Largest number of rows of a person, k >= 1.
    sampling_probability
        Sampling probability of each row, in (0, 1].
    """
    sigma = validate.positive(noise_multiplier=noise_multiplier)
    k = validate.count(group_size=group_size)
    q = validate.within(0.0, 1.0, sampling_probability=sampling_probability)
    if q == 1:
        return events.GaussianDpEvent(sigma if k == 1 else math.nextafter(sigma / k, 0.0))
    if k == 1:
        return events.PoissonSampledDpEvent(q, events.GaussianDpEvent(sigma))
    sensitivities = tuple(float(j) for j in range(k + 1))
    return events.MixtureOfGaussiansDpEvent(sigma, sensitivities, _binomial(k, q))


def in_batches(
    *, noise_multiplier: float, group_size: int, n: int, batch_size: int
) -> events.ExchangedRowsDpEvent:
    """Return the event of a sum over b of n rows, for a person with k rows, added or removed.

    A batch is one of the others' rows in which j random rows are exchanged for rows of the person,
    j hypergeometric: given that batch, the sum moves by at most 2 j. A larger j costs more, so that
    its probabilities may be rounded towards more rows. Whether a blanked row is drawn would decide
    which other rows are: the mixture does not dominate where rows are blanked, and nothing is known
    here where they are replaced.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, in units of the bound on one row.
    group_size
        Largest number of rows of a person, in [1, n - batch_size].
    n
        Number of rows with the person's.
    batch_size
        Number b of rows in a batch, in [1, n).

    >>> in_batches(noise_multiplier=4.0, group_size=2, n=4, batch_size=2).sensitivities
    (0.0, 2.0, 4.0)
    """
    sigma = validate.positive(noise_multiplier=noise_multiplier)
    k, size = validate.count(group_size=group_size), validate.count(batch_size=batch_size)
    if k > validate.count(n=n) - size:
        raise ValueError(
            f"group_size must be at most n - batch_size = {n - size}: rows of others must "
            f"fill a batch; got {k}."
        )
    shares = _hypergeometric(n, k, size)
    moved = tuple(2.0 * j for j in range(len(shares)))
    return events.ExchangedRowsDpEvent(sigma, moved, shares)  # type: ignore[call-arg]


def _binomial(k: int, q: float) -> tuple[float, ...]:
    """Return binomial probabilities that add up to one, rounded towards more sampled rows."""
    above = [math.comb(k, j) * q**j * (1 - q) ** (k - j) * (1 + 1e-14) for j in range(1, k + 1)]
    return (max(0.0, 1 - math.fsum(above)), *above)


def _hypergeometric(n: int, k: int, b: int) -> tuple[float, ...]:
    """Return probabilities of j = 0, 1, ... of k rows in b of n, rounded towards more rows."""
    ways, shares, left = math.perm(n, k), [], Fraction(1)
    for j in range(min(k, b), 0, -1):
        exact = Fraction(math.comb(k, j) * math.perm(b, j) * math.perm(n - b, k - j), ways)
        share = float(exact)
        share = share if Fraction(share) >= exact else math.nextafter(share, 2.0)
        shares.append(min(share, float(left)))
        left -= Fraction(shares[-1])
    return (max(0.0, float(left)), *reversed(shares))


def choose_examples(
    owners: Iterable[Iterable[Hashable]], rows: int, ids: Sequence[int | str]
) -> tuple[int, ...]:
    """Return the positions of examples, in order; each owner has at most ``rows`` of them.

    Examples are taken by ascending number of owners, ties by the SHA-256 of their ids, where all
    their owners still have fewer than ``rows``. The choice is at most a + 1 times smaller than the
    largest one, with a the most owners of an example: an example that is left out has an owner with
    ``rows`` chosen ones, the largest choice has at most ``rows`` of each owner, and a chosen one is
    counted by at most a owners.

    The owner of each example must be public and fixed, and so must the ids: only contents are
    protected. Removing a user then blanks at most ``rows`` chosen examples: ``group_size=rows``
    under "replace-special".

    Parameters
    ----------
    owners
        The owners of each example, at least one; an owner named twice counts once.
    rows
        Most chosen examples of an owner, k >= 1.
    ids
        A distinct public id of each example, a string or a whole number.

    Raises
    ------
    ValueError
        If an example has no owner, or ids are not distinct or not as many as examples.
    """
    most = validate.count(rows=rows)
    sets = [frozenset([each] if isinstance(each, str) else each) for each in owners]
    if len(ids) != len(sets):
        raise ValueError(f"ids must be as many as examples, {len(sets)}, got {len(ids)}.")
    names = [str(each) for each in ids]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"ids must be distinct, got {repeated[0]!r} more than once.")
    if frozenset() in sets:
        bare = sets.index(frozenset())
        raise ValueError(f"owners must name an owner of each example, got none at {bare}.")
    ranks = [hashlib.sha256(name.encode()).digest() for name in names]
    taken: Counter[Hashable] = Counter()
    chosen = []
    for i in sorted(range(len(sets)), key=lambda i: (len(sets[i]), ranks[i])):
        if all(taken[owner] < most for owner in sets[i]):
            taken.update(sets[i])
            chosen.append(i)
    return tuple(sorted(chosen))
