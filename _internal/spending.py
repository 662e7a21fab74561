"""Objects that spend, which have no copy: a copy would have the rest once more.

>>> import copy
>>> copy.deepcopy(Spender())
Traceback (most recent call last):
    ...
TypeError: a Spender must not be copied or pickled, because its copy could spend the same budget \
once more: share the object itself, also between threads.

A ledger or an account is a record of the past, and may be copied.
"""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Spender:
    """An object that spends a plan or a budget. It cannot be copied or pickled."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse, by a TypeError, to be copied or pickled."""
        raise TypeError(
            f"a {type(self).__name__} must not be copied or pickled, because its copy could spend "
            "the same budget once more: share the object itself, also between threads."
        )
