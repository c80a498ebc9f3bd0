"""The built-in example, run once for all tests."""

from __future__ import annotations

import atexit
import io
import shutil
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

from uncork.experiment.cli import main

SCALE = "0.4"


@cache
def demo() -> Path:
    """A directory with records/, result.json and report.html. The end of the tests removes it."""
    directory = Path(tempfile.mkdtemp(prefix="uncork-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    command = ["demo", "--scale", SCALE, "--records", str(directory / "records"), "-o", str(directory)]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert main(command) == 0
    return directory
