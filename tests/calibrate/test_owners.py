"""The greedy choice of examples, against every choice on small graphs."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from dpcal.calibrate import choose_examples


def keeps(owners, chosen, rows):
    return max(Counter(o for i in chosen for o in set(owners[i])).values(), default=0) <= rows


@pytest.mark.parametrize("seed", range(60))
def test_small_graphs(seed):
    rng = np.random.default_rng(seed)
    count, people, rows = rng.integers(1, 9), rng.integers(1, 6), int(rng.integers(1, 4))
    owners = [
        [int(o) for o in rng.choice(people, rng.integers(1, people + 1), replace=False)]
        for _ in range(count)
    ]
    chosen = choose_examples(owners, rows, range(count))
    best = max(
        size
        for size in range(count + 1)
        if any(keeps(owners, some, rows) for some in combinations(range(count), size))
    )
    assert keeps(owners, chosen, rows)
    assert len(chosen) * (1 + max(map(len, owners))) >= best
    # Nothing that is left out could be added.
    assert not any(keeps(owners, (*chosen, i), rows) for i in set(range(count)) - set(chosen))


def test_the_order_of_examples_and_owners_does_not_matter_and_an_owner_named_twice_counts_once():
    owners, ids = [["a", "b"], ["b", "c"], ["c"], ["c", "a"], ["c"]], list("vwxyz")
    chosen = {ids[i] for i in choose_examples(owners, 2, ids)}
    turned = choose_examples([each[::-1] for each in owners[::-1]], 2, ids[::-1])
    assert {ids[::-1][i] for i in turned} == chosen
    assert choose_examples([["a", "a"], "ab"], 1, [0, 1]) == (0, 1)
