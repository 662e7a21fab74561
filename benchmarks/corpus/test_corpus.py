"""The proofs and the scores of the corpus: ``make bench`` runs these tests."""

import contextlib
import subprocess
import sys
from decimal import Decimal

import pytest
from flint import arb, ctx

from benchmarks.corpus import __main__ as corpus, adapters, rows, scoring
from benchmarks.corpus.checking import problem
from benchmarks.corpus.exact import Question
from benchmarks.corpus.inner import on_epoch
from benchmarks.corpus.laws import allocated, discrete_laplace, enumerated, fixed_batch, sampled
from benchmarks.corpus.noise import Pair, laplace, normal
from dpcal.accountants.directions import RELATIONS
from dpcal.commands.cli import main
from dpcal.errors import DpcalError

ROOT = rows.FOLDER.parents[1]
ROWS = {row["id"]: row for row in rows.read(rows.FOLDER / rows.QUESTIONS)}
CERTIFICATES = {each["id"]: each["certificate"] for each in rows.read(rows.FOLDER / rows.PROOFS)}


def test_all_brackets_are_proved_again():
    found = {name: problem(row, CERTIFICATES.get(name)) for name, row in ROWS.items()}
    assert {name: what for name, what in found.items() if what} == {}


def test_the_corpus_has_every_family_and_relation():
    assert len(ROWS) >= 3000
    assert len({row["family"] for row in ROWS.values()}) == 35
    assert {row["neighboring_relation"] for row in ROWS.values()} == set(RELATIONS)
    for row in ROWS.values():
        assert 0 < Decimal(row["lower"]) <= Decimal(row["upper"])


def cheap(kind):
    """Return two rows of few answers with a proof of this kind."""
    few = [row for row in ROWS.values() if row["event"].get("count", 1) <= 5]
    return [row for row in few if row["proof"] == kind][:40:39]


@pytest.mark.parametrize(
    "kind",
    ["closed form in balls", "exact enumeration in rational numbers", "enumeration in balls"],
)
def test_a_bracket_that_is_moved_does_not_hold(kind):
    for row in cheap(kind):
        assert problem(row, None) is None
        lower, upper = Decimal(row["lower"]), Decimal(row["upper"])
        for low, high in ((upper, 2 * upper), (lower / 2, lower)):
            moved = {**row, "lower": str(low), "upper": str(high)}
            assert problem(moved, None) is not None


def test_a_certificate_is_of_its_row_alone():
    name, document = next(iter(CERTIFICATES.items()))
    row = ROWS[name]
    assert problem(row, document) is None
    assert "missing" in problem(row, None)
    other = {**row["asked"], **{key: value / 2 for key, value in row["asked"].items()}}
    assert "question" in problem({**row, "asked": other}, document)
    relation = next(each for each in RELATIONS if each != row["neighboring_relation"])
    assert problem({**row, "neighboring_relation": relation}, document) is not None
    assert "event" in problem({**row, "event": {**row["event"], "count": 7}}, document)


def test_mixtures_are_those_of_a_threshold():
    """Any half-line is a test, and so no better than delta; the best of many is close to it."""
    with ctx.workprec(96):
        for noise in (normal, laplace):
            there, back = [(arb(0), arb("0.9")), (arb(1), arb("0.1"))], [(arb(0), arb(1))]
            pair, k = Pair(noise, arb("0.7"), there, back), arb("0.05").exp()
            delta = pair.delta(arb("0.05"))
            tried = [
                pair._sums(arb(step) / 500)[2] - k * pair._sums(arb(step) / 500)[3]
                for step in range(-1000, 3000)
            ]
            best = max(tried, key=lambda ball: float(ball.mid()))
            assert best <= delta.upper()
            assert float(best.mid()) == pytest.approx(float(delta.mid()), rel=1e-4)


def test_a_replaced_record_costs_no_less_than_one_direction_of_a_fixed_batch():
    """At every epsilon >= 0, and as much for one use: losses above 0 are the same."""
    with ctx.workprec(96):
        coin = [(arb("0.2"), arb("0.8")), (arb("0.8"), arb("0.2"))]
        removed = sampled(coin, arb("0.3"), "remove")
        both = fixed_batch(removed)
        for text in ("0", "0.1", "0.4"):
            one, other = (enumerated([(law, 1)], arb(text)) for law in (removed, both))
            assert one.overlaps(other)
        assert enumerated([(both, 4)], arb("0.3")) >= enumerated([(removed, 4)], arb("0.3")).lower()


def test_laws_agree_where_two_of_them_are_the_same_mechanism():
    with ctx.workprec(96):
        a, one, none = arb("0.4"), arb(1), arb(0)
        moved = discrete_laplace(a, [(2, one)], [(0, one)])
        everyone = discrete_laplace(a, [(0, none), (1, one)], [(0, none), (-1, one)])
        single = allocated(moved, 1, "remove")
        for text in ("0", "0.3", "0.7"):
            deltas = [enumerated([(law, 3)], arb(text)) for law in (moved, everyone, single)]
            assert deltas[0].overlaps(deltas[1])
            assert deltas[0].overlaps(deltas[2])
        for law in (moved, allocated(moved, 5, "add")):
            assert all(sum(side, none).overlaps(one) for side in zip(*law, strict=True))


GAUSSIAN = {"type": "GaussianDpEvent", "noise_multiplier": 1.0}
FOUR = {
    "type": "SelfComposedDpEvent",
    "event": {**GAUSSIAN, "noise_multiplier": 2.0},
    "count": 4,
}
POISSON = {"type": "PoissonSampledDpEvent", "sampling_probability": 0.3}
BATCH = {
    "type": "SampledWithoutReplacementDpEvent",
    "source_dataset_size": 10,
    "sample_size": 3,
}


