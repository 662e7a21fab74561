"""Many claims: a child that ends costs one claim, and verdicts are stored by content."""

import json
import os

import pytest
from _claims import alone

from dpcal.calibrate import papers
from dpcal.calibrate.papers import Claim, Enumeration, deciding
from dpcal.calibrate.papers.deciding import Store, decided


def bound(text, more=""):
    return alone(f"{text} where x in [0, 1]{more}")


def listed(program, cases):
    return Claim("c", "enumeration", parts={"program": Enumeration(program, cases)})


def killed(case):
    os.kill(os.getpid(), 9)


def endless(case):
    while True:
        case += 1


def greedy(case):
    return bytearray(deciding.MEGABYTES << 20)


@pytest.mark.parametrize("program", [killed, endless, greedy])
def test_a_child_that_ends_costs_one_claim(program, monkeypatch, capfd):
    monkeypatch.setattr(deciding, "SECONDS", 1)
    claims = [bound("x <= x + 1"), listed(program, (0,)), bound("x**2 <= x")]
    found = decided(claims, processes=2)
    assert [verdict.status for verdict in found] == ["PROVED", "OPEN", "PROVED"]
    assert "seconds of processor" in found[1].reason


def test_children_and_one_process_say_the_same():
    claims = [bound(f"x <= x**2 + {k}") for k in range(5)]
    assert decided(claims) == decided(claims, processes=3)


def counted(monkeypatch):
    calls = []
    prove = papers.prove
    monkeypatch.setattr(papers, "prove", lambda claim: calls.append(claim) or prove(claim))
    return calls


def test_a_verdict_is_stored_for_the_same_content_only(monkeypatch, tmp_path):
    calls, store = counted(monkeypatch), Store(tmp_path / "new" / "audit.json")
    first = decided([bound("x <= x + 1")], store=store)
    assert decided([bound("x <= x + 1")], store=store) == first
    assert len(calls) == 1
    wider = alone("x <= x + 1 where x in [0, 2]")
    half = bound("x <= x + 1", ", x <= 1/2")
    decided([bound("x <= x + 2"), bound("x < x + 1"), half, wider], store=store)
    assert len(calls) == 5
    monkeypatch.setattr(deciding, "fingerprint", lambda: "another kernel")
    decided([bound("x <= x + 1")], store=store)
    assert len(calls) == 6


@pytest.mark.parametrize("text", ["", "[" * 10_000, "[]", '{"verdicts": 3}', "\ud800"])
def test_a_broken_store_is_as_good_as_none(text, tmp_path):
    store = Store(tmp_path / "audit.json")
    store.path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for _ in range(2):
        assert [v.status for v in decided([bound("x <= x + 1")], store=store)] == ["PROVED"]
        document = json.loads(store.path.read_text())
        document["verdicts"] = {key: ["{}", 1.0] for key in document["verdicts"]}
        store.path.write_text(json.dumps(document))


def test_foreign_programs_are_never_stored(monkeypatch, tmp_path):
    calls, store = counted(monkeypatch), Store(tmp_path / "audit.json")
    claims = [listed(lambda case: case > 0, (1, 2))]
    decided(claims, store=store)
    decided(claims, store=store)
    assert len(calls) == 2
