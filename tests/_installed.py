"""dpcal as users have it: a wheel of this tree, installed where nothing else of the tree is found.

Three fixtures that every test may ask for (``conftest.py`` names them). They are made once in a
session: workers side by side wait for the one that builds.

* ``source_distribution`` and ``wheel``: the paths of both; the wheel is built from the former.
* ``installed``: an :class:`Environment` with that wheel and every package of the environment that
  runs the tests, so that nothing is downloaded. Its dpcal comes from the wheel alone.

A test that asks for either is marked as slow, and runs commands or Python in a folder of its own::

    @pytest.mark.slow
    def test_something(installed, tmp_path):
        assert installed.dpcal("epsilon", ..., cwd=tmp_path).returncode == 0
        text = installed.python("-c", "import dpcal; ...", cwd=tmp_path).stdout

``Environment.create(folder, wheel, leave_out=("polars",))`` makes another one, without packages.
"""

import dataclasses
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from contextlib import contextmanager
from pathlib import Path

import pytest
from _tree import ROOT


def _run(*words, check=True, **options):
    """Run a program that finds no tree by itself, and return the process when it has ended."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, env=variables, **options
    )
    if check and done.returncode:
        pytest.fail(f"{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


@dataclasses.dataclass(frozen=True)
class Environment:
    """A virtual environment with a wheel of dpcal."""

    folder: Path

    @classmethod
    def create(cls, folder, wheel, *, leave_out=()):
        """Make one in a new folder, with all packages that are here but those left out.

        Parameters
        ----------
        folder, wheel
            Where the environment goes, and what is installed in it.
        leave_out
            Names of packages as they are imported.
        """
        venv.create(folder, with_pip=False)
        new = cls(folder)
        pip = ("-m", "pip", "--python", new.program("python"), "--disable-pip-version-check")
        _run(sys.executable, *pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
        # Path files of a folder that a path file names are not read: editable installs stay behind.
        packages = folder / "packages"
        packages.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            name = path.name.split("-")[0].split(".")[0]
            if name not in {"dpcal", "__pycache__", *leave_out} and path.suffix != ".pth":
                (packages / path.name).symlink_to(path)
        (new.site / "packages.pth").write_text(f"{packages}\n")
        return new

    def program(self, name):
        """Return the path of a program."""
        return self.folder / "bin" / name

    @property
    def site(self):
        """Where the wheel's files are."""
        return next(self.folder.glob("lib/python*/site-packages"))

    def python(self, *words, cwd, check=True):
        """Run the interpreter; a failure fails the test unless ``check`` is False."""
        return _run(self.program("python"), *words, cwd=cwd, check=check)

    def dpcal(self, *words, cwd, check=True):
        """Run the command line as a shell would find it."""
        return _run(self.program("dpcal"), *words, cwd=cwd, check=check)


@contextmanager
def once(tmp_path_factory, name):
    """Yield a folder that all workers share, one of them at a time."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield root / name


def _copy_of_the_tree(folder):
    """Copy what the repository holds, and what was compiled of it, with the times of all files.

    Kernels that are older than their source are compiled again, as in any build. Others would be
    too, for Cython compares them with files of its own, which may have been installed later.
    """
    listed = _run(
        *("git", "ls-files", "--cached", "--others", "--exclude-standard"), cwd=ROOT, check=False
    )
    if listed.returncode:
        pytest.skip("not a git working tree")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    if (ROOT / "build" / "cython").is_dir():
        shutil.copytree(ROOT / "build" / "cython", folder / "build" / "cython")
    import dpcal._ext.loops

    built = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    kernels = folder / "build" / built / "dpcal" / "_ext"
    kernels.mkdir(parents=True)
    sources = [*(folder / "_ext").glob("*.p*"), *(folder / "_ext").glob("*.h")]
    newest = max(path.stat().st_mtime for path in sources)
    for path in Path(dpcal._ext.loops.__file__).parent.glob("*.so"):
        name, kernel = path.name.split(".")[0], Path(shutil.copy2(path, kernels))
        if kernel.stat().st_mtime > newest:
            (folder / "build" / "cython" / "_ext" / f"{name}.c").touch()
            kernel.touch()


def _built(tmp_path_factory, pattern):
    """Return a source distribution of a copy of the tree, or the wheel that is built from it.

    Building in place would disturb the editable install.
    """
    with once(tmp_path_factory, "wheel") as folder:
        if not folder.exists():
            source, unpacked = folder / "any name", folder / "unpacked"
            source.mkdir(parents=True)
            _copy_of_the_tree(source)
            words = ("-m", "build", "--no-isolation", "--outdir", folder)
            _run(sys.executable, *words, "--sdist", source, cwd=folder)
            shutil.unpack_archive(next(folder.glob("*.tar.gz")), unpacked, filter="data")
            (tree,) = unpacked.iterdir()
            shutil.move(source / "build", tree / "build")
            _run(sys.executable, *words, "--wheel", tree, cwd=folder)
            shutil.rmtree(source)
            shutil.rmtree(unpacked)
        (path,) = folder.glob(pattern)
        return path


@pytest.fixture(scope="session")
def source_distribution(tmp_path_factory):
    """The source distribution of a copy of the tree."""
    return _built(tmp_path_factory, "*.tar.gz")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel that is built from the source distribution alone, and from nothing else."""
    return _built(tmp_path_factory, "*.whl")


@pytest.fixture(scope="session")
def installed(tmp_path_factory, wheel):
    """An environment that holds the wheel, and of the tree nothing else."""
    with once(tmp_path_factory, "environment") as folder:
        if not folder.exists():
            return Environment.create(folder, wheel)
        return Environment(folder)
