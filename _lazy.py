"""Names of a package that are imported when they are first used.

What is slow to import stays out of ``import``, and ``dir`` lists it nevertheless.

>>> homes = {"errors": "dpcal.errors", "Delta": "dpcal.accountants.answers"}
>>> find, names = attributes("dpcal", homes)
>>> find("errors").__name__, find("Delta").__name__
('dpcal.errors', 'Delta')
>>> names() == sorted(__import__("dpcal").__all__)
True
>>> find("rooms")
Traceback (most recent call last):
    ...
AttributeError: module 'dpcal' has no attribute 'rooms'
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["attributes"]


def attributes(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Parameters
    ----------
    package
        The package's name; its ``__all__`` is what ``dir`` lists.
    homes
        For each name that is imported when it is first used, the module that it is in. A module of
        that name that holds no such attribute is itself the value.

    Returns
    -------
    tuple of two callables
        To be named ``__getattr__`` and ``__dir__`` in the package (PEP 562).
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(homes[name])
        if homes[name].endswith(f".{name}"):
            return getattr(module, name, module)
        return getattr(module, name)

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return find, names
