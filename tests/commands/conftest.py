"""A fixture for runs of commands whose pictures are not what is tested."""

import pytest

from dpcal.commands.training import fitting
from dpcal.commands.training.documents import add_pages


@pytest.fixture
def without_pictures(monkeypatch):
    """Let reports of ``dpcal train`` have no pictures, which take longer than a small run does."""

    def pages(folder, document, pictures):
        add_pages(folder, document, {})

    monkeypatch.setattr(fitting, "add_pages", pages)
