"""Every public name is found and listed, and none hides a module of its package."""

import importlib

import pytest
from _modules import names_imported, paths
from _tree import ROOT

PACKAGES = sorted(
    ".".join(("dpcal", *stub.parent.relative_to(ROOT).parts))
    for stub in ROOT.rglob("__init__.pyi")
    if not {"build", ".venv"} & set(stub.parts)
)


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_lists_every_public_name_and_each_is_found(package):
    module = importlib.import_module(package)
    assert module.__all__
    assert dir(module) == sorted(module.__all__)
    for name in module.__all__:
        if package != "dpcal.adapters":  # these stand on packages of extras
            getattr(module, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_hides_a_module(package):
    stub = ROOT.joinpath(*package.split(".")[1:], "__init__.pyi").read_text()
    taken = [
        f"{package}.{name}"
        for module, name in names_imported(stub)
        if module != package and f"{package}.{name}" in paths()
    ]
    assert taken == []


def test_every_package_lists_its_names():
    """In its stub, or in ``__all__``, which is empty where a folder only holds modules."""
    bare = [
        name
        for name, path in paths().items()
        if path.name == "__init__.py"
        and not path.with_suffix(".pyi").exists()
        and "__all__" not in path.read_text()
    ]
    assert bare == []
