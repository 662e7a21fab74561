"""Each check of the kernel is needed: without it, a forged proof of what is false passes.

The statements that check something are found in the kernel's source, so that a new one needs a
forged proof here, or a reason why no proof can pass for lack of it.
"""

import ast
import inspect
import tomllib

import pytest
from _claims import resolved
from _tree import DATA

from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.claims.language import standalone
from dpcal.calibrate.papers.claims.notation import line
from dpcal.calibrate.papers.kernel import balls, checker, context, exponents, normal, rules, terms
from dpcal.calibrate.papers.kernel.terms import Undecided, encode, symbols

FORGED = tomllib.loads((DATA / "forged_proofs.toml").read_text(encoding="utf-8"))
MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (balls, checker, context, exponents, normal, rules, terms)
}
CHECKS = (
    *("require", "require_defined", "require_small", "require_sign", "require_equal"),
    *("require_possible", "look", "check"),
)
FORMULAS = FORGED["formulas"].split()


def statements():
    """Yield each statement of the kernel that checks something: its name, and how to remove it."""
    for stem, module in MODULES.items():
        tree = ast.parse(inspect.getsource(module))
        for path, function in functions(tree, stem):
            for node in ast.walk(function):
                if isinstance(node, ast.Expr) and is_check(node.value):
                    yield f"{path}: {label(node.value)}", stem, path, node.lineno


def functions(tree, path):
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{path}.{node.name}")
        if isinstance(node, ast.FunctionDef):
            yield f"{path}.{node.name}", node


def is_check(node):
    name = getattr(node, "func", None)
    return getattr(name, "attr", getattr(name, "id", "")) in CHECKS


def label(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "require":
        parts = getattr(call.args[1], "values", [call.args[1]])
        return parts[0].value if isinstance(parts[0], ast.Constant) else ast.unparse(call.args[1])
    return f"{name}({', '.join(map(ast.unparse, call.args))[-30:]})"


STATEMENTS = {name: rest for name, *rest in statements()}


def mutate(monkeypatch, name):
    """Take a statement out of the running kernel."""
    stem, path, line = STATEMENTS[name]
    module = MODULES[stem]
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and node.lineno == line:
            node.value = ast.Constant(None)
    install(monkeypatch, module, path, tree)


def install(monkeypatch, module, path, tree):
    """Give a function of a module the code that it has in a tree."""
    space = {"__name__": module.__name__}
    exec(compile(ast.fix_missing_locations(tree), module.__file__, "exec"), space)
    live, changed = module, None
    for part in path.split(".")[1:]:
        live = getattr(live, part)
        changed = getattr(changed, part) if changed else space[part]
    assert live.__code__ != changed.__code__
    monkeypatch.setattr(live, "__code__", changed.__code__)


# ------------------------------------------------------------------------------------ forged proofs


def coded(part, key=""):
    """Return a proof with its formulas as documents have them."""
    if isinstance(part, dict):
        return {name: coded(each, name) for name, each in part.items()}
    if isinstance(part, list):
        return [coded(each, key) for each in part]
    return encode(parse(part)) if key in FORMULAS and isinstance(part, str) else part


def names_of(row):
    """Return the full names of the statements that a row is about."""
    names = row["without"].split(" & ")
    return [
        name if name.startswith(("checker.", "context.")) else f"rules.{name}" for name in names
    ]


def case(row):
    """Return a forged proof as the kernel takes it, after a look at the point where it is false."""
    parts = [part.strip() for part in row.get("facts", "").split(",") if part]
    facts = [(parse(part.rstrip("*")), part.endswith("*")) for part in parts]
    goal, strict = parse(row["goal"]), row.get("strict", False)
    known = {s for term, _ in [*facts, (goal, 0)] for s in symbols(term)}
    values = dict(zip("xy", row.get("at", "").split(), strict=False))
    point = {
        name: parse(value)[1] for name, value in {**dict.fromkeys(known, "1"), **values}.items()
    }
    assert all(normal.sign_at(fact, point) >= positive for fact, positive in facts)
    assert normal.sign_at(goal, point) in ((None, -1, 0) if strict else (None, -1))

    def checked(witness=None):
        here = context.Context(dict.fromkeys(known, "?"), (), witness).with_facts(*facts)
        rules.check(here, goal, strict, coded(row["proof"]))

    return checked, point


@pytest.mark.parametrize("row", FORGED["forged"], ids=lambda row: row["without"])
def test_without_a_check_a_forged_proof_passes(row, monkeypatch):
    checked, point = case(row)
    with pytest.raises(Undecided):
        checked()
    for name in names_of(row):
        mutate(monkeypatch, name)
    checked()
    if normal.sign_at(parse(row["goal"]), point) == -1:  # the witness needs no other check
        with pytest.raises(Undecided, match="witness"):
            checked(balls.balls_of(point))


@pytest.mark.parametrize(
    "row", FORGED["weakened"], ids=lambda row: f"{row['function']} {row['old']}"
)
def test_without_a_condition_a_forged_proof_passes(row, monkeypatch):
    checked, point = case(row)
    with pytest.raises(Undecided):
        checked()
    fails = normal.sign_at(parse(row["goal"]), point) == -1
    module = MODULES[row["function"].split(".")[0]]
    install(monkeypatch, module, row["function"], changed(module, row["old"], row.get("new", "")))
    checked()
    if fails:
        with pytest.raises(Undecided, match="witness"):
            checked(balls.balls_of(point))


def changed(module, old, new):
    """Return the tree of a module with another text in one place."""
    source = inspect.getsource(module)
    assert source.count(old) == 1
    return ast.parse(source.replace(old, new))


@pytest.mark.parametrize("row", FORGED["evidence"], ids=lambda row: row["without"])
def test_without_a_check_forged_evidence_passes(row, monkeypatch):
    claim = standalone(line(row["claim"], "c"))
    evidence = {"witness": row["witness"], "proofs": coded(row["proofs"])}
    assert checker.refusal(claim, row["status"], evidence)
    mutate(monkeypatch, row["without"])
    assert checker.refusal(claim, row["status"], evidence) == ""


# Conditions of a point of the domain: each text is taken out, and a witness outside passes.
OUTSIDE = {
    "return whole and all(": ("return all(", {"n": "3/2", "x": "1"}),
    "claim.limits()": ("claim.facts()", {"n": "1", "x": "2"}),
    "sign == 1 or (sign == 0 and not strict) for": ("sign is not None for", {"n": "0", "x": "1"}),
}


@pytest.mark.parametrize("old", OUTSIDE)
def test_without_a_condition_a_witness_outside_passes(old, monkeypatch):
    new, witness = OUTSIDE[old]
    claim = resolved("values", "S <= S + 1")
    evidence = {"witness": witness, "proofs": coded([{"rule": "terms"}])}
    assert checker.refusal(claim, "PROVED", evidence) == "a witness in the domain."
    install(monkeypatch, checker, "checker.contains", changed(checker, old, new))
    assert checker.refusal(claim, "PROVED", evidence) == ""


def test_each_check_has_a_forged_proof_or_a_reason():
    forged = {name for row in (*FORGED["forged"], *FORGED["evidence"]) for name in names_of(row)}
    limits, repeated = {*FORGED["limits"]}, {*FORGED["repeated"]}
    assert not limits & forged
    assert not repeated & (forged | limits)
    assert forged | limits | repeated == STATEMENTS.keys()
