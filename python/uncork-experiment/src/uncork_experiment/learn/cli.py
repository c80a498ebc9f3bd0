"""The command line of `uncork learn`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from uncork_experiment import measures
from uncork_experiment.cli import Parser, run_command
from uncork_experiment.commands.common import Progress, add_reading, instant, read_records, share
from uncork_experiment.commands.design import connection_settings
from uncork_experiment.document import package_version
from uncork_experiment.errors import InputError
from uncork_experiment.keys import DAY_NS
from uncork_experiment.learn import demo, evidence, networks
from uncork_experiment.learn.decide import EVERYBODY, level_of
from uncork_experiment.learn.explain import explain
from uncork_experiment.learn.settings import GUARDRAILS, SITES, Overrides, Settings
from uncork_experiment.learn.store import Store
from uncork_experiment.learn.tablefile import date
from uncork_experiment.policyfile import KEY, UNITS

EXAMPLES = """\
Examples:
  uncork learn demo -o records                               records of an experiment, made up
  uncork learn plan records/ -o learned --key "$(openssl rand -hex 16)"
  uncork learn apply learned                                 put the latest version in force
  uncork learn explain learned 203.0.113.7
  uncork serve --policy learned/current/policy.toml --root public
"""
STATUSES = (
    "Exit status: 0 done; 1 a version cannot be recomputed; 2 wrong input; 3 a result cannot be written; 130 "
    "interrupted."
)


def parser() -> argparse.ArgumentParser:
    """All commands."""
    top = Parser(
        prog="uncork-learn",
        description="Which congestion control for which network: from experiments to a table that explains "
        "itself.",
        epilog=STATUSES,
    )
    top.examples = EXAMPLES
    top.add_argument("--version", action="version", version=f"uncork-learn {package_version()}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, about: str, command: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        one: argparse.ArgumentParser = commands.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + "."
        )
        one.set_defaults(run=command)
        return one

    def in_directory(
        name: str, about: str, command: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        one = add(name, about, command)
        one.add_argument("directory", metavar="DIR", type=Path, help="directory of versions")
        return one

    _add_plan(add("plan", "propose a version from records, and say what it would change", _plan))
    apply = in_directory("apply", "put a version in force", _apply)
    apply.add_argument("number", metavar="N", type=int, nargs="?", help="[default: the latest]")
    rollback = in_directory("rollback", "put an earlier version in force again", _rollback)
    rollback.add_argument("number", metavar="N", type=int, nargs="?", help="[default: the one before]")
    one = in_directory("explain", "say why an address gets what it gets", _explain)
    one.add_argument("address", metavar="ADDRESS")
    one.add_argument("--asn", metavar="AS", help="of an address whose network is not known: AS64500")
    one.add_argument("--country", metavar="CC", help="likewise: PE")
    in_directory("history", "list the versions, and what was done with them", _history)
    pin = in_directory("pin", "give an entry an arm from the next plan on, whatever the evidence says", _pin)
    pin.add_argument("entry", metavar="ENTRY", help="a network, an AS, a country or '*'")
    pin.add_argument("arm", metavar="ARM", nargs="?", help="left out: no longer pinned")
    freeze = in_directory("freeze", "keep what an entry has; only guardrails still switch it off", _freeze)
    freeze.add_argument("entry", metavar="ENTRY", help="a network, an AS, a country or '*'")
    freeze.add_argument("--off", action="store_true", help="no longer frozen")
    verify = in_directory(
        "verify", "compute versions again from their inputs, and compare every byte", _verify
    )
    verify.add_argument("number", metavar="N", type=int, nargs="?", help="[default: all]")
    made_up = add("demo", "write records of an experiment, which are made up", _demo)
    made_up.add_argument("-o", "--output", required=True, metavar="DIR", type=Path)
    made_up.add_argument("--days", type=int, default=7, metavar="N", help="[default: 7]")
    return top


def _add_plan(one: argparse.ArgumentParser) -> None:
    one.add_argument("paths", nargs="*", metavar="PATH", type=Path, help="files or directories of records")
    one.add_argument("-o", "--output", type=Path, metavar="DIR", help="directory of versions")
    one.add_argument("--show-sql", metavar="DIALECT", help="print the query instead: trino, bigquery ...")
    what = one.add_argument_group("experiment")
    what.add_argument("--experiment", default="explore", metavar="NAME", help="[default: explore]")
    what.add_argument("--control", default="control", metavar="ARM", help="[default: control]")
    what.add_argument("--treated", default="bbr", metavar="ARM", help="[default: bbr]")
    what.add_argument("--until", metavar="DAY", help="use records before this day [default: all]")
    rule = one.add_argument_group("decisions")
    rule.add_argument(
        "--worth", default="1%", metavar="SHARE", help="least lift worth a change [default: 1%%]"
    )
    rule.add_argument("--sure", default="95%", metavar="P", help="probability to switch on [default: 95%%]")
    rule.add_argument("--half-life", type=float, default=7, metavar="DAYS", help="of evidence [default: 7]")
    rule.add_argument("--dwell", type=int, default=3, metavar="DAYS", help="between changes [default: 3]")
    rule.add_argument(
        "--changed", default="20%", metavar="SHARE", help="most traffic that changes in a day [default: 20%%]"
    )
    rule.add_argument(
        "--guardrail",
        action="append",
        default=[],
        metavar="METRIC=LIMIT",
        help=f"a ratio that must not get worse [default: {', '.join(GUARDRAILS).replace('%', '%%')}]",
    )
    files = one.add_argument_group("policy")
    files.add_argument(
        "--key", metavar="HEX", help="32 hexadecimal digits [default: that of the version in force]"
    )
    files.add_argument("--control-settings", default="quic=cubic,tcp=cubic", metavar="SETTINGS")
    files.add_argument("--treated-settings", default="quic=bbr3,tcp=bbr", metavar="SETTINGS")
    files.add_argument(
        "--unit",
        default="cookie:uid",
        help="of the random share [default: cookie:uid]; prefix learns by AS only",
    )
    files.add_argument("--rules", type=Path, metavar="FILE", help="rules of your own, which come first")
    files.add_argument("--listener", default="", metavar="NAME", help="only connections of this listener")
    files.add_argument("--place", default="", choices=("listener", "host"), help="what tells PoPs apart")
    files.add_argument(
        "--random", default="10%", metavar="SHARE", help="share that stays random [default: 10%%]"
    )
    files.add_argument(
        "--holdback", default="1%", metavar="SHARE", help="share that never changes [default: 1%%]"
    )
    files.add_argument(
        "--ttl", type=int, default=7, metavar="DAYS", help="until the table expires [default: 7]"
    )
    files.add_argument(
        "--site",
        action="append",
        default=[],
        metavar="NETWORK",
        help="between sites, never learned; 'none': there is none [default: private networks]",
    )
    add_reading(one)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(words)
    return run_command(lambda: int(options.run(options)))


def _plan(options: argparse.Namespace) -> int:
    if options.show_sql:
        sys.stdout.write(evidence.sql(_settings(options, 20_000, "0" * 32), options.show_sql))
        return 0
    if options.output is None:
        raise InputError("-o", "no directory of versions is given", "write -o learned")
    store = Store(options.output)
    current = store.current()
    key = options.key or (store.settings(current).key if current is not None else "")
    progress = Progress()
    records = read_records(options, progress)
    progress("the last day")
    until = instant(options.until, "--until")
    as_of = until // DAY_NS if until is not None else evidence.last_day(records.table, records.run) + 1
    settings = _settings(options, as_of, key)
    progress("evidence")
    counts = evidence.read(records.table, settings, records.run)
    progress("decisions")
    number, changes = store.plan(settings, counts)
    store.note(datetime.now(UTC), "plan", version=number)
    progress.done()
    sys.stdout.write(f"{changes}\nPut it in force with: uncork learn apply {options.output}\n")
    return 0


def _settings(options: argparse.Namespace, as_of: int, key: str) -> Settings:
    if not KEY.match(key):
        raise InputError("--key", "it needs 32 hexadecimal digits", "make one with: openssl rand -hex 16")
    if not UNITS.match(options.unit):
        raise InputError(
            "--unit", f"`{options.unit}` is not a unit", "write prefix, cookie:NAME or header:NAME"
        )
    if options.place == "listener" and options.listener:
        raise InputError("--listener", "--place listener has rules for each of them", "leave one out")
    for limit in options.guardrail:
        measures.parse_limit(limit)
    sites = SITES if not options.site else () if options.site == ["none"] else tuple(options.site)
    arms = {
        options.control: connection_settings(options.control_settings, "--control-settings"),
        options.treated: connection_settings(options.treated_settings, "--treated-settings"),
    }
    return Settings(
        experiment=options.experiment,
        control=options.control,
        treated=options.treated,
        arms=arms,
        as_of=as_of,
        key=key,
        place=options.place,
        unit=options.unit,
        listener=options.listener,
        sites=sites,
        guardrails=tuple(options.guardrail) or GUARDRAILS,
        worth=share(options.worth, "--worth"),
        sure=share(options.sure, "--sure"),
        half_life=options.half_life,
        dwell=options.dwell,
        changed=share(options.changed, "--changed"),
        random=share(options.random, "--random"),
        holdback=share(options.holdback, "--holdback"),
        ttl=options.ttl,
        rules=options.rules.read_text(encoding="utf-8") if options.rules else "",
    )


def _apply(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    numbers = store.numbers()
    if not numbers:
        raise InputError(str(options.directory), "there is no version", "make one with uncork learn plan")
    return _in_force(store, options.number or numbers[-1], "apply")


def _rollback(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    current = store.need_current()
    number = options.number
    if number is None:
        number = max((one for one in store.numbers() if one < current), default=None)
        if number is None:
            raise InputError(f"version {current}", "is the first one", "remove the policy from the server")
    return _in_force(store, number, "rollback")


def _in_force(store: Store, number: int, done: str) -> int:
    store.apply(number)
    now = datetime.now(UTC)
    store.note(now, done, version=number)
    settings = store.settings(number)
    print(f"Version {number} is in force: {store.root / 'current' / 'policy.toml'}")
    expires = settings.as_of + settings.ttl
    if expires * 86_400 <= now.timestamp():
        print(
            f"warning: its table expired on {date(expires)}: all clients outside of the random share get "
            f"{settings.control}; plan again with newer records",
            file=sys.stderr,
        )
    return 0


def _explain(options: argparse.Namespace) -> int:
    sys.stdout.write(explain(Store(options.directory), options.address, options.asn, options.country))
    return 0


def _history(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    current = store.current()
    for line in store.log():
        what = " ".join(str(line[name]) for name in ("version", "entry", "arm") if line.get(name) is not None)
        print(f"{line['at']}  {line['done']} {what}")
    for number in store.numbers():
        first = store.text(number, "changes.txt").splitlines()
        print(f"\n{'* ' if number == current else '  '}{first[0]}")
        print("\n".join(f"    {text}" for text in first[1:4]))
    return 0


def _pin(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    entry, overrides = _entry(options.entry), store.overrides()
    pins = {key: arm for key, arm in overrides.pins.items() if key != entry}
    if options.arm:
        known = store.settings(store.numbers()[-1]).arms if store.numbers() else {}
        if known and options.arm not in known:
            raise InputError(options.arm, "there is no such arm", f"there are {', '.join(sorted(known))}")
        pins[entry] = options.arm
    store.override(Overrides(pins, overrides.frozen))
    store.note(datetime.now(UTC), "pin", entry=entry, arm=options.arm or "no longer")
    return 0


def _freeze(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    entry, overrides = _entry(options.entry), store.overrides()
    frozen = {*overrides.frozen} - {entry} if options.off else {*overrides.frozen, entry}
    store.override(Overrides(overrides.pins, tuple(sorted(frozen))))
    store.note(datetime.now(UTC), "freeze", entry=entry, arm="no longer" if options.off else None)
    return 0


def _entry(text: str) -> str:
    level = level_of(text)
    if level == "network":
        try:
            return str(networks.parse(text))
        except ValueError as error:
            raise InputError(text, str(error), "write a network such as 203.0.113.0/24") from None
    if level == "country" and not re.fullmatch(r"[A-Z]{2}", text):
        raise InputError(text, "is no entry", f"write 203.0.113.0/24, AS64500, PE or {EVERYBODY!r}")
    return text


def _verify(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    if options.number is not None:
        store.check(options.number)
    status = 0
    for number in [options.number] if options.number is not None else store.numbers():
        wrong = store.differences(number)
        print(f"version {number}: {'differs in ' + ', '.join(wrong) if wrong else 'the same bytes'}")
        status = 1 if wrong else status
    return status


def _demo(options: argparse.Namespace) -> int:
    path = demo.write(options.output, options.days)
    print(f"{path}: made-up records before {demo.end(options.days)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