@pytest.mark.parametrize(
    ("outer", "relation"),
    [(POISSON, "add-or-remove-one"), (POISSON, "replace-special"),
     (BATCH, "add-or-remove-one"), (BATCH, "replace-one")],
)  # fmt: skip
def test_a_sample_of_four_gaussian_answers_is_one_of_an_answer_with_half_the_noise(outer, relation):
    one, four = (
        Question.of({**outer, "event": each}, relation, "worst") for each in (GAUSSIAN, FOUR)
    )
    assert one.kind == four.kind == "closed form in balls"
    with ctx.workprec(96):
        for text in ("0.01", "0.2", "1.5"):
            for a, b in zip(one.delta(arb(text)), four.delta(arb(text)), strict=True):
                assert a.overlaps(b)
                assert b > 0 or text == "1.5"


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_composition_on_a_sample_of_everyone_is_the_composition(relation):
    discrete = {"type": "DiscreteLaplaceDpEvent", "noise_parameter": 0.4, "sensitivity": 1}
    twice = {"type": "SelfComposedDpEvent", "event": discrete, "count": 2}
    both = {"type": "ComposedDpEvent", "events": [twice, {**discrete, "noise_parameter": 0.7}]}
    sample = {**POISSON, "sampling_probability": 1.0, "event": both}
    plain, sampled = (Question.of(event, relation, "worst") for event in (both, sample))
    if relation == "replace-one":
        assert sampled is None
        return
    with ctx.workprec(96):
        for text in ("0", "0.5", "1.2"):
            assert plain.delta(arb(text))[0].overlaps(sampled.delta(arb(text))[0])


def test_the_bracket_of_an_epoch_holds_what_is_enumerated():
    with ctx.workprec(96):
        law = discrete_laplace(arb("1.5"), [(1, arb(1))], [(0, arb(1))])

        def profile(k):
            value = enumerated([(law, 1)], k.log())
            return value, value

        for direction in ("remove", "add"):
            for text in ("0.1", "0.4", "0.9"):
                epsilon = arb(text)
                exact = enumerated([(allocated(law, 3, direction), 1)], epsilon)
                low, high = on_epoch(profile, 3, direction, epsilon.exp())
                assert low <= exact.upper()
                assert exact.lower() <= high


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_masses_of_discrete_gaussian_noise_add_up_to_one(relation):
    """Far below 0 every output of note is in the test, and delta is 1."""
    noise = {"type": "DiscreteGaussianDpEvent", "sigma": 1.3, "sensitivity": 2}
    question = Question.of({**POISSON, "event": noise}, relation, "worst")
    with ctx.workprec(96):
        for end in question.delta(arb(-400)):
            assert end.overlaps(arb(1))
            assert abs(end - 1) < arb(2) ** -80
        assert 0 < question.delta(arb(1))[0] < question.delta(arb("0.5"))[0]


def test_attacks_on_a_blanked_record_are_below_the_theorem():
    event = {
        "type": "SampledWithoutReplacementDpEvent",
        "source_dataset_size": 10,
        "sample_size": 3,
        "event": {"type": "GaussianDpEvent", "noise_multiplier": 1.0},
    }
    question = Question.of(event, "replace-special", "worst")
    with ctx.workprec(96):
        for text in ("0.1", "1", "3"):
            below, above = question.delta(arb(text))
            assert 0 < below < above


@pytest.mark.parametrize(
    ("upper", "expected"),
    [("0.9", "below"), ("1.0", "inside"), ("1.05", "inside"), ("1.2", "above"),
     ("inf", "infinite"), ("nan", "failed")],
)  # fmt: skip
def test_verdicts(upper, expected):
    row = {"id": "a", "lower": "1.0", "upper": "1.1"}
    assert scoring.verdict(row, {"upper": upper})["verdict"] == expected
    found = scoring.verdict(row, {"upper": upper, "lower": "1.2"})
    assert found.get("lower_end_above", False) == (expected not in ("infinite", "failed"))


def test_a_worker_that_hangs_or_refuses_is_told_apart():
    row = {"id": "a"}

    def hangs(row):
        while True:
            with contextlib.suppress(Exception):
                sum(range(1000))

    def refuses(row):
        raise adapters.Refused("no such event")

    def fails(row):
        raise DpcalError("broken")

    assert "slow" in adapters.answer(hangs, row, 0.05)
    assert adapters.answer(refuses, row, 1.0)["refused"] == "no such event"
    assert adapters.answer(fails, row, 1.0)["failed"] == "DpcalError: broken"


def test_a_row_is_verified_by_the_command(capfd, tmp_path, monkeypatch):
    def verified(row):
        monkeypatch.setattr(sys, "argv", ["corpus", "verify", row, "-o", str(tmp_path / row)])
        return corpus.main()

    row = next(iter(CERTIFICATES))
    assert verified(row) == 0
    assert main(["check", str(tmp_path / row)]) == 0
    assert "holds" in capfd.readouterr().out
    with pytest.raises(SystemExit, match="no certificate proves tree-0000"):
        verified("tree-0000")
    assert not (tmp_path / "tree-0000").exists()


def test_closed_forms_and_enumerations_need_no_accountant():
    script = """
import sys
sys.modules |= dict.fromkeys(("dpcal", "dp_accounting", "numpy", "scipy"))
import benchmarks.corpus.exact
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
