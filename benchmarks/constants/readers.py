"""Where constants are assigned, and which functions read them."""

import ast
import importlib.util
from pathlib import Path

# The prover of claims has its own tests, and its constants change no bound and no plan.
LEFT_OUT = "calibrate/papers"
PACKAGES = ("accountants", "calibrate")


def sources():
    """Return the parsed modules of the package by name, with their paths."""
    root = Path(importlib.util.find_spec("dpcal").origin).parent
    found = {}
    for package in PACKAGES:
        start = root / package
        for path in sorted(start.rglob("*.py")):
            if path.is_relative_to(root / LEFT_OUT):
                continue
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(("dpcal", *parts)).removesuffix(".__init__")
            found[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return found


def assigned(tree):
    """Return the upper-case names that a module assigns, and the names in their values."""
    found = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name) and each.id.lstrip("_").isupper():
                    found[each.id] = names_in(node.value)
    return found


def names_in(node):
    """Return the names and attributes that a piece of code reads."""
    inner = list(ast.walk(node))
    return {n.id for n in inner if isinstance(n, ast.Name)} | {
        n.attr for n in inner if isinstance(n, ast.Attribute)
    }


def readers(modules):
    """Return for each (module, constant) the functions that read it, as (file, first line).

    A name is followed through the constants that are derived from it: a private one in its module,
    which alone may read it, a public one in whatever module. A class that reads a name in its body
    counts with all of its methods. A name that no function reads by itself, as one that a field's
    default is made of, counts with all functions of its module.
    """
    alone = {module: uses([source]) for module, source in modules.items()}
    everywhere = uses(modules.values())
    found = {}
    for module, (_, tree) in modules.items():
        for name in assigned(tree):
            private = name.startswith("_")
            derived, read = alone[module] if private else everywhere
            places = [read.get(each, set()) for each in closure(name, derived)]
            if private:
                outside = {each for each in closure(name, derived) if not each.startswith("_")}
                for public in outside:
                    places += [
                        everywhere[1].get(each, set()) for each in closure(public, everywhere[0])
                    ]
            found[module, name] = set().union(*places) or functions(*modules[module])
    return found


def functions(path, tree):
    """Return all functions of a module, as (file, first line)."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {(str(path), first_line(node)) for node in nodes}


def uses(sources):
    """Return which constants are derived from each name, and which functions read it."""
    derived, read = {}, {}
    for path, tree in sources:
        for name, used in assigned(tree).items():
            for each in used:
                derived.setdefault(each, set()).add(name)
        for names, places in readings(str(path), tree):
            for name in names:
                read.setdefault(name, set()).update(places)
    return derived, read


def readings(path, tree):
    """Yield the names that each function or class body reads, and the functions that count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield names_in(node), {(path, first_line(node))}
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            for each in node.body:
                if each not in methods:
                    yield names_in(each), {(path, first_line(method)) for method in methods}


def first_line(node):
    """Return the line of a function's first decorator, or of its name, as its code object does."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def closure(name, derived):
    """Return a name and all names that are derived from it."""
    reached, left = set(), [name]
    while left:
        here = left.pop()
        if here not in reached:
            reached.add(here)
            left += derived.get(here, ())
    return reached
