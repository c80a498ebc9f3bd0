"""The command line of `uncork learn`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from uncork import __version__
from uncork.experiment.cli import Parser, run_command

EXAMPLES = """\
Examples:
  uncork learn demo -o records                               records of an experiment, made up
  uncork learn plan records/ -o learned --key "$(openssl rand -hex 16)"
  uncork learn apply learned                                 activate the latest version
  uncork learn explain learned 203.0.113.7
  uncork serve --policy learned/current/policy.toml --root public
  uncork learn run records/ -o learned --every 1h            plan and apply, again and again
"""
STATUSES = (
    "Exit status: 0 done; 1 a version cannot be recomputed; 2 wrong input; 3 a result cannot be written; 130 "
    "interrupted."
)

COMMANDS = (
    ("plan", "propose a version from records, and say what it would change"),
    ("run", "plan, check and apply, again and again, until it is ended"),
    ("apply", "activate a version"),
    ("rollback", "activate an earlier version again"),
    ("explain", "say why an address gets what it gets"),
    ("history", "list the versions, and what was done with them"),
    ("pin", "pin an entry to an arm from the next plan on, against the evidence"),
    ("freeze", "keep what an entry has; only guardrails still switch it off"),
    ("verify", "compute versions and rounds again from their inputs, and compare every byte"),
    ("report", "write a page: lift over time, shares, who gains, changes"),
    ("calibrate", "hold a twin's predictions to what was measured"),
    ("demo", "write records of an experiment, which are made up"),
)
"""Each command, and what it does. `options.py` has its options, `commands.py` runs it."""


def parser() -> Parser:
    """All commands."""
    top = Parser(
        prog="uncork learn",
        description="Which congestion control for which network: from experiments to a table that explains "
        "itself.",
        epilog=STATUSES,
    )
    top.examples = EXAMPLES
    top.add_argument("--version", action="version", version=f"uncork {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, about in COMMANDS:
        one = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        one.options, one.module, one.command = "uncork.learn.options", "uncork.learn.commands", name
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)

    def command() -> int:
        options = parser().parse_args(words)
        return int(options.command(options))

    return run_command(command)


if __name__ == "__main__":
    sys.exit(main())
