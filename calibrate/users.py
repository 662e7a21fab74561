"""What does one noisy sum reveal about a user who has several rows? An event for each sampler.

>>> from dpcal.accountants.samplers import FixedSize, Poisson
>>> User(rows=4).event(Poisson(0.5), 4.0).sensitivities
(0.0, 1.0, 2.0, 3.0, 4.0)
>>> User(rows=4).event(FixedSize(100), 4.0, 10_000).sensitivities
(0.0, 2.0, 4.0, 6.0, 8.0)
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.samplers import FixedSize, Full, Poisson, Sampler
from dpcal.calibrate.groups import in_batches, rows_of_one_person
from dpcal.errors import UnsupportedEvent

__all__ = ["User"]

_REASONS = {
    "replace-one": "no pair is known here for replacing all rows of a user",
    "replace-special": "whether a blanked row is drawn decides which other rows are, so that the "
    "mixture of Gaussians does not dominate",
}


@dataclass(frozen=True)
class User:
    """The unit of privacy: all rows of one user.

    Attributes
    ----------
    rows
        Largest number k >= 1 of rows of a user, public. Code must enforce it for every user before
        rows are drawn, by a rule that reads only that user's rows.
    clipped
        "row": rows are drawn, and each is clipped. "user": users are drawn, and the sum of a
        user's rows is clipped, so that users are the records and k does not matter.

    >>> User(rows=4, clipped="user").event(Poisson(0.01), 2.0).sampling_probability
    0.01
    """

    rows: int
    clipped: str = "row"

    def __post_init__(self) -> None:
        _validate.count(rows=self.rows)
        _validate.choice(("row", "user"), clipped=self.clipped)

    def event(
        self,
        sampler: Sampler,
        noise_multiplier: float,
        n: int | None = None,
        *,
        neighboring_relation: str = "add-or-remove-one",
    ) -> events.DpEvent:
        """Return the event of one noisy sum over a fresh batch, to be priced under this relation.

        Of rows drawn by coins, j of k are in the batch with binomial probability and move the sum
        by j (Ganesh 2024, arXiv:2401.10294). A batch of exactly b of N rows is a batch of the
        other users' rows in which j random rows are exchanged for rows of the user, j
        hypergeometric: given that batch, the sum moves by at most 2 j. The divisor of an average
        must be public.

        Parameters
        ----------
        sampler
            Of rows, or of users where these are clipped.
        noise_multiplier
            Standard deviation > 0 of the noise, over the bound on a row, or on a user.
        n
            Number of rows (of users where these are clipped) with the user; needed for batches of
            a fixed size.
        neighboring_relation
            The user's rows are added or removed ("add-or-remove-one"), blanked
            ("replace-special"), or exchanged ("replace-one").

        Raises
        ------
        UnsupportedEvent
            If no theorem here covers the sampler and the relation.
        """
        relation = _validate.choice(
            ("add-or-remove-one", *_REASONS),
            neighboring_relation=_validate.relation(neighboring_relation),
        )
        _validate.instance(Sampler, sampler=sampler)
        sigma = _validate.positive(noise_multiplier=noise_multiplier)
        size = None if n is None else _validate.count(n=n)
        if isinstance(sampler, FixedSize):
            size = _known_size(sampler, size)
        if self.clipped == "user":
            return sampler.event(events.GaussianDpEvent(sigma), size or 1)
        if relation == "replace-one" and self.rows > 1 and not isinstance(sampler, Full):
            raise self._refused(sampler, relation, _REASONS[relation])
        if isinstance(sampler, Full | Poisson):
            q = getattr(sampler, "sampling_probability", 1.0)
            return rows_of_one_person(
                noise_multiplier=sigma, group_size=self.rows, sampling_probability=q
            )
        if not isinstance(sampler, FixedSize) or size is None:
            reason = "rows of a user join several batches, and their joint price is open"
            raise self._refused(sampler, relation, reason)
        if self.rows == 1:
            return sampler.event(events.GaussianDpEvent(sigma), size)
        if relation in _REASONS:
            raise self._refused(sampler, relation, _REASONS[relation])
        return in_batches(
            noise_multiplier=sigma, group_size=self.rows, n=size, batch_size=sampler.batch_size
        )

    def _refused(self, sampler: Sampler, relation: str, reason: str) -> UnsupportedEvent:
        return UnsupportedEvent(
            f"A user with {self.rows} rows has no price with sampler {sampler.name!r} under "
            f"{relation!r}: {reason}. Draw users and clip their sums, or draw rows by coins and "
            "add or remove the user."
        )


def _known_size(sampler: FixedSize, n: int | None) -> int:
    """Return the number of records that batches of a fixed size are drawn from."""
    size = sampler.n if n is None else n
    if size is None:
        raise ValueError("n must be given for batches of a fixed size, got None.")
    if sampler.n not in (None, size):
        raise ValueError(f"n must be that of the sampler, {sampler.n}, got {size}.")
    if sampler.batch_size > size:
        raise ValueError(f"n must be at least batch_size={sampler.batch_size}, got {size}.")
    return size
