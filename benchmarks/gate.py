"""Widths of the answers to 1,535 usual questions, of 28 families.

    python -m benchmarks gate --file NEW.csv [--families pg,fixed] [--seed 20261128] [--seconds 60]
    python -m benchmarks gate --file NEW.csv --against OLD.csv
    python -m benchmarks sweep [--share 0.1]

Events are drawn as users have them: sampling probabilities from 1e-5 to 1, noise multipliers from
0.3 to 50, up to a million steps; delta from 1e-15 to 1e-2, epsilon from 0.01 to 50. Candidates with
an answer outside of these ranges are left out. Each answer is a line of the file, so that you can
stop a run and continue it. The table counts widths (relative widths of epsilon, absolute widths of
log delta), and sums seconds of processor time.

The families of :mod:`benchmarks.sweep`, ``everywhere`` and ``little_noise``, go to the ends of the
ranges of parameters. Each of their answers is checked by independent bounds as well, and the exit
status is 1 if one is wrong.

With ``--against`` you compare the answers of two versions to the same questions. Intervals that do
not meet contradict each other; the comparison names each end that became wider.
"""

import argparse
import csv
import itertools
import math
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import sweep
from benchmarks.limits import TooSlow, at_most
from dpcal.accountants import epsilon as epsilon_of, events, log_delta
from dpcal.accountants.mechanisms.own import from_pld, from_pmf, from_profile

ADD, REPLACE, SPECIAL = "add-or-remove-one", "replace-one", "replace-special"
# Seconds after which a question is given up, and a question of the sweep.
_ALARM, _SWEEP_ALARM = 30.0, 10.0
# One answer of the sweep in this many is checked in ball arithmetic, where that takes little.
_BALLS = 10
_WIDTHS = (1e-6, 1e-4, 1e-2)


