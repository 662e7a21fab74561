"""PipelineDP's engine on the exact accountant, beside its own naive one."""

import math

import numpy as np
import pytest
from _tree import ROOT, program

pytest.importorskip("pipeline_dp")

import pipeline_dp
from dp_accounting.pld import PLDAccountant
from pipeline_dp import dp_computations

from dpcal.adapters.pipeline_dp import BudgetAccountant

METRICS = pipeline_dp.Metrics
MechanismType = pipeline_dp.aggregate_params.MechanismType
# (privacy id, partition, value): partition 0 has 300 people, partition 2 has one.
ROWS = [(person, person % 2, 1.0 + person % 3) for person in range(600)] + [(1000, 2, 1.0)]


def extractors():
    return pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )


ONE = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}


def aggregate(metrics, noise=pipeline_dp.NoiseKind.GAUSSIAN):
    return pipeline_dp.AggregateParams(
        noise_kind=noise, metrics=metrics, min_value=0.0, max_value=3.0, **ONE
    )


def run(accountant, metrics, *, public=(0, 1), noise=pipeline_dp.NoiseKind.GAUSSIAN, times=1):
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = aggregate(metrics, noise)
    given = [engine.aggregate(ROWS, params, extractors(), public) for _ in range(times)]
    accountant.compute_budgets()
    return [dict(each) for each in given]


@pytest.mark.parametrize("noise", list(pipeline_dp.NoiseKind))
def test_sums_and_counts_have_less_noise_at_the_target(noise):
    ours = BudgetAccountant(1.0, 1e-6)
    naive = pipeline_dp.NaiveBudgetAccountant(1.0, 1e-6)
    laplace = noise is pipeline_dp.NoiseKind.LAPLACE
    metrics = [METRICS.COUNT] if laplace else [METRICS.COUNT, METRICS.SUM]
    for accountant in (ours, naive):
        found = run(accountant, metrics, noise=noise, times=1 if laplace else 4)
        assert all(abs(each[0].count - 300) < 400 for each in found)
    assert 1 - 1e-5 < ours.epsilon <= 1.0
    peer = PLDAccountant(value_discretization_interval=1e-4).compose(ours.event)
    assert peer.get_epsilon(1e-6) == pytest.approx(1.0, rel=1e-3)
    (spread,) = {spec.noise_standard_deviation for spec in ours.mechanism_specs}
    told = naive.mechanism_specs[0]
    if laplace:
        assert spread <= math.sqrt(2) / told.eps  # pure epsilons add up, and no more is needed
    else:
        worst = math.sqrt(2 * math.log(1.25 / told.delta)) / told.eps
        assert spread < 0.5 * worst


def test_the_noise_that_is_drawn_is_the_noise_that_is_priced():
    """The spread of 400 counts; a chance of 1e-6 that a true one misses."""
    accountant = BudgetAccountant(50.0, 1e-6)
    found = run(accountant, [METRICS.COUNT], times=400)
    spread = accountant.mechanism_specs[0].noise_standard_deviation
    measured = sum((each[part].count - 300) ** 2 for each in found for part in (0, 1)) / 800
    # Counts are whole numbers: rounding adds a twelfth. A variance of 800 draws errs by 5 percent.
    assert measured == pytest.approx(spread**2 + 1 / 12, rel=0.25)


# Settings of an aggregation, beside its metrics: the bounds of one person, who contributes more.
BOUNDS = {
    "one of one": ONE,
    "three of two": {"max_partitions_contributed": 2, "max_contributions_per_partition": 3},
    "four in all": {"max_contributions": 4},
}
VALUES = {"min_value": -1.0, "max_value": 3.0}
ASKED = {
    "count": ([METRICS.COUNT], {}),
    "sum": ([METRICS.SUM], VALUES),
    "sum of partitions": (
        [METRICS.SUM], {"min_sum_per_partition": -5.0, "max_sum_per_partition": 2.0}
    ),
    "mean": ([METRICS.MEAN], VALUES),
    "persons": ([METRICS.PRIVACY_ID_COUNT], {}),
    "all": ([METRICS.MEAN, METRICS.COUNT, METRICS.SUM, METRICS.PRIVACY_ID_COUNT], VALUES),
}  # fmt: skip


@pytest.fixture
def sums(monkeypatch):
    """Record sums of the engine before noise, which is left out, with its standard deviation."""
    found = []
    for mechanism in (dp_computations.GaussianMechanism, dp_computations.LaplaceMechanism):
        monkeypatch.setattr(
            mechanism, "add_noise", lambda self, value: found.append((value, self.std)) or value
        )
    return found


