"""The command line: parsers, errors and exit statuses."""

from __future__ import annotations

import argparse
import contextvars
import importlib
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn

from uncork import __version__
from uncork.measure import console
from uncork.measure.errors import InputError, OutputError, not_installed

USAGE, OUTPUT, BUG, INTERRUPTED = 2, 3, 5, 130

Command = Callable[[argparse.Namespace, str], int]

EXAMPLES = {
    "": """\
Examples:
  uncork experiment demo --open                          a built-in example, made up, and its report
  uncork experiment analyze records/                     records of `uncork serve --records records/`
  uncork experiment analyze records/ --by country,asn    decide by country, then by network
  uncork experiment analyze records/ --follow            watch it come; stops when a guardrail breaks
  uncork experiment design records/                      how long, how large? From past records
  uncork experiment import access.log --mapping nginx -o records/
  uncork experiment interference --open                  when an A/B test lies, in five minutes
""",
    "analyze": """\
Examples:
  uncork experiment analyze records/
  uncork experiment analyze records/ --by region,asn,size_class -o report/
  uncork experiment analyze records/ --primary bandwidth:p10 --guardrail stutters=5% --look 2/4
  uncork experiment analyze access.log --mapping nginx --rejected rejected.jsonl
  uncork experiment analyze records/ --follow --every 60
  uncork experiment analyze --show-sql trino
""",
    "demo": """\
Examples:
  uncork experiment demo --open
  uncork experiment demo --seed 2 -o another
""",
    "design": """\
Examples:
  uncork experiment design records/                      how long, how large? From past records
  uncork experiment design records/ --detect 3% --share 20%
  uncork experiment design -o plan/ --key "$(openssl rand -hex 16)" --share 10%
  uncork experiment design -o plan/ --key "$(openssl rand -hex 16)" --kind switchback --places lima
""",
    "policy": """\
Examples:
  uncork experiment policy report/result.json --key "$(openssl rand -hex 16)" -o policy.toml
  uncork experiment policy report/result.json --key KEY --step 10% -o policy.toml     the next step
  uncork experiment policy report/result.json --key KEY --control tcp=cubic --treated quic=bbr3,tcp=bbr
""",
    "gate": """\
Examples:
  uncork experiment gate report/result.json --version 7 -o verdict.json
  uncork fleet publish /srv/fleet --key fleet.key --stop-if verdict.json
""",
    "import": """\
Examples:
  uncork experiment import access.log --mapping nginx -o records/
  uncork experiment import logs/*.gz --mapping my-logs.toml -o records/ --rejected rejected.jsonl
""",
    "export": """\
Examples:
  uncork experiment export growthbook records/ -o growthbook/ --datasource ds_abc123
""",
    "growthbook": """\
Examples:
  uncork experiment export growthbook records/ -o growthbook/ --datasource ds_abc123
""",
    "interference": """\
Examples:
  uncork experiment interference --open
  uncork experiment interference --seed 7 --format json
  uncork experiment interference --lab --open            simulated users that share links
  uncork experiment interference --lab --repetitions 200
""",
}

COMMANDS = (
    ("analyze", "analyze", "analyse records: scorecard, result.json and report.html"),
    ("demo", "analyze", "analyse a built-in example, which is made up"),
    ("design", "design", "plan an experiment, and write the files that activate it"),
    ("policy", "policy", "write the policy that a verdict says, for a rollout in steps"),
    ("gate", "gate", "stop a version of a fleet's policy, or let it go on, as a verdict says"),
    ("import", "others", "turn logs into records"),
    ("interference", "others", "show when an A/B test lies, and which designs do not"),
)
"""Each command, the modules with its options and with what runs it, and what it does."""

STATUSES = (
    "Exit status: 0 done; 1 harm is proven, over all clients or in a cell; 2 wrong input; 3 a result cannot "
    "be written; 4 these records give no verdict; 130 interrupted. A reader of stdout that leaves early "
    "(| head -1) changes none of them."
)


