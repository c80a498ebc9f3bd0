"""The commands of `uncork learn`: their options, and what runs them."""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from uncork.experiment.commands.common import instant
from uncork.experiment.commands.design import span
from uncork.experiment.words import counted
from uncork.learn import demo, networks, proposal, resultfile, saved_options, twin, twinpage
from uncork.learn.entries import ALL_CLIENTS, REGION, level_of
from uncork.learn.explain import active_versions, explain
from uncork.learn.fleet import Fleet
from uncork.learn.history import render
from uncork.learn.loop import Loop
from uncork.learn.page import page
from uncork.learn.settings import Overrides
from uncork.learn.store import Store
from uncork.learn.tablefile import date
from uncork.measure import console
from uncork.measure.errors import InputError
from uncork.measure.files import write
from uncork.measure.keys import DAY_NS
from uncork.program import find_bin


def run_plan(options: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    if options.show_sql:
        console.data(_sql(options, now))
        return 0
    store = _store(options)
    proposal.propose(_complete(options), store, now, console.text)
    console.line(f"\nActivate it with: uncork learn apply {options.output}")
    return 0


def _complete(options: argparse.Namespace) -> argparse.Namespace:
    """All options. Those of the last plan are listed."""
    completed = saved_options.complete(options, options.output)
    if words := saved_options.described(options, completed):
        console.note(
            f"options of the last plan in {options.output}: {words} (--forget-options: the defaults)"
        )
    return completed


def _sql(options: argparse.Namespace, now: datetime) -> str:
    """The query for records before `--until`, else before today."""
    for name, is_given in (("--where", options.where), ("--exclude", options.exclude)):
        if is_given:
            raise InputError(name, "the query is of a table `records`", "make it a view with this condition")
    until = instant(options.until, "--until")
    as_of = until // DAY_NS if until is not None else int(now.timestamp()) // proposal.DAY_SECONDS
    on_trial = proposal.on_trial(_store(options)) if options.output is not None else []
    # The query does not contain the policy's key.
    settings = proposal.settings_of(_complete(options), as_of, "0" * 32)
    return resultfile.sql(settings, options.show_sql, on_trial)


def _store(options: argparse.Namespace) -> Store:
    if options.output is None:
        raise InputError("-o", "no directory of versions is given", "write -o learned")
    return Store(options.output, private_key=options.sign)


def run_run(options: argparse.Namespace) -> int:
    if options.keep < 0:
        raise InputError("--keep", f"`{options.keep}` is not a number of rounds", "write 0 to keep none")
    store = _store(options)
    # A plan with other options, made while the loop runs, does not change what the loop does.
    options = _complete(options)
    program = _program()
    loop = Loop(
        store,
        propose=lambda now: proposal.propose(options, store, now)[0],
        check=lambda policy: _check(program, policy),
        every=span(options.every, "--every"),
        keep=options.keep,
        metrics=options.metrics,
        fleet=_fleet(options, program),
    )
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(one, lambda *_: loop.ended.set()) for one in signals]
    try:
        loop.run(options.rounds)
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)
    return 0


def _fleet(options: argparse.Namespace, program: str | None) -> Fleet | None:
    """Where versions are published, if anywhere."""
    if options.publish is None:
        for name in ("publish_key", "holder", "stages", "hold"):
            if getattr(options, name):
                raise InputError(saved_options.flag(name), "is of a fleet", "name its store with --publish")
        return None
    if options.publish_key is None:
        raise InputError("--publish", "versions need a signature", "add --publish-key fleet.key")
    if program is None:
        raise InputError("--publish", "program `uncork` not found", "set UNCORK to its path")
    return Fleet(
        program=program,
        store=options.publish,
        key=options.publish_key,
        holder=options.holder or socket.gethostname(),
        every=span(options.every, "--every"),
        stages=options.stages,
        hold=options.hold,
    )


def _program() -> str | None:
    """The program that checks policies. The loop runs without it."""
    try:
        return find_bin()
    except InputError as error:
        console.note(f"warning: no server checks a policy before it is active: {error}")
        return None


