"""`python -m uncork`. As `uncork-python`, the program starts it for `experiment` and `learn`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Runs a command of `uncork`. Only those written in Python come back from it."""
    words = sys.argv[1:]
    if words[:1] == ["experiment"]:
        from uncork.experiment import cli as experiment

        return experiment.main(words[1:])
    if words[:1] == ["learn"]:
        from uncork.learn import cli as learn

        return learn.main(words[1:])
    from uncork.experiment.cli import run_command
    from uncork.program import find_bin

    return run_command(lambda: os.execv(find_bin(), ["uncork", *words]))


if __name__ == "__main__":
    sys.exit(main())
