"""Forged and damaged evidence: no document makes the checker accept what is false.

Each proof of a true claim is taken apart leaf by leaf, and each result is put before a false claim
and before the true one with another status.
"""

import contextlib
import copy
import dataclasses
import random
import time

import pytest

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.claims.language import (
    Bound,
    Enumeration,
    Feasible,
    Identity,
    Private,
    Quantity,
    Rate,
    Release,
    Schedule,
    standalone,
)
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel.checker import refusal
from dpcal.calibrate.papers.kernel.terms import encode
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import recheck, verdict_of

DOCUMENTS = 10_000
LINES_OF_CODE = 700  # of the kernel, without docstrings, comments and blank lines
PLAIN = Schedule(
    name="plain",
    title="",
    citation="",
    quantities=(
        *(Quantity(name, "positive") for name in ("x", "y", "z", "n")),
        Quantity("t", "real", range="(-oo, oo)"),
        Quantity("p", "exponent", range="(1, oo)"),
    ),
)

# Each true claim with a false one that is near to it.
PAIRS = [
    (Bound("a", "2*sqrt(x*y) <= x + y"), Bound("a", "2*sqrt(x*y) <= (1 - 1/10**6)*(x + y)")),
    (Bound("b", "log(1 + x) <= x"), Bound("b", "log(1 + x) <= x**(1 + 1/10**6)")),
    (Bound("c", "1 + x <= exp(x)"), Bound("c", "1 + (1 + 1/10**6)*x <= exp(x)")),
    (Bound("d", "1 + p*x <= (1 + x)**p"), Bound("d", "(1 + x)**p <= 1 + p*x")),
    (
        Bound("e", "x <= 3*log(1 + x)", on={"x": (1, 5)}),
        Bound("e", "x <= 3*log(1 + x)", on={"x": (1, 6)}),
    ),
    (Bound("f", "Max(x, y) <= x + y"), Bound("f", "x + y <= Max(x, y)")),
    (
        Bound("g", "x*y <= n", where=("x <= sqrt(n)", "y <= sqrt(n)")),
        Bound("g", "x*y <= n", where=("x <= sqrt(n)", "y <= 2*sqrt(n)")),
    ),
    (Identity("h", "sqrt(x*y)**2 = x*y"), Identity("h", "sqrt(x*y)**2 = x*y*(1 + 1/10**6)")),
    (
        Identity("m", "(x**p*y)**(2/p) = x**2*y**(2/p)"),
        Identity("m", "(x**p*y)**(2/p) = x**2*y**(2/p)*(1 + 1/10**6)"),
    ),
    (
        Identity("o", "log(x**2*sqrt(y)/8) = 2*log(x) + log(y)/2 - 3*log(2)"),
        Identity("o", "log(x**2*sqrt(y)/8) = 2*log(x) + log(y)/2 - 3*log(2) + 1/10**6"),
    ),
    (
        Bound("q", "erfc(x) <= exp(-x**2)/(x*sqrt(pi))"),
        Bound("q", "exp(-x**2)/(x*sqrt(pi)) <= erfc(x)"),
    ),
    (Bound("i", "4*t - 3 <= t**4"), Bound("i", "4*t - 3 < t**4")),
    (Feasible("j", ("x <= x + 1", "0 < x")), Feasible("j", ("x <= x + 1", "1 < x"))),
    (
        Rate("k", "n + sqrt(n)*log(n) =O n", growth={"n": 1}),
        Rate("k", "n + n*log(n) =O n", growth={"n": 1}),
    ),
    (
        Private("l", (Release(1, "sqrt(x)", "x"),), rho="1/2"),
        Private("l", (Release(1, "sqrt(x)", "x"),), rho="1/2 - 1/10**6"),
    ),
]


def leaves(document, path=()):
    if isinstance(document, dict):
        rows = document.items()
    elif isinstance(document, list):
        rows = enumerate(document)
    else:
        yield path
        return
    yield path
    for key, part in rows:
        yield from leaves(part, (*path, key))


def changed(document, path, value):
    """A copy of the document with another value at a path; the rest is shared."""
    if not path:
        return value
    if not isinstance(document, dict | list):
        raise TypeError("no such path")
    result = copy.copy(document)
    result[path[0]] = changed(document[path[0]], path[1:], value)
    return result


