"""Names of a package that are imported when they are first used.

A package lists its public names once, in the block ``if TYPE_CHECKING`` of its ``__init__.py``,
each with the module that it is from. Type checkers read the block; :func:`attach` reads it for
everybody else, so that ``import`` loads no module before one of its names is used, and ``dir``
lists them all.

>>> import dpcal
>>> "epsilon" in dir(dpcal), dpcal.epsilon.__module__
(True, 'dpcal.accountants.interface')
>>> dpcal.rooms
Traceback (most recent call last):
    ...
AttributeError: module 'dpcal' has no attribute 'rooms'
"""

import ast
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

_NONE: Mapping[str, str] = MappingProxyType({})


def attach(
    package: str, former: Mapping[str, str] = _NONE
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the ``__getattr__``, the ``__dir__`` and the ``__all__`` of a package.

    Parameters
    ----------
    package
        The package's name. In its ``__init__.py`` a block ``if TYPE_CHECKING`` consists of
        statements ``from module import name as name``.
    former
        Former names and the names that replace them: a former name is found, with a
        DeprecationWarning, and is not listed.

    Returns
    -------
    tuple
        To be named ``__getattr__``, ``__dir__`` and ``__all__`` in the package (PEP 562).
    """
    spec: Any = sys.modules[package].__spec__
    (block,) = (
        node
        for node in ast.parse(spec.loader.get_data(spec.origin)).body
        if isinstance(node, ast.If)
    )
    homes = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    find, names = attributes(package, homes)

    def find_former(name: str) -> Any:
        if name not in former:
            return find(name)
        message = f"{package}.{name} is now {package}.{former[name]}."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return find(former[name])

    return find_former if former else find, names, names()


def attributes(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Parameters
    ----------
    package
        The package's name.
    homes
        For each name, the module that holds it. A name is a module if its home is the package
        itself, or a module of that name without such an attribute.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home == package:
            value = import_module(f"{package}.{name}")
        else:
            module = import_module(home)
            is_module = home.endswith(f".{name}") and not hasattr(module, name)
            value = module if is_module else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes)


class Module:
    """A module that is imported when one of its names is first used.

    >>> math = Module("math")
    >>> math.sqrt(4.0)
    2.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


fft = Module("scipy.fft")
special = Module("scipy.special")
