"""Every public name is found, and is listed by ``dir``."""

import importlib

import pytest

FOLDERS = ("accountants", "calibrate", "estimators", "optim", "plot", "report")


@pytest.mark.parametrize("package", ["dpcal", *(f"dpcal.{name}" for name in FOLDERS)])
def test_dir_lists_every_public_name_and_each_is_found(package):
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        if name != "__version__":  # known to installed packages alone
            getattr(module, name)
    assert len(set(module.__all__)) == len(module.__all__)