VALUES = [
    "",
    "0",
    "1",
    "-1",
    "1/2",
    "2",
    "1/0",
    "x",
    "t1_",
    "plain",
    "balls",
    "slope",
    "bound",
    "absurd",
    "log",
    "pow",
    ".",
    None,
    True,
    False,
    0,
    1,
    -1,
    10**30,
    1.5,
    [],
    {},
    ["num", "0"],
    ["num", "1"],
    ["sym", "x"],
    {"rule": "plain"},
    {"rule": "plain", "as": ["num", "0"]},
    {"rule": "plain", "as": ["num", "1"]},
    {"rule": "plain", "as": ["sym", "x"], "by": [[["sym", "x"], ["sym", "y"]]]},
    {
        "rule": "plain",
        "as": ["num", "1"],
        "by": [[["pow", ["sym", "t"], ["num", "2"]], ["sym", "t"]], [["sym", "x"], ["num", "1"]]],
    },
    [["sym", "x"], ["num", "1"]],
    [["pow", ["sym", "x"], ["num", "1/2"]], ["sym", "x"]],
    {"rule": "absurd", "fact": ["sym", "x"]},
    {"rule": "balls", "box": {}, "tree": "."},
    {"rule": "balls", "box": {"x": ["0", "1"]}, "tree": "x"},
    [["num", "0"], False, {"rule": "plain"}],
    [[["num", "-1"], True, {"rule": "plain"}]],
    [[["sym", "x"], True, {"rule": "plain"}]],
    {"rule": "let", "name": "x", "value": ["num", "-1"], "then": {"rule": "plain"}},
    {"rule": "let", "name": "t1_", "value": ["num", "-1"], "then": {"rule": "plain"}},
    {"rule": "cases", "on": ["sym", "x"], "nonnegative": {}, "nonpositive": {}},
    {
        "rule": "replace",
        "of": ["sym", "x"],
        "by": ["num", "1"],
        "then": {"rule": "plain"},
    },
]


@pytest.fixture(scope="module")
def proofs():
    rows = []
    for true, false in PAIRS:
        good, bad = PLAIN.resolve(true), PLAIN.resolve(false)
        verdict = prove(good, seconds=20)
        assert verdict.status == "PROVED", (true.name, verdict.reason)
        assert recheck(good, verdict)
        rows.append((good, bad, verdict))
    return rows


@pytest.mark.slow
def test_no_changed_document_proves_what_is_false(proofs):
    generator = random.Random(13)
    rows = [(bad, verdict, list(leaves(verdict.evidence))) for _, bad, verdict in proofs]
    count = 0
    while count < DOCUMENTS:
        bad, verdict, paths = generator.choice(rows)
        evidence = verdict.evidence
        for _ in range(generator.randint(1, 3)):
            with contextlib.suppress(LookupError, TypeError):  # an earlier change cut this path
                evidence = changed(evidence, generator.choice(paths), generator.choice(VALUES))
        forged = Verdict("PROVED", verdict.method, evidence=evidence)
        assert verdict_of(bad, forged, seconds=2.0), (bad.name, evidence)
        count += 1


@pytest.mark.slow
def test_the_proof_of_another_claim_is_refused(proofs):
    for _, _, verdict in proofs:
        for _, bad, _ in proofs:
            assert verdict_of(bad, verdict)


@pytest.mark.slow
def test_a_true_claim_is_never_refuted_by_a_document(proofs):
    generator = random.Random(5)
    for good, _, verdict in proofs:
        for _ in range(40):
            numbers = [str(generator.randint(-3, 9)), "1/3", "0", "1/0", "x", None]
            point = {name: generator.choice(numbers) for name in good.domain}
            evidence = {"goal": 0, "point": point, "left": "2", "right": "1"}
            assert verdict_of(good, Verdict("REFUTED", "counterexample", evidence=evidence))
        for status in ("REFUTED", "SAMPLED", "LOOSE", "DEFINITION", "OPEN", "NONSENSE", ""):
            assert verdict_of(good, dataclasses.replace(verdict, status=status)), status


