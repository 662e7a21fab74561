"""The one rule of convex order: whatever a proof says, the exact delta is inside."""

import itertools
import json
import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from _certificates import claim_about, resigned
from flint import arb, ctx, fmpq

from dpcal.accountants import events, verify_certificate
from dpcal.accountants.certificates import batches as samples
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.document import Certificate
from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.mechanisms import Mechanism, mechanisms_of
from dpcal.accountants.certificates.order import Law, gather, spread
from dpcal.accountants.certificates.pairs import Pair, pair_of
from dpcal.errors import CertificateRejected


@dataclass(frozen=True)
class Finite:
    """Masses under Q and P of outcomes, which are told as points, or as cells with wide ends."""

    masses: tuple[tuple[Fraction, Fraction], ...]
    direction: str
    in_cells: bool
    upper = 1.0

    @property
    def opposite(self):
        return Finite(self.masses, "remove", self.in_cells)


def ball(value):
    return arb(fmpq(value.numerator, value.denominator))


class PairOfFinite(Pair):
    def __init__(self, loss):
        self.loss = loss

    def span(self, limits):
        return 1.0

    def outcomes(self, step, limits, above):
        cells = []
        for masses in self.loss.masses:
            q, p = map(ball, masses)
            if not all(masses):
                cells.append((q, p, None, arb(-9)) if q > 0 else (q, p, arb(9), None))
                continue
            at = (p / q).log()
            ends = (at - arb(0.25), at + arb(0.125)) if self.loss.in_cells else (at, at)
            cells.append((q, p, *ends))
        return cells, arb(0)


pair_of.register(Finite, PairOfFinite)


def some_loss(draw, direction):
    """Return a loss of random masses; some outcomes are possible under one law alone."""
    sides = [
        [draw.choice([0, 1, 2, 50, draw.randrange(1, 1000)]) for _ in range(2)]
        + [draw.randrange(1, 99)]
        for _ in range(2)
    ]
    q, p = ([Fraction(each, sum(side)) for each in side] for side in sides)
    masses = sorted(
        (pair for pair in zip(q, p, strict=True) if any(pair)),
        key=lambda pair: (pair[0] == 0, pair[1] / pair[0] if pair[0] else 0),
    )
    return Finite(tuple(masses), direction, draw.random() < 0.5)


def exact(parts, epsilon):
    """Return delta by all outcomes of all uses."""
    uses = [
        [pair[::-1] if loss.direction == "add" else pair for pair in loss.masses]
        for loss, times in parts
        for _ in range(times)
    ]
    total = arb(0)
    for outcome in itertools.product(*uses):
        q, p = (math.prod(side) for side in zip(*outcome, strict=True))
        q, p = (ball(x) if isinstance(x, Fraction) else x for x in (q, p))
        total += arb.max(p - arb(epsilon).exp() * q, arb(0))
    return total


@pytest.mark.slow
def test_bounds_of_any_numbers_hold_the_exact_delta_of_finite_pairs():
    draw, close = random.Random(1), 0
    for _ in range(400):
        way, count = draw.choice(["remove", "add"]), draw.randint(1, 2)
        parts = tuple((some_loss(draw, way), draw.randint(1, 2)) for _ in range(count))
        epsilon = draw.choice([0.0, draw.uniform(0, 1), draw.uniform(0, 6)])
        step, nodes = 10 ** draw.uniform(-3.5, 0.5), draw.choice([2, 3, 20, 4000, 60000])
        proof = OrderProof(128, step, nodes, draw.choice([0.0, 1e-9, 0.3, 0.9]), 9.0)
        lower, upper = enclose(proof, parts, epsilon)
        with ctx.workprec(256):
            truth = exact(parts, epsilon)
            assert not lower.lower() > truth
            assert not upper.upper() < truth
        close += bool(upper - lower < 0.1 * truth)
    assert close > 20


def some_proof(draw, good):
    """Return a proof with one number changed, by little or by much, or with none kept."""
    if draw.random() < 0.3:
        step, nodes = 10 ** draw.uniform(-12, 3), draw.choice([2, 3, 50, 1 << 16])
        numbers = step, nodes, draw.choice([0.0, 1e-9, 0.5, 1 - 2**-53]), 10 ** draw.uniform(-9, 9)
        return OrderProof(draw.choice([64, 128, 1000]), *numbers)
    factor = draw.choice([0.5, 2.0, 1 - 2**-53, 1 + 2**-52, 10 ** draw.uniform(-3, 3)])
    name = draw.choice(["step", "nodes", "top", "bits"])
    low, high = {"nodes": (2, 1 << 16), "bits": (64, 4096)}.get(name, (1e-300, 1e300))
    value = min(max(getattr(good, name) * factor, low), high)
    return replace(good, **{name: int(value) if name in ("nodes", "bits") else value})


