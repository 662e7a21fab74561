"""Runs of correlated noise beside other events and under each accountant, and the page's table.

``PYTHONPATH=tests:tests/accountants/correlated python -m test_composing`` writes the table.
"""

import pytest
from _tree import ROOT

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.correlated.pricing import equivalent
from dpcal.errors import BackendRefused, UnsupportedEvent

PAGE = ROOT / "docs" / "how_to" / "correlated_noise.md"
T, DELTA = 200, 1e-5
NAMES = ("auto", "characteristic", "renyi", "pld", "prv")
HISTOGRAM = events.GaussianDpEvent(4.0)


def run(strategy, sampler, sigma):
    """Return a run that draws price nowhere."""
    return events.CorrelatedGaussianDpEvent(strategy, sampler, sigma, statistics="none", seed=0)


DECAYS, BANDS = matrix.LambdaCGD(T, 0.5), matrix.Banded(T, 4)
RUNS = {
    "Gaussian on Poisson samples": events.dpsgd(
        sampling_probability=0.02, noise_multiplier=1.0, steps=T
    ),
    "4 bands, 4 known epochs of 50": BANDS.event(4.0, matrix.FixedEpochs(4, 50)),
    "identity, Poisson": run(matrix.Identity(T), correlated.Poisson(0.02), 1.0),
    "4 bands, cyclic Poisson, 4 groups": run(BANDS, correlated.CyclicPoisson(4, 0.08), 2.0),
    "identity, one random round of 50": run(
        matrix.Identity(T), correlated.RandomAllocation(1, epoch=50), 1.0
    ),
    "decay 0.5, Poisson": run(DECAYS, correlated.Poisson(0.02), 1.5),
    "4 bands, Poisson": run(BANDS, correlated.Poisson(0.02), 3.0),
    "4 bands, cyclic Poisson, 2 groups": run(BANDS, correlated.CyclicPoisson(2, 0.04), 3.0),
    "4 bands, min-separation 4": run(BANDS, correlated.MinSeparation(4, 0.02), 2.0),
    "decay 0.5, one random round of 50": run(DECAYS, correlated.RandomAllocation(1, epoch=50), 2.0),
    "decay 0.5, 50 bins": run(DECAYS, correlated.BallsInBins(50), 2.0),
    "square root, Poisson": run(matrix.SquareRoot(T), correlated.Poisson(0.02), 10.0),
}


def asked(event, name):
    """Return epsilon by one accountant, or None where it refuses."""
    options = {"pld": {"interval": 1e-3}}.get(name, {})
    try:
        return accountants.epsilon(event, delta=DELTA, accountant=name, **options)
    except (UnsupportedEvent, BackendRefused):
        return None


def rows():
    """Yield the answers of each run by name of its accountant."""
    for name, event in RUNS.items():
        yield name, {each: asked(event, each) for each in NAMES}


def table(found):
    """Return the table of the page."""
    lines = [("run", *NAMES), ("---",) * (1 + len(NAMES))]
    for name, answers in found.items():
        cells = ["refused" if each is None else f"{each:.4g}" for each in answers.values()]
        lines.append((name, *cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@pytest.mark.slow
def test_every_accountant_prices_what_a_run_is_or_costs_no_more_than():
    found = dict(rows())
    assert f"\n\n{table(found)}\n\n" in PAGE.read_text(encoding="utf-8")
    for name, answers in found.items():
        known = [answer for answer in answers.values() if answer is not None]
        assert all(one.lower <= other.upper for one in known for other in known), name
        event = RUNS[name]
        if isinstance(event, events.CorrelatedGaussianDpEvent):
            whole = equivalent(event)
            assert answers["renyi"] >= answers["auto"] * (1 - 1e-6)
            for each in NAMES[1:] if whole is not None else ():
                assert answers[each] == asked(whole, each), name
            if whole is None:
                # Rare patterns, which auto sets aside, count in a divergence.
                assert answers["renyi"] < 2.7 * answers["auto"], name


@pytest.mark.parametrize("name", [name for name, event in RUNS.items() if "random" not in name])
def test_a_run_beside_a_histogram_costs_its_composition(name):
    event = RUNS[name]
    both = events.ComposedDpEvent([event, HISTOGRAM])
    found = asked(both, "auto")
    alone = [accountants.epsilon(each, delta=DELTA / 2) for each in (event, HISTOGRAM)]
    assert asked(HISTOGRAM, "auto").lower < found <= sum(alone) * (1 + 1e-9)
    account = accountants.Account().compose(HISTOGRAM).compose(event)
    assert account.epsilon(DELTA) == pytest.approx(found, rel=1e-12)
    if isinstance(event, events.CorrelatedGaussianDpEvent) and equivalent(event) is not None:
        whole = events.ComposedDpEvent([equivalent(event), HISTOGRAM])
        assert (found, found.lower) == (answer := asked(whole, "auto"), answer.lower)
        assert found < 0.95 * sum(alone)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("| run | auto")
    end = text.index("\n\n", start)
    PAGE.write_text(text[:start] + table(dict(rows())) + text[end:], encoding="utf-8")
