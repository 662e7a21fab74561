"""What a command shows while it works: a bar on a terminal, a line in a log, nothing at first."""

import io

import pytest

from dpcal import cli as door
from dpcal.commands.checking.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def drawn(stream, *, ended, done=0, **given):
    """Return what a command shows that has ended at the waits for which ``ended`` says so."""
    answers, waited = iter(ended), []

    def wait(event, seconds):
        waited.append(seconds)
        return next(answers)

    progress = Progress("train", stream=stream, wait=wait, clock=iter(range(0, 9000, 90)).__next__)
    progress.stage("training", **given)
    progress.update(done)
    with progress:
        pass
    assert waited == [2.0, 1.0, 1.0][: len(waited)]
    assert next(answers, None) is None
    return stream.getvalue()


def test_a_bar_is_drawn_again_and_erased(monkeypatch):
    for clock in ("time.time", "tqdm.std.time"):  # of the day, which only the bar reads
        monkeypatch.setattr(clock, lambda: 0.0)
    text = drawn(Terminal(), ended=[False, False, True], done=4, total=10, unit="step")
    assert "dpcal train: training, 4 of 10 steps  40%|" in text
    assert "[01:30<" in text
    assert "[03:00<" in text
    assert text.endswith(" \r")
    assert "dpcal train: training, 01:30" in drawn(Terminal(), ended=[False, True])


def test_a_log_has_one_plain_line():
    late = ", which takes more than 2 s ...\n"
    assert drawn(io.StringIO(), ended=[False]) == f"dpcal train: training{late}"
    units = drawn(io.StringIO(), ended=[False], done=4, total=10, unit="step")
    assert units == f"dpcal train: training, 4 of 10 steps{late}"
    # One that ends at once shows nothing.
    assert drawn(Terminal(), ended=[True]) == drawn(io.StringIO(), ended=[True]) == ""


@pytest.mark.parametrize("words", ["--json", ""])
def test_a_line_comes_with_an_answer_in_words_and_not_with_a_document(cli, monkeypatch, words):
    def late(name, **given):
        return Progress(name, wait=lambda event, seconds: False, **given)

    monkeypatch.setattr(door, "Progress", late)
    _, _, err = cli.run("optimizers dpsgd", words)
    assert err == ("" if words else "dpcal optimizers, which takes more than 2 s ...\n")