def responses(draw):
    """Return responses, the masses of each, and a proof that is exact but for rounding."""
    parts, mechanisms, span = [], [], 0.0
    for _ in range(draw.randint(1, 2)):
        p, k = draw.choice([0.25, 1e-3, draw.random()]), draw.choice([2, 3, 10])
        other = Fraction(p) / k
        own, times = 1 - Fraction(p) + other, draw.randint(1, 3)
        masses = (own, other), ((k - 2) * other, (k - 2) * other), (other, own)
        parts.append((Finite(tuple(m for m in masses if any(m)), "both", False), times))
        mechanisms.append(Mechanism(events.RandomizedResponseDpEvent(p, k), times))
        of_one = float(ball(own / other).log())
        span += times * of_one
    proof = OrderProof(192, of_one / draw.choice([1, 4, 30]), 5000, 0.0, 2 * span + 1)
    return mechanisms, parts, span, proof, "replace-one", "1e-9"


def batches(draw):
    """Return epochs, and samples, of discrete Laplace noise, which has two ratios."""
    parts, mechanisms, span = [], [], 0.0
    direction = draw.choice(["remove", "add"])
    for _ in range(draw.randint(1, 2)):
        a, count, q = draw.uniform(0.1, 2), draw.choice([1, 1, 2, 5]), draw.choice([1e-3, 0.5])
        noise, times = events.DiscreteLaplaceDpEvent(a, 1), draw.randint(1, 2)
        more, less = arb(a).exp(), (-arb(a)).exp()
        if count > 1:
            event, of_all = events.AllocatedDpEvent(noise, count), count
            ratios = [(more * k + less * (count - k)) / count for k in range(count + 1)]
        else:
            of_all = 9
            event = events.PoissonSampledDpEvent(q, events.SelfComposedDpEvent(noise, of_all))
            ratios = [1 - q + q * more**k * less ** (of_all - k) for k in range(of_all + 1)]
        whole = (1 + less) ** of_all
        chances = [math.comb(of_all, k) * less**k / whole for k in range(of_all + 1)]
        masses = tuple((c, c * ratio) for c, ratio in zip(chances, ratios, strict=True))
        parts.append((Finite(masses, direction, False), times))
        mechanisms += mechanisms_of(events.SelfComposedDpEvent(event, times))
        span += times * abs(float(ratios[direction == "remove" and -1].log()))
    tail = draw.choice([0.0, 0.5])
    proof = OrderProof(192, draw.choice([0.1, 0.01, 0.003]), 5000, tail, 2 * span + 4)
    return mechanisms, parts, 0.9 * span, proof, "add-or-remove-one", "0.1"


@pytest.mark.slow
@pytest.mark.parametrize(("composition", "documents"), [(responses, 150), (batches, 60)])
def test_no_changed_proof_of_a_document_moves_an_exact_delta(composition, documents):
    """A forger claims a little more or less than the sum over all answers, which is exact."""
    draw, accepted = random.Random(2), 0
    for _ in range(documents):
        with ctx.workprec(256):
            mechanisms, parts, span, good, relation, slack = composition(draw)
            epsilon, proof = draw.uniform(0, span), some_proof(draw, good)
            truth = exact(parts, epsilon)
            less, more = ((truth * (1 + s * arb("1e-9"))).str(40, radius=False) for s in (-1, 1))
            low, high = ((truth * (1 + s * arb(slack))).str(40, radius=False) for s in (-1, 1))
        for ends, is_true in (((low, high), True), ((more, "1"), False), (("0", less), False)):
            name = parts[0][0].direction
            claim = claim_about(mechanisms, name, epsilon, ends, proof, relation=relation)
            try:
                verify_certificate(resigned(json.loads(claim)))
                assert is_true, (mechanisms, epsilon, proof, ends)
                accepted += 1
            except CertificateRejected:
                pass
    assert accepted > documents / 10


