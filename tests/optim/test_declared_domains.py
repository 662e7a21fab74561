"""Classes and groups are declared, or else read off the records and named in every statement."""

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.optim import KAN, MLP, Logistic, Sigmoid, Softmax, minimax
from dpcal.report import document_of, privacy_statement

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
Y = np.arange(N) % 2
PLAN = calibrate.dpsgd(n=N, batch_size=20, steps=5, epsilon=2.0, delta=1e-5)

FAMILIES = {
    "logistic": Logistic,
    "sigmoid": Sigmoid,
    "softmax": Softmax,
    "mlp": lambda *table, **given: MLP(*table, width=2, **given),
    "kan": lambda *table, **given: KAN(*table, width=2, **given),
    "area": lambda *table, **given: minimax.AUCMaximization(*table, positive_share=0.5, **given),
    "fair": lambda *table, **given: minimax.FairClassification(
        *table, Y, dual_l2=1.0, shares=[0.5, 0.5], **given
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_classes_are_declared_or_read_off_the_records_on_request(name):
    build = FAMILIES[name]
    with pytest.raises(ValueError, match=r"^classes must be declared.*classes_from_data=True"):
        build(X, Y)
    with pytest.raises(ValueError, match=r"give one of both, got classes=\[0, 1\]"):
        build(X, Y, classes=[0, 1], classes_from_data=True)
    assert build(X, Y, classes=[0, 1]).read_from_data == ()
    read = build(X, Y, classes_from_data=True)
    assert read.read_from_data == ("classes",)
    assert read.digest() == build(X, Y, classes=[0, 1]).digest()


def test_groups_are_declared_by_their_shares_and_classes_by_weights():
    def fair(groups, **given):
        return minimax.FairClassification(X, Y, groups, dual_l2=1.0, classes=[0, 1], **given)

    for given in ({}, {"shares": [0.5, 0.5], "groups_from_data": True}):
        with pytest.raises(ValueError, match=r"^groups must be declared by their shares"):
            fair(Y, **given)
    third = np.where(np.arange(N) == 7, 2, Y)
    assert fair(third, shares=[0.5, 0.5]).dimensions == fair(Y, shares=[0.5, 0.5]).dimensions
    assert fair(third, groups_from_data=True).dimensions[1] == 3
    assert fair(Y, groups_from_data=True).read_from_data == ("number of groups",)
    labels = np.array(["no", "yes"])[Y]
    assert Logistic(X, labels, class_weights={"no": 1.0, "yes": 2.0}).read_from_data == ()


def test_what_was_read_off_the_records_is_in_every_statement(tmp_path):
    told = "Read from the data, and not covered by the claim: classes."
    for given, read in (({"classes": [0, 1]}, False), ({"classes_from_data": True}, True)):
        objective = Logistic(X, Y, **given)
        book = optim.BudgetBook(tmp_path / f"{read}.db", epsilon=9.0, delta=1e-4)
        runs = [
            optim.dpsgd(objective, PLAN),
            optim.dpsgd(objective, PLAN, store=tmp_path / f"{read}.run"),
            optim.dpsgd(objective, PLAN, store=book),
        ]
        for result in runs:
            assert result.read_from_data == (("classes",) if read else ())
            assert (told in privacy_statement(result)["not_covered"]) is read
            (run,) = document_of(result)["runs"]
            assert run["read_from_data"] == (["classes"] if read else [])


def test_silos_name_what_each_of_them_read():
    constants = Logistic.constants_for(row_norm=2.0, fit_intercept=False)
    target = {"n": 20_000, "dimension": 3, "epsilon": 2.0, "delta": 1e-6}
    plan = calibrate.distributed_psgd(constants, silos=2, **target)
    rows = np.random.default_rng(1).standard_normal((2, 20_000, 3)) / 2
    domains = {"classes": [0, 1]}, {"classes_from_data": True}
    silos = [
        Logistic(each, each[:, 0] > 0, fit_intercept=False, **given)
        for each, given in zip(rows, domains, strict=True)
    ]
    result = optim.distributed_psgd(silos, plan)
    for own in (result, result.of_silo(0), result.of_silo(1)):
        assert own.read_from_data == ("classes",)
