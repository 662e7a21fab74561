"""Strategies at one target: every row meets it, and errors are what the matrices say."""

import json
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from _correlated_runs import price

from dpcal import calibrate
from dpcal.accountants import correlated, epsilon, events
from dpcal.accountants.matrix import (
    BLT,
    Banded,
    FixedEpochs,
    Identity,
    LambdaCGD,
    LeastSeparation,
    SquareRoot,
    Tree,
    Workload,
)
from dpcal.calibrate.batching import SAMPLED
from dpcal.calibrate.correlated import CalibratedNoise, noise_multiplier
from dpcal.calibrate.correlated.strategies import SampledBatches
from dpcal.errors import UnsupportedEvent

TARGET = {"epsilon": 2.0, "delta": 1e-6}
SCHEMAS = [FixedEpochs(4, 16), LeastSeparation(8, 3), FixedEpochs(64, 1, independent=True)]


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_every_row_meets_the_target_and_no_less_noise_would(schema):
    relation = "add-or-remove-one" if schema.independent else "replace-special"
    table = calibrate.compare_strategies(
        steps=64, participation=schema, neighboring_relation=relation, **TARGET
    )
    assert len(table.rows) >= 7
    for row in table.rows:
        for factor, meets in ((1.0, True), (1 - 2e-6, False)):
            event = row.strategy.event(
                row.noise_multiplier * factor, schema, neighboring_relation=relation
            )
            found = epsilon(event, delta=1e-6, neighboring_relation=relation)
            assert (found <= 2.0) == meets


def test_errors_are_those_of_the_calibrated_noise():
    workload = Workload(momentum=0.5)
    strategies = (Identity(40), Tree(40), Banded(40, 3), SquareRoot(40))
    asked = {"steps": 40, "workload": workload, **TARGET}
    table = calibrate.compare_strategies(strategies=strategies, **asked)
    A = workload.accumulate(np.eye(40))
    for row in table.rows:
        noise = row.noise_multiplier * np.linalg.inv(row.strategy.matrix())
        spread = np.linalg.norm(A @ noise, axis=1)
        assert row.max_error == pytest.approx(spread.max(), rel=1e-9)
        assert row.mean_error == pytest.approx(np.sqrt((spread**2).mean()), rel=1e-9)
    assert [row.memory for row in table.rows] == [0, 6, 2, 39]
    document = json.loads(json.dumps(table.to_dict()), parse_constant=pytest.fail)
    assert document["rows"][1]["strategy"] == Tree(40).to_dict()


@pytest.mark.slow
def test_usual_strategies_of_random_batches_all_answer_and_report():
    seen = []
    table = calibrate.compare_strategies(
        steps=16,
        pricing=SampledBatches(correlated.Poisson(0.05)),
        progress=lambda row, done, count: seen.append((row, done, count)),
        **TARGET,
    )
    assert len(table.rows) >= 10
    assert seen == [(row, k, len(table.rows)) for k, row in enumerate(table.rows, 1)]
    assert isinstance(table.baseline.strategy, Identity)
    assert table.rows[0] is table.baseline
    momentum = Workload(momentum=0.9)
    for row in table.rows:
        assert row.noise_multiplier is not None or row.note.endswith(".")
        assert row.momentum_error == pytest.approx(
            row.noise_multiplier * row.strategy.mean_error(momentum), rel=1e-12
        )
    share = table.rows[2].mean_error / table.baseline.mean_error
    assert f"{share:.3f}" in str(table).splitlines()[6]


def test_correlation_pays_in_several_epochs_and_replacing_a_record_takes_twice_the_noise():
    asked = {"steps": 512, "participation": FixedEpochs(8, 64), **TARGET}
    table = calibrate.compare_strategies(**asked)
    independent, *correlated = table.rows
    assert all(row.mean_error < independent.mean_error for row in correlated)
    (replace,) = calibrate.compare_strategies(
        strategies=(correlated[0].strategy,), neighboring_relation="replace-one", **asked
    ).rows
    assert replace.noise_multiplier == pytest.approx(2 * correlated[0].noise_multiplier, rel=2e-6)


def test_other_pricings_plug_in_and_may_refuse():
    class OnlyBanded:
        def __call__(self, strategy, *, epsilon, delta, neighboring_relation):
            if strategy.bands is None:
                raise UnsupportedEvent("No theorem for full matrices.")
            return CalibratedNoise(3.0, "a sampler", "certified")

        def __str__(self):
            return "sampled"

    table = calibrate.compare_strategies(
        steps=9, strategies=(Banded(9, 2), SquareRoot(9)), pricing=OnlyBanded(), **TARGET
    )
    first, second = table.rows
    assert (first.noise_multiplier, first.label) == (3.0, "certified")
    assert second.noise_multiplier is None
    assert "No theorem for full matrices." in str(table)
    assert "sampled" in str(table)
    with pytest.raises(UnsupportedEvent, match="full matrices"):
        calibrate.compare_strategies(
            steps=9, strategies=(SquareRoot(9),), pricing=OnlyBanded(), **TARGET
        )


