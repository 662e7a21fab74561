"""Tests draw the same numbers in every run, and a worker keeps to one processor.

Property tests repeat their examples. What the product draws from the operating system, for runs
without a seed, is drawn from a stream that belongs to the test: an outcome that chance decides is
the same each time, and a test that passes goes on passing. Processes that
a test starts draw afresh.

Linear algebra on several threads would wait for processors that other workers use: small products
then take fifty times as long.

A test function whose cases together take more than half a second of processor time is marked
``slow``, and ``make quick`` leaves it out. ``make marks`` (the option ``--marks``) runs the tests
and lists the functions whose mark is missing or needless. A time depends on the machine and on
what ran before, so that only those are listed that are twice as slow, or twice as quick, as that.
The first test that needs the six papers or the graph of modules pays for loading them; it may be
listed and needs no mark.
"""

import contextlib
import contextvars
import functools
import gc
import io
import json
import os
import random
import secrets
import shlex
import tempfile
import threading
from collections import defaultdict

import pytest
from _installed import installed, source_distribution, wheel
from hypothesis import HealthCheck, settings

__all__ = ["drawn_again", "installed", "replays", "source_distribution", "wheel"]

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Commands that a test runs read and write no verdicts of the person who runs the tests.
_CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _CACHE.name

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def replays(request):
    """Let tests run the same seed, plan and records again; what is tested is mostly that."""
    # Imported here, for numpy must not be imported before the number of its threads is set.
    from dpcal.optim import replaying

    if "same_noise_is_refused" in request.node.name or "boundary.seeds" in request.node.name:
        yield
        return
    # Threads do not inherit it; those that a test starts are part of the test.
    start = threading.Thread.start

    def inherit(thread):
        thread.run = functools.partial(contextvars.copy_context().run, thread.run)
        start(thread)

    with replaying(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", inherit)
        yield


def words_of(line):
    """Return the words of a text as a shell reads it, those of a list, or a path as one word."""
    if isinstance(line, list):
        return line
    return shlex.split(line) if isinstance(line, str) else [str(line)]


class Commands:
    """Runs commands whose line is put together of texts, paths and lists of words."""

    def run(self, *parts):
        """Return the exit status, what was printed, and what standard error shows."""
        from dpcal.commands.cli import main

        line = [word for part in parts for word in words_of(part)]
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            try:
                status = main(line)
            except SystemExit as ended:  # a help text
                status = ended.code or 0
        return status, out.getvalue(), err.getvalue()

    def __call__(self, *parts, status=0):
        """Return what a command prints."""
        found, out, err = self.run(*parts)
        assert found == status, (parts, out, err)
        return out

    def json(self, *parts, status=0):
        """Return the document that a command prints."""
        return json.loads(self(*parts, "--json", status=status), parse_constant=pytest.fail)

    def refused(self, *parts):
        """Return the one sentence that refuses a command line."""
        status, out, err = self.run(*parts)
        assert (status, out, err.count("\n")) == (2, "", 1), (parts, out, err)
        assert err.startswith("dpcal: "), err
        assert err.endswith((".\n", "?\n")), err
        return err.removeprefix("dpcal: ").rstrip("\n")


@pytest.fixture(scope="session")
def cli():
    """Return what runs command lines."""
    return Commands()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Let what tests share be made again: a worker that takes tests over makes it a second time."""
    if fixturedef.scope == "function":
        return (yield)
    from dpcal.optim import replaying

    with replaying():
        return (yield)


@pytest.fixture(autouse=True)
def drawn_again(request, monkeypatch):
    """Draw entropy that is the same in every run of a test, from its name."""
    stream, home, fresh = random.Random(request.node.nodeid), os.getpid(), secrets.token_bytes

    def draw(count):
        # A fork would draw what its parent draws, which no two processes do.
        return stream.randbytes(count) if os.getpid() == home else fresh(count)

    monkeypatch.setattr(secrets, "token_bytes", draw)
    monkeypatch.setattr(secrets, "token_hex", lambda count: draw(count).hex())


def pytest_collection_finish():
    """Leave thousands of collected tests out of searches for garbage, and make those rarer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


SLOW = 0.5  # seconds of processor time of all cases of a test function; marks depend on it
SPENT = "seconds of processor time"


def processor():
    """Return the seconds of processor time that this worker and its children have taken."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Add the time that a test takes to what its reports say."""
    start = processor()
    try:
        return (yield)
    finally:
        item.user_properties.append((SPENT, processor() - start))


# And that of the fixtures that a test is the first to use.
pytest_runtest_setup = pytest_runtest_call


def pytest_addoption(parser):
    """Let marks be compared with measured times."""
    parser.addoption(
        "--marks", action="store_true", help="list tests whose mark `slow` is missing or needless"
    )


def pytest_terminal_summary(terminalreporter, config):
    """List the functions whose mark disagrees with the time that their cases took."""
    if not config.getoption("--marks"):
        return
    spent, marked = defaultdict(float), set()
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        if report.when == "call":
            name = report.nodeid.partition("[")[0]
            spent[name] += sum(time for key, time in report.user_properties if key == SPENT)
            if "slow" in report.keywords:
                marked.add(name)
    missing = [name for name in spent if name not in marked and spent[name] > 2 * SLOW]
    needless = [name for name in marked if spent[name] < SLOW / 2]
    for title, names in (("missing", missing), ("needless", needless)):
        terminalreporter.section(f"the mark slow is {title}")
        for name in sorted(names, key=spent.__getitem__, reverse=True):
            terminalreporter.write_line(f"{spent[name]:7.2f} s  {name}")