GAUSSIAN, LAPLACE = events.GaussianDpEvent(1.0), events.LaplaceDpEvent(0.5)
ON_BATCHES = [
    events.PoissonSampledDpEvent(0.1, events.ComposedDpEvent([LAPLACE, GAUSSIAN])),
    events.SampledWithoutReplacementDpEvent(9, 2, LAPLACE),
    events.AllocatedDpEvent(LAPLACE, 5),
    events.RandomAllocationDpEvent(0.7, 6),
    events.SampledWithReplacementDpEvent(3, 12, GAUSSIAN),
]
ALONE = [
    events.PoissonSampledDpEvent(0.1, GAUSSIAN),
    events.SampledWithoutReplacementDpEvent(9, 2, GAUSSIAN),
    events.DiscreteGaussianDpEvent(2.0, 3),
    events.RandomizedResponseDpEvent(0.3, 4),
    LAPLACE,
]


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("top", [0.5, 20.0])
@pytest.mark.parametrize("event", ON_BATCHES + ALONE, ids=lambda event: type(event).__name__)
def test_outcomes_keep_all_mass(event, top, above, monkeypatch):
    """Of both laws above, and below under Q."""
    monkeypatch.setattr(samples, "_MOST_DRAWS", 5)
    relation = "add-or-remove-one" if event in ON_BATCHES else "replace-one"
    certificate = Certificate(relation, mechanisms_of(event), None, ())
    ((loss, _),) = certificate.composition.directions[0].parts
    with ctx.workprec(128):
        limits = OrderProof(128, 0.1, 200, 1e-3, top)
        cells, _ = pair_of(loss).outcomes(arb(0.1), limits, above)
        for row in list(zip(*cells, strict=True))[: 1 + above]:
            whole = sum(row, arb(0))
            assert whole.overlaps(arb(1))
            assert whole.rad() < 1e-5


@pytest.mark.parametrize("at", [0.0, -0.3, 1.24])
def test_a_law_above_holds_any_ratio_in_a_ball_and_mass_of_few_digits(at):
    """Of both directions, at ratios at either end of a ball, of a point and of a cell."""
    one, zero = arb(1), arb(0)
    with ctx.workprec(128):
        empty = Law(True, zero, arb(0.25), 0, [])
        u = arb(at, 0.1)
        few, middle = arb(0.5, 0.4), arb(at)
        point = [(one, u.exp(), u, u)]
        cell = [(few, few * middle.exp(), middle - 0.1, middle + 0.1)]
        # At a point it stays, where it does not count twice.
        kept = spread(empty, [(few, few * middle.exp(), middle, middle)]).masses
        assert sum(kept, zero).overlaps(few)
        assert abs(sum(kept, zero).mid() - 0.5) < 1e-9
        for cells, mass, logs in ((point, 1.0, (at - 0.1, at + 0.1)), (cell, 0.5, (at,))):
            law = spread(empty, cells)
            for log, k in itertools.product(logs, (-0.05, 0.0, 0.05)):
                # K is near the ratio, on either side of it.
                epsilon = arb(log + k)
                gain = mass * (math.exp(log) - math.exp(log + k))
                assert not law.delta(epsilon, True).upper() < arb(gain)
                assert not law.delta(-epsilon, False).upper() < arb(gain * math.exp(-log - k) * -1)


def test_a_law_below_proves_no_more_of_mass_of_few_digits():
    """Of an added record, a mass that is rounded up would be a larger delta."""
    few, u = arb(0.5, 0.4), arb(-1)
    with ctx.workprec(128):
        cells = [(few, few * u.exp(), u, u), (1 - few, 1 - few * u.exp(), u, None)]
        law = gather(Law(False, u, arb(0.25), 0, []), cells, False)
        assert not law.delta(arb(0.5), False).lower() > 0.1 * (1 - arb(-0.5).exp())


def test_a_sample_keeps_what_the_law_of_its_answers_has_lost(monkeypatch):
    """Below, it is at an infinite ratio of the answers, and so of the sample."""
    loss, _ = samples.pairs_of(ON_BATCHES[1], "add-or-remove-one")
    with ctx.workprec(128):
        law = Law(False, arb(0), arb(0.1), 0, [arb(0.75)], lost=arb(0.25))
        monkeypatch.setattr(samples, "law_of", lambda *_: (law, None))
        cells, _ = pair_of(loss).outcomes(arb(0.1), OrderProof(128, 0.1, 200, 1e-3, 9.0), False)
        assert cells[-1][0] == arb(0.25)
        assert cells[-1][3] is None


def test_draws_that_are_not_told_apart_have_infinite_ratios(monkeypatch):
    monkeypatch.setattr(samples, "_MOST_DRAWS", 5)
    loss, _ = samples.pairs_of(ON_BATCHES[-1], "add-or-remove-one")
    beyond = sum(math.comb(12, k) * 2 ** (12 - k) for k in range(6, 13)) / 3**12
    with ctx.workprec(128):
        limits = OrderProof(128, 1.0, 4000, 1e-9, 1e4)
        *_, (_, p, _, largest) = pair_of(loss).outcomes(arb(1), limits, True)[0]
        assert p > 0.999999 * beyond
        assert largest is None