@pytest.mark.slow
def test_random_batches_are_priced_by_the_sampler():
    q = 0.1
    run = (Identity(32), LambdaCGD(32, 0.5), SquareRoot(32))
    table = calibrate.compare_strategies(
        steps=32, pricing=SampledBatches(correlated.Poisson(q)), strategies=run, **TARGET
    )
    assert [row.label for row in table.rows] == ["exact", "certified", "certified"]
    exact = calibrate.noise_multiplier(
        lambda z: events.dpsgd(sampling_probability=q, noise_multiplier=z, steps=32), **TARGET
    )
    assert table.rows[0].noise_multiplier == pytest.approx(exact, rel=1e-6)
    for row in table.rows[1:]:
        # The reported multiplier is the standard deviation of z: the accountant takes it as it is.
        proved = {"delta": 1e-6, "statistics": "none"}
        sigmas = row.noise_multiplier, 0.99 * row.noise_multiplier
        met, missed = (
            price(row.strategy, correlated.Poisson(q), noise_multiplier=sigma, **proved)
            for sigma in sigmas
        )
        assert met <= 2.0 < missed
    known = calibrate.compare_strategies(
        steps=32, participation=LeastSeparation(1), strategies=run, **TARGET
    )
    for sampled, full in zip(table.rows, known.rows, strict=True):
        assert sampled.noise_multiplier < full.noise_multiplier
    assert "sampling_probability=0.1" in str(table).splitlines()[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_batches_of_one_size_by_every_sampler(name):
    batches = calibrate.Batches(name, 0.05)
    names = "identity", "banded=2", "banded=best"
    table = calibrate.compare_strategies(
        steps=40, pricing=SampledBatches(batches), strategies=names, **TARGET
    )
    *members, best = table.rows
    # The best number of bands has the least error of all, at the noise of that number.
    assert best.mean_error <= min(row.mean_error for row in members)
    for row in table.rows:
        sampler = batches(row.strategy)
        assert sampler.expected_batch_size(1000, 40) == pytest.approx(50.0)
        asked = {"noise_multiplier": row.noise_multiplier, "delta": TARGET["delta"]}
        found = price(row.strategy, sampler, **asked, statistics="none")
        assert 0.99 * TARGET["epsilon"] < found <= TARGET["epsilon"] * (1 + 1e-6)
    assert calibrate.Batches(name, 0.05, 20)(Banded(40, 2)).automaton(40).rounds == 40
    for wrong in ({"name": "full"}, {"sampling_probability": 0.0}, {"apart": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            calibrate.Batches(**{"name": name, "sampling_probability": 0.05, **wrong})


@pytest.mark.slow
def test_draws_need_less_noise_than_bounds_and_too_few_are_not_trusted():
    run, sampler = (LambdaCGD(16, 0.7), SquareRoot(16)), correlated.Poisson(0.1)
    cases = ((1e-2, "none", run[:1]), (1e-2, "certified", run[:1]), (1e-7, "certified", run[1:]))
    proved, drawn, few = (
        calibrate.compare_strategies(
            steps=16,
            epsilon=1.0,
            delta=delta,
            strategies=which,
            pricing=SampledBatches(sampler, statistics=statistics, draws=2048, seed=2),
        )
        for delta, statistics, which in cases
    )
    for certain, likely in zip(proved.rows, drawn.rows, strict=True):
        assert likely.label == "statistical with certified confidence"
        assert likely.noise_multiplier < certain.noise_multiplier
    assert few.rows[0].label == "certified"


@pytest.mark.slow
def test_names_and_other_processes_give_the_same_table():
    pricing = SampledBatches(
        correlated.Poisson(0.05), "certified", draws=2048, seed=4, failure_probability=1e-8
    )
    asked = {"steps": 12, "epsilon": 4.0, "delta": 1e-5, "pricing": pricing}
    names = ("identity", "lambda-cgd=0.5", "banded=2", "blt=1")
    seen = []
    with ProcessPoolExecutor(2) as pool:
        table = calibrate.compare_strategies(
            strategies=names, executor=pool, progress=lambda *told: seen.append(told[1]), **asked
        )
    assert seen == [1, 2, 3, 4]
    assert [row.strategy.kind for row in table.rows] == ["identity", "lambda-CGD", "banded", "BLT"]
    alone = calibrate.compare_strategies(strategies=(table.rows[2].strategy,), **asked)
    assert alone.rows[0].noise_multiplier == table.rows[2].noise_multiplier


@pytest.mark.slow
def test_draws_stop_where_a_proof_needs_no_more_noise():
    # Long memory: draws of removing have no finite range near the noise that is proved.
    run, sampler = BLT(12, (0.9,), (0.3,)), correlated.Poisson(0.01)
    target = {"epsilon": 1.0, "delta": 1e-6}
    proved = noise_multiplier(run, sampler, statistics="none", **target).noise_multiplier
    found = noise_multiplier(run, sampler, draws=2048, seed=1, **target)
    # Both are searched for to a relative 1e-4.
    assert found.noise_multiplier <= proved * (1 + 3e-4)
    assert found.confirmation <= 1e-6 * (1 + 1e-3)
    asked = {"noise_multiplier": found.noise_multiplier, "statistics": "none", "delta": 1e-6}
    assert price(run, sampler=sampler, **asked) <= 1.0
