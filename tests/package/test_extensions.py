"""The package that a page shows is built, found by its entry point, and passes its own tests."""

import re
import subprocess
import sys

import pytest
from _tree import ROOT

PAGE = (ROOT / "docs" / "how_to" / "own_mechanism.md").read_text()
FILES = dict(re.findall(r"```\w+\n# ([\w.]+)\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.slow
def test_the_package_of_the_page_is_built_and_passes_its_tests(tmp_path):
    assert set(FILES) == {"pyproject.toml", "three_answers.py", "dropout.py", "test_package.py"}
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text(
        # The package is not on an index, and is installed already.
        FILES["pyproject.toml"].replace('dependencies = ["dpcal"]\n', "")
    )
    build = "import setuptools.build_meta as backend; backend.build_editable('.')"
    run = {"cwd": tmp_path, "check": True, "capture_output": True, "text": True}
    subprocess.run([sys.executable, "-c", build], **run)
    (wheel,) = tmp_path.glob("*.whl")
    script = (
        f"import sys; sys.path.insert(0, {str(wheel)!r}); import pytest;"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '.']))"
    )
    done = subprocess.run([sys.executable, "-c", script], **run)
    assert "3 passed" in done.stdout