@pytest.mark.parametrize("noise", list(pipeline_dp.NoiseKind))
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("asked", ASKED)
def test_one_person_moves_a_sum_by_what_is_priced(asked, bounds, noise, sums):
    """With and without a person who has five rows of a large value in each partition."""
    metrics, given = ASKED[asked]
    if bounds == "four in all" and asked == "sum of partitions":
        pytest.skip("PipelineDP has no such bounds together")
    params = pipeline_dp.AggregateParams(
        noise_kind=noise, metrics=metrics, **given, **BOUNDS[bounds]
    )
    partitions = [0, 1, 2]
    rest = [(person, person % 3, 1.0) for person in range(12)]
    far = [0.0]
    for value in (100.0, -100.0):
        runs = []
        for rows in (rest, [*rest, *[(99, each % 3, value) for each in range(15)]]):
            sums.clear()
            accountant = BudgetAccountant(1.0, 1e-6)
            engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
            answers = engine.aggregate(rows, params, extractors(), partitions)
            accountant.compute_budgets()
            order = [partition for partition, _ in answers]
            drawn = np.array(sums).reshape(len(order), -1, 2)
            runs.append(drawn[np.argsort(order)])
        specs = accountant.mechanism_specs
        assert runs[0].shape == (3, len(specs), 2)
        for number, spec in enumerate(specs):
            (before, deviations), (after, _) = (run[:, number].T for run in runs)
            norm = 1 if noise is pipeline_dp.NoiseKind.LAPLACE else 2
            moved = np.linalg.norm(after - before, norm)
            # What is priced: a deviation of so much for each unit that a person moves the sum.
            priced = deviations[0] / spec.noise_standard_deviation
            assert moved <= priced * (1 + 1e-9), spec.name
            far.append(moved / priced)
    # The bounds are attained, so that it is not only too much noise that holds them.
    assert max(far) > 0.99 or bounds == "four in all"


def test_what_pipeline_dp_lets_through_is_what_the_page_says():
    """A value that is no number, and a pipeline that is run again."""
    page = (ROOT / "docs" / "how_to" / "jax.md").read_text()
    for sentence in ("clips a NaN to NaN", "is to be run once"):
        assert sentence in page
    rows = [*ROWS, (2_000, 0, math.nan)]
    accountant = BudgetAccountant(1.0, 1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = aggregate([METRICS.SUM])
    found = engine.aggregate(rows, params, extractors(), [0, 1])
    kept = [(*row[:2], row[2] if math.isfinite(row[2]) else 0.0) for row in rows]
    mended = engine.aggregate(kept, params, extractors(), [0, 1])
    accountant.compute_budgets()
    assert math.isnan(dict(found)[0].sum)
    assert math.isfinite(dict(mended)[0].sum)


def test_the_program_of_the_page_runs(capsys):
    names = {}
    exec(program("how_to/jax.md", "PipelineDP"), names)
    assert "ward 0" in capsys.readouterr().out
    assert 0.99 < names["accountant"].epsilon <= 1.0


def test_partitions_are_selected_and_percentiles_found_inside_the_budget():
    accountant = BudgetAccountant(2.0, 1e-4)
    (found,) = run(accountant, [METRICS.COUNT, METRICS.PERCENTILE(50)], public=None)
    assert set(found) == {0, 1}
    names = [spec.name for spec in accountant.mechanism_specs]
    assert sorted(names) == ["Count", "PartitionSelection", "Quantile"]
    selection = accountant.mechanism_specs[names.index("PartitionSelection")]
    assert 0 < selection.eps < 2.0
    assert 0 < selection.delta < 1e-4
    assert 2 - 1e-5 < accountant.epsilon <= 2.0


@pytest.mark.slow
def test_beam_runs_the_pipeline_with_the_noise_that_was_solved():
    beam = pytest.importorskip("apache_beam")
    from apache_beam.testing.util import assert_that

    accountant = BudgetAccountant(5.0, 1e-6)

    def holds(found):
        assert sorted(partition for partition, _ in found) == [0, 1]
        # Within 20 deviations of the noise, which is below 3.
        assert all(abs(each.count - 300) < 60 for _, each in found)
        assert all(abs(each.mean - 2) < 0.5 for _, each in found)

    with beam.Pipeline(runner="DirectRunner") as pipeline:
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.BeamBackend())
        params = aggregate([METRICS.COUNT, METRICS.MEAN, METRICS.PERCENTILE(50)])
        rows = pipeline | beam.Create(ROWS)
        answers = engine.aggregate(rows, params, extractors(), public_partitions=[0, 1])
        accountant.compute_budgets()
        assert_that(answers, holds)
    assert 5 - 1e-5 < accountant.epsilon <= 5.0


def test_weights_and_scopes_fix_the_ratios_of_noises():
    accountant = BudgetAccountant(1.0, 1e-6)
    with accountant.scope(weight=2.0):
        first = accountant.request_budget(MechanismType.GAUSSIAN, name="Count")
    with accountant.scope(weight=1.0):
        second = accountant.request_budget(MechanismType.LAPLACE, name="Sum")
    accountant.compute_budgets()
    ratio = second.noise_standard_deviation / first.noise_standard_deviation
    assert ratio == pytest.approx(2.0)


def test_what_is_refused():
    accountant = BudgetAccountant(1.0, 1e-6)
    ask = accountant.request_budget
    with pytest.raises(RuntimeError, match="must have been called"):
        _ = accountant.epsilon
    with pytest.raises(ValueError, match="weight"):
        ask(MechanismType.LAPLACE, weight=-1)
    with pytest.raises(NotImplementedError, match="must be None, got"):
        ask(MechanismType.LAPLACE, noise_standard_deviation=2.0)
    with pytest.raises(NotImplementedError, match="Variance"):
        run(accountant, [METRICS.VARIANCE])
    with accountant.scope(weight=1.0), pytest.raises(RuntimeError, match="outside every scope"):
        accountant.compute_budgets()
    accountant.compute_budgets()
    with pytest.raises(RuntimeError, match="before compute_budgets"):
        ask(MechanismType.LAPLACE)
    for target in ((0.0, 1e-6), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="total_"):
            BudgetAccountant(*target)
