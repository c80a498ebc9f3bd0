"""Holds docs/reference/cli-python.md to the parsers. With UPDATE_DOCS=1 it writes the page."""

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from uncork.experiment import cli
from uncork.learn import cli as learn

PAGE = Path(__file__).parents[3] / "docs/reference/cli-python.md"
HEAD = """\
# experiment and learn

Every command of `uncork experiment` and `uncork learn`, with its options. This page is generated from the
program; `uncork experiment COMMAND --help` prints the same. See also [exit statuses](exit-statuses.md).
"""


def escaped(text: str) -> str:
    """Text on one line of a table."""
    return re.sub(r"([|<*_])", r"\\\1", " ".join(text.split()))


def row(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    value = action.metavar if action.option_strings and action.nargs != 0 else None
    if isinstance(value, str):
        names += f" {value}"
    if action.choices and action.option_strings and value is None and action.nargs != 0:
        names += f" {{{','.join(map(str, action.choices))}}}"
    text = (action.help or "") % vars(action) if "%" in (action.help or "") else action.help or ""
    stated = re.search(r"\s*\[default: (.*)\]$", text)
    has_default = action.default not in (None, False, argparse.SUPPRESS, [], ()) and action.nargs != 0
    default = stated[1] if stated else f"`{action.default}`" if has_default else ""
    text = text[: stated.start()] if stated else text
    names = names.replace("|", "\\|")
    return f"| `{names}` | {escaped(default)} | {escaped(text)} |"


def loaded(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser with the options of its command, which are added when they are needed."""
    if isinstance(parser, cli.Parser) and parser.options:
        parser.load()
    return parser


def sections(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    actions = loaded(parser)._actions
    yield f"\n## {name}\n\n{escaped(parser.description or '')}\n"
    if getattr(parser, "examples", ""):
        lines = [it.strip() for it in parser.examples.splitlines()[1:]]  # type: ignore[attr-defined]
        yield "\n```sh\n" + "\n".join(lines) + "\n```\n"
    options = [it for it in actions if not isinstance(it, argparse._HelpAction | argparse._SubParsersAction)]
    options = [it for it in options if it.help != argparse.SUPPRESS]
    if options:
        yield "\n| option | default | meaning |\n|---|---|---|\n" + "\n".join(map(row, options)) + "\n"
    if parser.epilog:
        yield f"\n{escaped(parser.epilog)}\n"
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, child in action.choices.items():
                yield from sections(child, f"{name} {command}")


def rendered() -> str:
    return HEAD + "".join(
        [*sections(cli.parser(), "uncork experiment"), *sections(learn.parser(), "uncork learn")]
    )


def test_the_reference_is_current() -> None:
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(rendered(), encoding="utf-8")
    if not PAGE.exists():
        pytest.skip(f"*** NOT RUN: {PAGE} is only in the repository ***")
    assert PAGE.read_text(encoding="utf-8") == rendered(), (
        "run UPDATE_DOCS=1 pytest tests/test_cli_reference.py"
    )