def test_values_shown_are_checked():
    claim = PLAIN.resolve(Bound("c", "x**2 <= x"))
    verdict = prove(claim)
    assert verdict.status == "REFUTED"
    for name in ("left", "right", "point", "goal"):
        forged = {**verdict.evidence, name: "7"}
        assert verdict_of(claim, dataclasses.replace(verdict, evidence=forged)), name


def test_cases_that_are_not_the_claims_are_refused():
    claim = Enumeration("c", lambda k: k < 3, [1, 2, 3])
    for evidence in ({"case": 0}, {"case": 3}, {"case": -1}, {"cases": 3}, {}):
        for status in ("REFUTED", "PROVED", "SAMPLED"):
            assert verdict_of(claim, Verdict(status, "cases", evidence=evidence))
    assert not verdict_of(claim, Verdict("REFUTED", "cases", evidence={"case": 2}))


@pytest.mark.parametrize("depth", [100, 5000])
def test_deep_documents_are_refused_in_time(depth):
    proof: dict = {"rule": "plain"}
    term: list = ["sym", "x"]
    for _ in range(depth):
        proof = {"rule": "cases", "on": ["sym", "x"], "nonnegative": proof, "nonpositive": proof}
        term = ["exp", term]
    claim = PLAIN.resolve(Bound("c", "x <= x**2"))
    started = time.monotonic()
    for step in (proof if depth < 1000 else {"rule": "plain"}, {"rule": "plain", "as": term}):
        evidence = {"witness": {"x": "1"}, "proofs": [step]}
        if depth < 1000 and step is proof:
            evidence["proofs"] = [{"rule": "plain", "as": term}]
        assert verdict_of(claim, Verdict("PROVED", "", evidence=evidence), seconds=2.0)
    assert time.monotonic() - started < 20


def test_large_numbers_are_refused_in_time():
    huge = ["pow", ["num", "7"], ["num", "9" * 300]]
    claim = PLAIN.resolve(Bound("c", "x <= x**2"))
    for root in (huge, ["mul", ["sym", "x"], huge], ["gamma", huge]):
        step = {"rule": "plain", "as": ["pow", root, ["num", "2"]]}
        evidence = {"witness": {"x": "1"}, "proofs": [step]}
        started = time.monotonic()
        assert verdict_of(claim, Verdict("PROVED", "", evidence=evidence), seconds=2.0)
        assert time.monotonic() - started < 10


def test_the_kernel_is_small():
    import ast
    import io
    import tokenize
    from pathlib import Path

    import dpcal.calibrate.papers.kernel as kernel

    beside = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    count = 0
    for path in Path(kernel.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in beside:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                ast.get_docstring(node, clean=False) is not None
            ):
                lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        count += len(lines)
    assert count < LINES_OF_CODE


def test_the_checker_knows_nothing_of_the_search():
    import ast
    from pathlib import Path

    import dpcal.calibrate.papers.kernel as kernel

    trusted = {"base", "claims", "formulas", "kernel", "ranges"}
    for path in Path(kernel.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 600, path.name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and "auditing" in (node.module or ""):
                parts = node.module.split("auditing.")
                names = [parts[1].split(".")[0]] if len(parts) > 1 else [a.name for a in node.names]
                assert set(names) <= trusted, (path.name, node.module)


@pytest.mark.parametrize(
    "form",
    [
        "x**(100000001/2)",
        "x**(999999999/1000000007)",
        "(x**1000000007 + 1)/(x + 1)",
        "(x**(1000000007/1000003) + 1)/(x + 1)",
        "(x + pi + exp(1) + exp(x) + exp(2*x) + exp(3*x) + 1)**(4001/2)",
        "x**1000000000000000000000000000000",
    ],
)
def test_high_powers_of_roots_take_no_memory(form):
    # A polynomial library ends the process where its memory ends, so a limit must come before.
    claim = standalone(Bound("c", "x <= x - 1", on={"x": (0, 1)}))
    proof = {"rule": "plain", "as": encode(parse(form))}
    started = time.thread_time()
    assert refusal(claim, "PROVED", {"witness": {"x": "1/2"}, "proofs": [proof]})
    assert time.thread_time() - started < 5
