"""Build script: maps the repository root to the package ``dpcal`` and compiles its kernels.

Everything declarative is in ``pyproject.toml``. Environment variables:

``DPCAL_NATIVE=1``
    Compile for this machine's processor (``-march=native``). The result may not run elsewhere.
``DPCAL_BOUNDSCHECK=1``
    Compile with bounds checks, for running the tests against checked kernels.
``DPCAL_BASELINE=1``
    Compile without the wider registers that a processor may have, for tests of what others compute.
``DPCAL_TRACE=1``
    Compile with the hooks that count which lines of a kernel run (``make coverage``); slow.
``DPCAL_OPTIMISE=0``
    Compile without optimisation: several times faster to build and slower to run, for tests of the
    package's contents.

Kernels are translated and compiled side by side, on all processors.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOMS = (
    "_ext",
    "_internal",
    "accountants",
    "adapters",
    "calibrate",
    "commands",
    "estimators",
    "optim",
    "plot",
    "report",
    "tables",
)
PACKAGES = ["dpcal"] + [
    f"dpcal.{name}" for name in find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])
]


class BuildPackageOnly(build_py):
    """Leave the build script, which sits in the package's root folder, out of the package."""

    def find_package_modules(self, package, package_dir):
        modules = super().find_package_modules(package, package_dir)
        return [row for row in modules if row[:2] != ("dpcal", "setup")]


class BuildInParallel(build_ext):
    """Compile several kernels at once, unless the user says how many."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


def declarations_root():
    """Return a folder where Cython finds ``dpcal/_ext/*.pxd``, whatever the root is called."""
    root = Path("build/declarations")
    folder = root / "dpcal" / "_ext"
    shutil.rmtree(root, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.pxd").touch()
    for source in Path("_ext").glob("*.pxd"):
        shutil.copy2(source, folder)
    return str(root)


HEADERS = {
    "question": [f"_ext/{name}.h" for name in ("contour", "law", "loops", "vector")],
    "discrete": ["_ext/search.h", "_ext/vector.h"],
    "gradients": ["_ext/rows.h"],
    "losses": ["_ext/rows.h"],
    "samples": ["_ext/gaps.h"],
    "answers": ["_ext/gaps.h"],
    "loops": ["_ext/gaps.h"],
    "sums": ["_ext/steps.h"],
}


def compiled_modules():
    """One extension for each ``_ext/*.pyx``."""
    numpy_root = Path(numpy.__file__).parent
    link_random = {
        "library_dirs": [str(numpy_root / "random" / "lib"), str(numpy_root / "_core" / "lib")],
        "libraries": ["npyrandom", "npymath"] + ([] if sys.platform == "win32" else ["m"]),
    }
    # Products are not fused into sums, so that sums come out the same on every processor.
    level = "-O0" if os.environ.get("DPCAL_OPTIMISE") == "0" else "-O3"
    unix = [level, "-g0", "-fno-math-errno", "-ffp-contract=off", "-Wno-unused-function"]
    optimise = ["/O2"] if sys.platform == "win32" else unix
    if os.environ.get("DPCAL_NATIVE") == "1" and sys.platform != "win32":
        optimise.append("-march=native")
    checked = os.environ.get("DPCAL_BOUNDSCHECK") == "1"
    traced = os.environ.get("DPCAL_TRACE") == "1"
    macros = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]
    macros += [("DPCAL_BASELINE", "1")] if os.environ.get("DPCAL_BASELINE") == "1" else []
    macros += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")] if traced else []
    extensions = [
        Extension(
            f"dpcal._ext.{source.stem}",
            [source.as_posix()],
            include_dirs=[numpy.get_include(), "_ext"],
            depends=HEADERS.get(source.stem, []),
            define_macros=macros,
            extra_compile_args=optimise,
            **link_random,
        )
        for source in sorted(Path("_ext").glob("*.pyx"))
    ]
    # Memory views are compiled once, in a kernel of their own which the others import.
    shared = Extension("dpcal._ext._shared", ["_ext/_shared.c"], extra_compile_args=optimise)
    built = cythonize(
        [*extensions, shared],
        shared_utility_qualified_name=shared.name,
        build_dir="build/cython",
        # Elsewhere worker processes would run this script again.
        nthreads=(os.cpu_count() or 1) if sys.platform == "linux" else 0,
        include_path=[declarations_root()],
        compiler_directives={
            "language_level": "3",
            "boundscheck": checked,
            "wraparound": False,
            "initializedcheck": checked,
            "cdivision": True,
            "embedsignature": True,
            # No kernel keeps state between calls, and sums of one objective hold a lock
            # (tests/contracts/test_threads.py).
            "freethreading_compatible": True,
            "linetrace": traced,
        },
    )
    if traced:
        # Cython's plugin of coverage looks for the translation of a kernel beside its source.
        for translated in Path("build/cython/_ext").glob("*.c"):
            shutil.copy2(translated, "_ext")
    return built


# A source distribution and the metadata of a wheel take no kernels.
WITHOUT_KERNELS = {"dist_info", "egg_info", "sdist"}

setup(
    packages=PACKAGES,
    package_dir={"dpcal": "."},
    package_data={
        "": ["*.pyi"],
        "dpcal.calibrate.papers": ["*/*.txt"],
        "dpcal.report": ["templates/*"],
        "dpcal": ["py.typed"],
        "dpcal._ext": ["*.pxd", "*.h"],
    },
    exclude_package_data={"dpcal": ["setup.py"]},
    ext_modules=[] if WITHOUT_KERNELS & set(sys.argv) else compiled_modules(),
    cmdclass={"build_ext": BuildInParallel, "build_py": BuildPackageOnly},
)