def _check(program: str | None, policy: Path) -> None:
    """Reads the policy as a server does, before it becomes active, and passes its warnings on."""
    if program is None:
        return
    done = subprocess.run(
        [program, "policy", "check", str(policy)], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise InputError(str(policy), f"`uncork policy check` refuses it: {why}")
    for line in done.stderr.splitlines():
        console.note(line)


def run_apply(options: argparse.Namespace) -> int:
    store = Store(options.directory, public_key=options.key)
    numbers = store.numbers()
    if not numbers:
        raise InputError(str(options.directory), "no version yet", "make one with uncork learn plan")
    number = numbers[-1] if options.number is None else options.number
    return _activate(store, number, "apply", partial(_check, _program()))


def run_rollback(options: argparse.Namespace) -> int:
    store = Store(options.directory, private_key=options.sign, public_key=options.key)
    store.need_current()
    number = _earlier(store) if options.number is None else options.number
    store.check(number)
    if number not in _active_origins(store) and number not in active_versions(store):
        remedy = f"uncork learn apply {store.root} {number} activates it"
        raise InputError(f"version {number}", "it never was active, so nothing can return to it", remedy)
    if options.sign is None:
        return _activate(store, number, "rollback")
    new = store.sign_again(number, datetime.now(UTC))
    console.line(f"Version {number} is signed again as version {new}")
    return _activate(store, new, "rollback")


def _earlier(store: Store) -> int:
    """The latest version before the active one that was active, too."""
    origin = store.origin(store.need_current())
    number = max((one for one in _active_origins(store) if one < origin), default=None)
    if number is None:
        problem = "is the first one that was active"
        raise InputError(f"version {origin}", problem, "remove the policy from the server")
    return number


def _active_origins(store: Store) -> set[int]:
    """The versions that were active, by the numbers that they had first."""
    return {store.origin(number) for number in active_versions(store)} & {*store.numbers()}


def _activate(store: Store, number: int, done: str, check: Callable[[Path], object] = lambda _: None) -> int:
    """A rollback must not wait for a check: its policy was active before."""
    now = datetime.now(UTC)
    warning = store.apply(number, now, done, check)
    settings = store.settings(number)
    console.line(f"Version {number} is active: {store.root / 'current' / 'policy.toml'}")
    if warning:
        console.note(f"warning: {warning}")
    expires = settings.as_of + settings.ttl
    if expires * 86_400 <= now.timestamp():
        console.note(
            f"warning: its table expired on {date(expires)}: all clients outside of the random share get "
            f"{settings.control}; plan again with newer records",
        )
    return 0


def run_explain(options: argparse.Namespace) -> int:
    console.text(explain(Store(options.directory), options.address, options.asn, options.country))
    return 0


def run_report(options: argparse.Namespace) -> int:
    write(options.output, page(Store(options.directory), options.oracle))
    console.line(options.output)
    return 0


def run_calibrate(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    number = store.need_current()
    evidence, settings = store.evidence(number), store.settings(number)
    found = twin.trial(evidence, settings, options.flows, options.transport)
    console.text(found.summary())
    write(options.output, twinpage.page(found))
    if options.prior:
        write(options.prior, found.prior())
    console.line(options.output)
    return 0


def run_history(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    current = store.current()
    for line in render(store.log()):
        console.line(line)
    for number in store.numbers():
        first = store.text(number, "changes.txt").splitlines()
        origin = store.origin(number)
        again = f"Version {number}, signed again: " if origin != number else ""
        console.line(f"\n{'* ' if number == current else '  '}{again}{first[0]}")
        console.line("\n".join(f"    {text}" for text in first[1:4]))
    return 0


def run_pin(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    entry, overrides = _entry(options.entry, store), store.overrides()
    pins = {key: arm for key, arm in overrides.pins.items() if key != entry}
    if options.arm:
        known = store.settings(store.numbers()[-1]).arms if store.numbers() else {}
        if known and options.arm not in known:
            raise InputError(options.arm, "arm does not exist", f"available: {', '.join(sorted(known))}")
        pins[entry] = options.arm
    store.override(Overrides(pins, overrides.frozen))
    store.note(datetime.now(UTC), "pin", entry=entry, arm=options.arm or "no longer")
    what = f"pinned to {options.arm}" if options.arm else "no longer pinned"
    console.line(
        f"{entry}: {what}, with all entries in it that have no pin of their own, from the next plan on."
    )
    if options.arm:
        _warn_unseen(store, entry)
    return 0


def _warn_unseen(store: Store, entry: str) -> None:
    """Says if the latest version has decided for nothing in this entry."""
    numbers = store.numbers()
    if not numbers or entry in store.decisions_about(numbers[-1], [entry]).key.tolist():
        return
    if level_of(entry) == "network":
        decided = networks.parse_all(pa.array(store.decisions(numbers[-1]).key, pa.string()))
        if decided.within(networks.parse(entry)).any():
            return
    console.note(f"warning: no traffic of {entry} in the latest version")


def run_freeze(options: argparse.Namespace) -> int:
    store = Store(options.directory)
    entry, overrides = _entry(options.entry, store), store.overrides()
    frozen = {*overrides.frozen} - {entry} if options.off else {*overrides.frozen, entry}
    store.override(Overrides(overrides.pins, tuple(sorted(frozen))))
    store.note(datetime.now(UTC), "freeze", entry=entry, arm="no longer" if options.off else None)
    what = "no longer frozen" if options.off else "frozen"
    console.line(f"{entry}: {what}, with all entries in it, from the next plan on.")
    if not options.off:
        _warn_unseen(store, entry)
    return 0


def _entry(text: str, store: Store) -> str:
    """The entry, as tables write it."""
    level = level_of(text)
    if level == "network":
        try:
            return str(networks.parse(text))
        except ValueError as error:
            raise InputError(text, str(error), "write a network such as 203.0.113.0/24") from None
    # XX is of the codes that ISO 3166 leaves to users: no database of countries has it.
    numbers = store.numbers()
    regions = store.settings(numbers[-1]).regions.values() if numbers else ()
    if text == "XX" or (level == REGION and text not in regions):
        remedy = f"write 203.0.113.0/24, AS64500, PE, a name of --networks or {ALL_CLIENTS!r}"
        raise InputError(text, "is not an entry", remedy)
    return text


def run_verify(options: argparse.Namespace) -> int:
    store = Store(options.directory, public_key=options.key)
    if options.number is not None:
        store.check(options.number)
    found: list[list[str]] = []
    for number in [options.number] if options.number is not None else store.numbers():
        found.append(store.differences(number))
        console.line(f"version {number}: {_compared(found[-1])}")
    if options.number is None:
        found += _verify_rounds(store)
    return int(any(found))


def _verify_rounds(store: Store) -> Iterator[list[str]]:
    """What differs in each round that changed nothing. Prints these rounds, and how many do not differ."""
    logged, kept = store.unchanged(), store.rounds()
    same = 0
    for name in kept:
        if not store.round_path(name).exists():
            continue  # The loop goes on, and has forgotten it in the meantime.
        wrong = store.round_differences(name)
        yield wrong
        if wrong:
            console.line(f"round {name}: {_compared(wrong)}")
        else:
            same += logged.count(name)
    if logged:
        kept = store.rounds()
        gone = sum(name not in kept for name in logged)
        console.line(
            f"{counted(len(logged), 'round')} changed nothing: {same} the same bytes, {gone} not kept"
        )


def _compared(wrong: Sequence[str]) -> str:
    return f"differs in {', '.join(wrong)}" if wrong else "the same bytes"


def run_demo(options: argparse.Namespace) -> int:
    path = demo.write(options.output, options.days)
    console.line(f"{path}: made-up records before {demo.end(options.days)}")
    return 0