class Once(argparse._StoreAction):
    """An option with one value: named twice, the first one would be lost without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given = vars(namespace).setdefault("_given", set())
        if option_string is not None and self.dest in given:
            parser.error(f"{option_string}: given more than once; it has one value")
        given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Help begins with examples; errors say where to look."""

    examples = ""
    options, module = "", ""
    """The modules with the command's options, and with what runs it. Each is imported where it is needed,
    because the engines take a second."""
    command = ""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for name in (None, "store"):
            self.register("action", name, Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.options:
            self.load()
        return super().parse_known_args(args, namespace)

    def load(self) -> None:
        """Adds the options of the command, and what runs it."""
        getattr(importlib.import_module(self.options), f"add_{self.command}")(self)
        self.set_defaults(command=partial(_run, self.module, f"run_{self.command}"))
        self.options = ""

    def format_help(self) -> str:
        return f"{self.examples}\n{super().format_help()}" if self.examples else super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help goes to stdout, errors to stderr. They quote the arguments."""
        if file is None or file is sys.stderr:  # noqa: TID251
            console.note(message.removesuffix("\n"))
        else:
            console.text(message)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"error: {message}\nhelp: {_nearest(message)}{self.prog} --help\n")


def _run(module: str, name: str, *arguments: Any) -> int:
    return int(getattr(importlib.import_module(module), name)(*arguments))


def _nearest(message: str) -> str:
    """The command that a message of argparse about an unknown one may mean."""
    wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
    near = get_close_matches(wrong[1], re.findall(r"[\w-]+", wrong[2]), 1) if wrong else []
    return f"did you mean {near[0]}? " if near else ""


def parser() -> Parser:
    """All commands."""
    top = Parser(
        prog="uncork experiment",
        description="Did it help, for whom, and can the answer be trusted? A/B experiments of congestion "
        "control, from "
        "flow records to a verdict.",
        epilog=STATUSES,
    )
    top.examples = EXAMPLES[""]
    top.add_argument("--version", action="version", version=f"uncork {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module, about in COMMANDS:
        _add(commands, name, module, about)
    exports = _add(commands, "export", "", "write what other tools read")
    targets = exports.add_subparsers(title="targets", metavar="TARGET", required=True)
    _add(targets, "growthbook", "others", "tables and definitions for GrowthBook")
    return top


def _add(commands: argparse._SubParsersAction[Parser], name: str, module: str, about: str) -> Parser:
    one = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    one.examples = EXAMPLES.get(name, "")
    if module:
        package = "uncork.experiment"
        one.options, one.module = f"{package}.options.{module}", f"{package}.commands.{module}"
    one.command = name
    return one


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)

    def command() -> int:
        options = parser().parse_args(words)
        return int(options.command(options, shlex.join(["uncork", "experiment", *words])))

    # Metrics that the records declare end with the command.
    return contextvars.copy_context().run(run_command, command)


def run_command(command: Callable[[], int]) -> int:
    """The command's exit status; that of an error, which is printed."""
    try:
        return command()
    except SystemExit:
        # Of --help: it needs no engine.
        raise
    except OutputError as error:
        return _failed(str(error), OUTPUT)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except InputError as error:
        return _failed(str(error), USAGE)
    except ModuleNotFoundError as error:
        # The program needs no other package.
        return _failed(str(not_installed(error)), USAGE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _failed(f"{place}{error.strerror or error}", USAGE)
    except _engine_errors() as error:
        if type(error).__name__ == "InterruptException":
            return _failed("interrupted", INTERRUPTED)
        return _failed(f"records: {str(error).splitlines()[0]}{_remedy(error)}", USAGE)
    except Exception as error:
        # Python's own status 1 would say that harm is proven.
        console.note(traceback.format_exc().rstrip())
        return _failed(f"a bug of uncork: {type(error).__name__}; report it with the command", BUG)


def _remedy(error: Exception) -> str:
    """What to do about an engine's error, by its kind."""
    remedies = {
        "OutOfMemoryException": "allow more with --memory, or read fewer records with --where or --since",
        "ConversionException": "correct the value, or leave its records out with --exclude",
    }
    found = remedies.get(type(error).__name__)
    return f"; {found}" if found else ""


def _engine_errors() -> tuple[type[Exception], ...]:
    """What the engines raise for files that they cannot read."""
    import duckdb
    import pyarrow as pa

    return duckdb.Error, pa.ArrowException


def _failed(message: str, status: int) -> int:
    console.note(f"error: {message}")
    return status


if __name__ == "__main__":
    sys.exit(main())