class Draw:
    """Random numbers of one question."""

    def __init__(self, *seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def log(self, low: float, high: float) -> float:
        """Return a number with a uniform logarithm."""
        return float(10 ** self.generator.uniform(math.log10(low), math.log10(high)))

    def count(self, low: float, high: float) -> int:
        """Return a whole number with a uniform logarithm."""
        return round(self.log(low, high))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return a number of an interval."""
        return float(self.generator.uniform(low, high))

    def integer(self, low: int, high: int) -> int:
        """Return a whole number >= low and < high."""
        return int(self.generator.integers(low, high))

    def choice(self, of, weights=None):
        """Return one of several values."""
        return of[int(self.generator.choice(len(of), p=weights))]


def times(event, count):
    """Return an event composed with itself."""
    return event if count == 1 else events.SelfComposedDpEvent(event, int(count))


def poisson(q, event):
    """Return an event on Poisson samples."""
    return events.PoissonSampledDpEvent(q, event)


def _sampled_gaussian(draw):
    q, sigma, steps = draw.log(1e-5, 1), draw.log(0.3, 50), draw.count(1, 1e6)
    relation = draw.choice([ADD, REPLACE, SPECIAL], [0.8, 0.12, 0.08])
    return times(poisson(q, events.GaussianDpEvent(sigma)), steps), relation


def _gaussians(draw):
    parts = [
        times(events.GaussianDpEvent(draw.log(0.3, 50)), draw.count(1, 1e4))
        for _ in range(draw.integer(1, 6))
    ]
    if draw.uniform() < 0.4:
        parts = [events.GaussianDpEvent(draw.log(0.3, 50))]
    event = parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)
    return event, draw.choice([ADD, REPLACE])


def _noise(draw, name):
    """Return one use of another mechanism."""
    if name == "laplace":
        return events.LaplaceDpEvent(draw.log(0.3, 100))
    if name == "dlaplace":
        return events.DiscreteLaplaceDpEvent(draw.log(0.01, 3), draw.integer(1, 6))
    if name == "dgauss":
        return events.DiscreteGaussianDpEvent(draw.log(0.5, 100), draw.integer(1, 4))
    if name == "rr":
        return events.RandomizedResponseDpEvent(
            draw.uniform(0.05, 0.98), draw.choice([2, 2, 3, 5, 10, 20])
        )
    return events.ExponentialMechanismDpEvent(draw.log(0.01, 5))


def _uses(name, how):
    """Return a family of another mechanism: by itself, composed, or on samples."""

    def family(draw):
        event = _noise(draw, name)
        relation = REPLACE if name == "rr" else draw.choice([ADD, REPLACE], [0.7, 0.3])
        if how == "composed":
            event = times(event, draw.count(2, 1e4 if name == "exp" else 1e5))
        elif how == "sampled":
            steps = draw.count(1, 1e3 if name == "exp" else 1e4)
            event = times(poisson(draw.log(1e-4, 1), event), steps)
        return event, relation

    return family


def _batch(draw, low):
    """Return a number of records and the size of a batch of a share >= ``low`` of them."""
    n = draw.count(1e3, 1e6)
    return n, max(1, min(n - 1, int(n * draw.log(low, 0.5))))


def _fixed_batches(draw):
    n, batch = _batch(draw, 1e-4)
    sigma, steps = draw.log(0.3, 50), draw.count(1, 1e6)
    event = events.SampledWithoutReplacementDpEvent(n, batch, events.GaussianDpEvent(sigma))
    return times(event, steps), draw.choice([REPLACE, ADD], [0.85, 0.15])


def _fixed_batches_of_others(draw):
    n, batch = _batch(draw, 1e-3)
    event = _noise(draw, draw.choice(["laplace", "rr", "dgauss", "dlaplace"]))
    event = events.SampledWithoutReplacementDpEvent(n, batch, event)
    return times(event, draw.count(1, 1e3)), REPLACE


def _allocations(draw):
    sigma, batches, epochs = draw.log(0.4, 10), draw.count(1, 1e4), draw.count(1, 100)
    return times(events.RandomAllocationDpEvent(sigma, batches), epochs), ADD


def _distinct_steps(draw):
    k = draw.count(2, 200)
    q, sigma, steps = draw.log(1e-4, 0.3), draw.log(0.5, 20), draw.count(1, 1e6 / k)
    scheduled = draw.choice([True, False])
    parts = []
    for i in range(k):
        if scheduled:
            step, count = poisson(q, events.GaussianDpEvent(sigma * (1 + (i + 1) / k))), steps
        else:
            rate = min(1.0, q * draw.log(0.3, 3))
            step = poisson(rate, events.GaussianDpEvent(sigma * draw.log(0.5, 2)))
            count = max(1, int(steps * draw.log(0.3, 3)))
        parts.append(times(step, count))
    return events.ComposedDpEvent(parts), draw.choice([ADD, REPLACE], [0.9, 0.1])


def _several_families(draw):
    parts = []
    for _ in range(draw.integer(2, 6)):
        name = draw.choice(["g", "pg", "laplace", "dlaplace", "dgauss", "exp", "ed"])
        if name == "g":
            event = events.GaussianDpEvent(draw.log(1, 50))
        elif name == "pg":
            step = poisson(draw.log(1e-4, 0.1), events.GaussianDpEvent(draw.log(0.5, 5)))
            event = times(step, draw.count(10, 1e4))
        elif name == "ed":
            event = events.EpsilonDeltaDpEvent(draw.log(0.01, 1), draw.choice([0, 1e-9]))
        else:
            event = _noise(draw, name)
        parts.append(times(event, draw.count(1, 30)))
    return events.ComposedDpEvent(parts), ADD


def _tables(draw):
    from dp_accounting.pld import privacy_loss_distribution as plds

    kind, chance = draw.choice(["pmf", "pmf", "profile", "pld"]), draw.generator
    if kind == "pmf":
        k = draw.integer(2, 40)
        p = chance.dirichlet(np.ones(k))
        q = p * np.exp(chance.normal(0, draw.log(0.05, 1.5), k))
        event = from_pmf(p, q / q.sum())
    elif kind == "profile":
        epsilons = np.sort(chance.uniform(0, 3, 5))
        event = from_profile(epsilons, np.sort(10 ** chance.uniform(-8, -1, 5))[::-1])
    elif draw.uniform() < 0.5:
        pld = plds.from_laplace_mechanism(draw.log(0.5, 20), value_discretization_interval=1e-3)
        event = from_pld(pld)
    else:
        pld = plds.from_gaussian_mechanism(draw.log(0.5, 20), value_discretization_interval=1e-3)
        event = from_pld(pld)
    count = draw.choice([1, draw.count(2, 1000)])
    q = draw.choice([1, draw.log(1e-3, 1)])
    return times(event if q == 1 else poisson(q, event), count), ADD


def _claims(draw):
    parts = []
    for _ in range(draw.integer(1, 4)):
        claim = events.EpsilonDeltaDpEvent(draw.log(0.01, 2), draw.choice([0, 0, 1e-8]))
        parts.append(times(claim, draw.count(1, 300)))
    return events.ComposedDpEvent(parts), ADD


def _with_replacement(draw):
    n = draw.count(1e3, 1e6)
    batch = max(1, int(n * draw.log(1e-4, 0.1)))
    event = events.SampledWithReplacementDpEvent(
        n, batch, events.GaussianDpEvent(draw.log(0.5, 20))
    )
    return times(event, draw.count(1, 1e4)), draw.choice([ADD, REPLACE])


def _truncated_batches(draw):
    n, q = draw.count(1e3, 1e6), draw.log(1e-3, 0.3)
    batch = max(1, int(n * q * draw.uniform(0.9, 1.3)))
    event = events.TruncatedSubsampledGaussianDpEvent(n, q, batch, draw.log(0.5, 20))
    return times(event, draw.count(1, 1e5)), draw.choice([ADD, REPLACE])


def _gaussian_mixtures(draw):
    k = draw.integer(2, 9)
    shares = [float(share) for share in draw.generator.dirichlet(np.ones(k))]
    event = events.MixtureOfGaussiansDpEvent(draw.log(1, 20), [float(i) for i in range(k)], shares)
    return times(event, draw.count(1, 1e4)), ADD


def _seldom_asked(draw):
    kind, count = draw.integer(0, 8), draw.count(1, 50)
    if kind == 0:
        event = events.AboveThresholdDpEvent(draw.log(2, 50), draw.log(2, 50))
    elif kind == 1:
        event = events.ReportNoisyMaxDpEvent(draw.log(2, 50))
    elif kind == 2:
        event = events.PermuteAndFlipDpEvent(draw.log(0.05, 1))
    elif kind == 3:
        event = events.ZCDpEvent(draw.log(1e-4, 0.1))
    elif kind == 4:
        event = events.RepeatAndSelectDpEvent(
            events.GaussianDpEvent(draw.log(2, 20)), draw.log(2, 50), 1.0
        )
    elif kind == 5:
        event = events.LastIterateDpEvent(draw.log(2, 20), 100, draw.choice([0.9, 0.99, 1]))
    elif kind == 6:
        event = events.ExponentialMechanismDpEvent(draw.log(0.05, 1), monotone=True)
    else:
        event = events.DiscreteLaplaceDpEvent(draw.log(0.1, 1), 1)
        event = events.AllocatedDpEvent(event, draw.count(2, 50))
    return times(event, count), ADD


FAMILIES = {
    "pg": (_sampled_gaussian, 480),
    "gauss": (_gaussians, 60),
    "fixed": (_fixed_batches, 100),
    "fixed_other": (_fixed_batches_of_others, 25),
    "alloc": (_allocations, 50),
    "distinct": (_distinct_steps, 100),
    "families": (_several_families, 60),
    "tables": (_tables, 60),
    "claims": (_claims, 30),
    "with_replacement": (_with_replacement, 15),
    "truncated": (_truncated_batches, 20),
    "mog": (_gaussian_mixtures, 25),
    "rare": (_seldom_asked, 30),
}
for _name, _counts in {
    "laplace": (15, 50, 40),
    "dlaplace": (15, 50, 40),
    "dgauss": (15, 50, 40),
    "rr": (15, 40, 30),
    "exp": (15, 45, 20),
}.items():
    for _how, _count in zip(("alone", "composed", "sampled"), _counts, strict=True):
        FAMILIES[f"{_name}_{_how}"] = (_uses(_name, _how), _count)


POINTS = {"everywhere": (sweep.draw, 10_000), "little_noise": (sweep.draw_with_little_noise, 2_000)}


def question(family, index, seed):
    """Return an event, its relation, the name of the result, and the given delta or epsilon."""
    draw = Draw(seed, sum(map(ord, family)) * 7919 + len(family), index)
    event, relation = FAMILIES[family][0](draw)
    if draw.uniform() < 0.7:
        return event, relation, "epsilon", draw.log(1e-15, 1e-2)
    return event, relation, "delta", draw.log(0.01, 50)


@dataclass(frozen=True)
class Answer:
    """An interval for epsilon or log delta; NaN for no answer."""

    family: str
    index: int
    asked: str
    lower: float
    upper: float
    method: str
    seconds: float
    wrong: str = ""

    @classmethod
    def of_row(cls, row):
        """Return the answer that a line of a file holds."""
        kinds = cls.__annotations__
        return cls(**{name: kinds[name](value) for name, value in row.items()})

    @property
    def is_usual(self):
        """Whether the answer is in the usual range."""
        if math.isnan(self.upper) or self.family in POINTS:
            return True
        if self.asked == "epsilon":
            return 0.01 <= self.upper <= 50
        return -15 <= self.upper / math.log(10) <= -2

    @property
    def width(self):
        """Relative width of epsilon, or width of log delta; infinite without a lower end."""
        if math.isnan(self.upper):
            return math.inf
        if self.asked == "delta":
            return math.inf if self.lower == -math.inf else self.upper - self.lower
        if self.lower == 0 < self.upper:
            return math.inf
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def contradicts(self, other):
        """Return whether two intervals do not meet, up to the rounding of their text."""

        def above(low, high):
            return high < low - 1e-13 * abs(low)

        return above(self.lower, other.upper) or above(other.lower, self.upper)


def ask(family, index, seed):
    """Return the answer to a question."""
    if family in POINTS:
        return ask_point(family, index, seed)
    event, relation, asked, given = question(family, index, seed)

    def answer():
        if asked == "epsilon":
            return epsilon_of(event, delta=given, neighboring_relation=relation)
        return log_delta(event, epsilon=given, neighboring_relation=relation)

    return timed(answer, _ALARM, family, index, asked)


def ask_point(family, index, seed):
    """Return the answer to a question of the sweep, with all its faults."""
    point = POINTS[family][0](seed, index)
    asked = "epsilon" if point.epsilon is None else "delta"
    found = timed(lambda: sweep.ask(point), _SWEEP_ALARM, family, index, asked)
    wrong = [found.method]
    if not math.isnan(found.upper):
        wrong, _ = sweep.problems(point, found, balls=index % _BALLS == 0)
    return replace(found, wrong="; ".join(wrong))


def timed(answer, seconds, family, index, asked):
    """Return the interval of an answer and its seconds; NaN and the error where there is none."""
    began = time.process_time()
    try:
        with at_most(seconds):
            found = answer()
        lower, upper, method = found.lower, found.upper, found.method
    except (Exception, TooSlow) as error:
        lower = upper = math.nan
        method = f"{type(error).__name__}: {error}"[:120]
    return Answer(family, index, asked, lower, upper, method, time.process_time() - began)


def read(path):
    """Return the answers of a file by family and index."""
    if not path.exists():
        return {}
    with path.open() as file:
        answers = map(Answer.of_row, csv.DictReader(file))
        return {(answer.family, answer.index): answer for answer in answers}


def run(path, families, seed, seconds, share):
    """Compute until each family has its number of usual answers; return whether all are done."""
    known, end = read(path), time.monotonic() + seconds
    names = list(Answer.__annotations__)
    with path.open("a") as file:
        writer = csv.DictWriter(file, names)
        if not known:
            writer.writeheader()
        for family in families:
            wanted = math.ceil((FAMILIES | POINTS)[family][1] * share)
            usual = index = 0
            while usual < wanted and index < 12 * wanted:
                if (family, index) not in known:
                    if time.monotonic() > end:
                        return False
                    known[family, index] = ask(family, index, seed)
                    writer.writerow(vars(known[family, index]))
                    file.flush()
                usual += known[family, index].is_usual
                index += 1
    return True


def _counts(answers):
    widths = np.array([answer.width for answer in answers])
    edges = [-math.inf, *_WIDTHS, math.inf]
    counts = [
        int(((low <= widths) & (widths < high)).sum()) for low, high in itertools.pairwise(edges)
    ]
    return [*counts, int((widths == math.inf).sum())]


def table(answers):
    """Print widths and seconds by family."""
    of = defaultdict(list)
    for answer in answers:
        if answer.is_usual:
            of[answer.family].append(answer)
            of["all"].append(answer)
    heads = [*(f"<{width:g}" for width in _WIDTHS), "wider", "one-sided"]
    print(
        f"{'family':18}{'n':>6}" + "".join(f"{head:>10}" for head in heads) + "   seconds  longest"
    )
    for family in sorted(of, key=lambda name: (name == "all", name)):
        some, seconds = of[family], [answer.seconds for answer in of[family]]
        row = "".join(f"{count:10}" for count in _counts(some))
        print(f"{family:18}{len(some):6}{row}{sum(seconds):10.1f}{max(seconds):9.2f}")


def compare(new, old):
    """Print contradictions and wider ends; return whether there is no contradiction."""
    both = [(new[key], old[key]) for key in new if key in old and old[key].is_usual]
    apart = [pair for pair in both if pair[0].contradicts(pair[1])]
    wider = [
        (one, other) for one, other in both if one.width > max(2 * other.width, other.width + 1e-6)
    ]
    for words, pairs in (("APART", apart), ("wider", wider)):
        for one, other in pairs:
            change = f"{other.method} {other.width:.1e} -> {one.method} {one.width:.1e}"
            ends = f"[{other.lower}, {other.upper}] -> [{one.lower}, {one.upper}]"
            print(f"{words} {one.family} {one.index} {one.asked}: {change} {ends}")
    narrower = sum(2 * one.width < other.width - 1e-6 for one, other in both)
    seconds = [sum(answer.seconds for answer in side) for side in zip(*both, strict=True)]
    print(
        f"{len(both)} questions: {len(apart)} apart, {len(wider)} wider, {narrower} narrower; "
        f"{seconds[1]:.0f} -> {seconds[0]:.0f} s"
    )
    return not apart


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks gate", description=__doc__)
    parser.add_argument("--file", type=Path, default=Path("build/gate.csv"))
    parser.add_argument("--against", type=Path, help="answers of another version")
    parser.add_argument("--families", help="names with commas between; all by default")
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--share", type=float, default=1.0, help="of each family's questions")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after these")
    given = parser.parse_args()
    families = given.families.split(",") if given.families else list(FAMILIES)
    warnings.simplefilter("ignore")
    given.file.parent.mkdir(parents=True, exist_ok=True)
    if not run(given.file, families, given.seed, given.seconds, given.share):
        print("stopped; more is asked by another run")
    answers = {key: answer for key, answer in read(given.file).items() if key[0] in families}
    table(answers.values())
    wrong = [answer for answer in answers.values() if answer.wrong]
    for answer in wrong:
        print(f"WRONG {answer.family} {answer.index}: {answer.wrong}")
    if wrong or (given.against and not compare(answers, read(given.against))):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
