"""From options and records to a version: what `plan` and `run` have in common."""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from uncork.experiment import measures
from uncork.experiment.commands.common import Progress, Records, instant, read_records, share
from uncork.experiment.commands.design import connection_settings
from uncork.experiment.policyfile import BARE, KEY, UNITS
from uncork.learn import arms, checks, daily, evidence, prior, resultfile, same_time, twin
from uncork.learn.defaults import DEFAULTS, GUARDRAILS, OF_WINDOWS
from uncork.learn.entries import REGION, level_of
from uncork.learn.monotone import RESUME, WINDOW
from uncork.learn.regions import Regions, load_regions
from uncork.learn.saved_options import save
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from uncork.learn.tablefile import date
from uncork.measure import console, rollups
from uncork.measure.address import Address
from uncork.measure.errors import InputError
from uncork.measure.keys import DAY_NS
from uncork.measure.sources.reading import find_files

DAY_SECONDS = 86_400
MAX_LEFT_OUT = 0.05
"""Part of the records that may be left out next to roll-ups."""
MAX_DAYS = 3650
"""Maximum days of an option."""


def propose(
    options: argparse.Namespace, store: Store, now: datetime, show: Callable[[str], object] = lambda _: None
) -> tuple[int, str]:
    """Adds a version by completed options, and saves them. The result is its number and what it changes;
    `show` gets the latter before anything is written.
    """
    if store.is_stopped():
        raise InputError(str(store.stop_file), "the kill switch is on", "remove the file, and plan again")
    current = store.current()
    before = store.settings(current).key if current is not None else ""
    # Arguments are in the list of processes; the environment is not.
    key = options.key or os.environ.get("UNCORK_KEY") or before
    if before and KEY.match(key) and key != before:
        console.note(
            "warning: --key is not the key of the active version: it draws other clients for the holdback "
            "and the random share; leave it out to keep them",
        )
    progress = Progress()
    if options.evidence is None:
        settings, counts = _from_records(options, store, key, now, progress)
    else:
        settings, counts = _from_result(options, store, key, progress)
    arms.check(arms.of_evidence(counts), settings)
    same_time.check(counts, settings)
    # The engine's memory is not needed any more; decisions of a million networks need it.
    gc.collect()
    pa.default_memory_pool().release_unused()
    progress("decisions")
    progress.done()
    _warn_countries(counts)
    number, changes = store.plan(settings, counts, now, show=show)
    save(options, store.root)
    for text in checks.warnings(store.findings(number)):
        console.note(f"warning: {text}")
    return number, changes


def _warn_countries(counts: pa.Table) -> None:
    """Says how many records do not say their country as policies do."""
    left_out, example = evidence.without_code(counts)
    if left_out:
        console.note(
            f"warning: service_country of {left_out:,} records does not have a code, such as `{example}`: "
            "they count as of an unknown country. Write two capital letters, such as PE"
        )


def _from_records(
    options: argparse.Namespace, store: Store, key: str, now: datetime, progress: Progress
) -> tuple[Settings, pa.Table]:
    """Settings and evidence by the records, up to their last day if no other is given."""
    until = instant(options.until, "--until")
    today = int(now.timestamp()) // DAY_SECONDS
    if (files := _rolled_up(options)) is not None:
        last = None if until is not None else max(files)
    else:
        records = read_records(options, progress)
        progress("the last day")
        last = None if until is not None else evidence.last_day(records.table, records.run)
    if last is None:
        assert until is not None
        settings = settings_of(options, until // DAY_NS, key)
    else:
        settings = settings_of(options, _not_after(last + 1, today + 1), key, today)
    progress("evidence")
    if files is not None:
        found = daily.collect(options, files, settings, on_trial(store), store.root, progress)
        _check_rolled_arms(found.rows, settings)
    else:
        _check_left_out(records)
        arms.check(arms.of_records(records.table, settings, records.run), settings)
        rows = evidence.collect(records.table, settings, records.run, on_trial(store))
        found = daily.Day(rows, rollups.folded(records.table))
        if rollups.has_rollups(records.table):
            _check_rolled_arms(rows, settings)
    if found.folded[0]:
        share = 100 * found.folded[0] / found.folded[1]
        console.note(
            f"warning: {share:.2g} % of the records with an arm are of clients without rows of their own: "
            "they decide nothing. Raise --rollup-rows on the hosts to learn from them"
        )
    return settings, found.rows


def _check_rolled_arms(rows: pa.Table, settings: Settings) -> None:
    """Refuses roll-ups without a client of the experiment: `uncork records rollup` drops incomplete arms."""
    if not evidence.of_metric(rows, evidence.UNITS).num_rows:
        problem = f"no roll-up has a client in an arm of the experiment {settings.experiment!r}"
        remedy = (
            "check --experiment and --until; arms of records without arm_propensity are not in roll-ups: "
            "write it (0.5 of two equal arms) and roll up again, or plan from the records with --share"
        )
        raise InputError("records", problem, remedy)


def _check_left_out(records: Records) -> None:
    """Says how many records are left out that no roll-up counts, and refuses to learn without many."""
    left_out = records.rejected.get(rollups.UNCOUNTED, 0)
    if not left_out:
        return
    count = records.table.aggregate(n=rollups.count(records.table))
    share = left_out / (left_out + int(records.run(count).to_pylist()[0]["n"]))
    what = f"{left_out:,} records ({100 * share:.2g} %) are of periods of roll-ups that do not count them"
    remedy = "roll up the records of all hosts, or name records alone"
    if share > MAX_LEFT_OUT:
        raise InputError("records", what, remedy)
    console.note(f"warning: {what}: they are left out; {remedy}")


def _rolled_up(options: argparse.Namespace) -> daily.Files | None:
    """The files by day, if all are roll-ups: then each day is read alone. A store is read as a whole."""
    if options.engine != "duckdb" or options.mapping or not options.paths:
        return None
    if any(isinstance(path, Address) for path in options.paths):
        return None
    return daily.by_day(find_files(options.paths, False))


def _from_result(
    options: argparse.Namespace, store: Store, key: str, progress: Progress
) -> tuple[Settings, pa.Table]:
    """Likewise by the result of a query on an engine of the operator's."""
    given = {"PATH": options.paths, "--where": options.where, "--exclude": options.exclude}
    for name, is_given in given.items():
        if is_given:
            raise InputError(name, "with --evidence no records are read", "leave one of the two out")
    progress("evidence")
    result = resultfile.load_result(options.evidence)
    until = instant(options.until, "--until")
    settings = settings_of(options, result.as_of if until is None else until // DAY_NS, key)
    return settings, resultfile.counts(result, settings, on_trial(store))


def on_trial(store: Store) -> list[str]:
    """The ASes that a switchback is to confirm, by the active version."""
    current = store.current()
    return sorted({name for _, name in store.trials(current)}) if current is not None else []


def _not_after(as_of: int, latest: int) -> int:
    """The day, but not after the latest: a server with a fast clock must not set the time of expiry."""
    if as_of > latest:
        console.note(
            f"warning: records of {date(as_of - 1)} are from the future and are left out: compare the clocks "
            "of the servers with this one",
        )
    return min(as_of, latest)


def settings_of(options: argparse.Namespace, as_of: int, key: str, today: int | None = None) -> Settings:
    """The settings that the options declare. `today` is the day of the plan; None: it is `as_of`."""
    if not KEY.match(key):
        remedy = "make one with: openssl rand -hex 16; other users see --key in `ps`, and not UNCORK_KEY"
        raise InputError("--key", "it needs 32 hexadecimal digits", remedy)
    if not UNITS.match(options.unit):
        raise InputError(
            "--unit", f"`{options.unit}` is not a unit", "write prefix, cookie:NAME or header:NAME"
        )
    if options.place == "listener" and options.listener:
        raise InputError("--listener", "--place listener has rules for each of them", "leave one out")
    if options.places < 1:
        raise InputError("--places", f"`{options.places}` is not a number of places", "write 1 or more")
    _check_days(options)
    of_arms = _arms(options)
    guardrails = _guardrails(options, of_arms)
    for limit in guardrails:
        measures.parse_limit(limit)
    sites = () if options.site == ["none"] else tuple(options.site)
    confirm = share(options.confirm, "--confirm")
    if len(of_arms) > 2:
        _check_several(options, confirm)
    treated, *others = (arm for arm in of_arms if arm != options.control)
    if options.networks and confirm < 1:
        raise InputError("--networks", "a switchback confirms ASes, not regions", "leave out --confirm")
    return Settings(
        experiment=options.experiment,
        control=options.control,
        treated=treated,
        others=tuple(others),
        arms=of_arms,
        as_of=as_of,
        key=key,
        place=options.place,
        places=options.places,
        unit=options.unit,
        listener=options.listener,
        sites=sites,
        guardrails=guardrails,
        worth=share(options.worth, "--worth"),
        tolerated=_part(options.tolerate, "--tolerate"),
        sure=_part(options.sure, "--sure"),
        harmed=share(options.harmed, "--harmed"),
        half_life=options.half_life,
        dwell=options.dwell,
        changed=share(options.changed, "--changed"),
        confirm=confirm,
        only=options.only,
        random=share(options.random, "--random"),
        holdback=_holdback(options),
        share=_planned_share(options),
        ttl=options.ttl,
        rules=_rules(options.rules),
        prior=prior.load_prior(Path(options.prior), _controllers(options, of_arms)) if options.prior else {},
        regions=_regions(options.networks) if options.networks else {},
        # Without a switchback nothing depends on the day: the same records give the same version on any day.
        today=today if confirm < 1 else None,
    )


def _check_days(options: argparse.Namespace) -> None:
    """The options that are numbers of days."""
    if not (0 < options.half_life <= MAX_DAYS):
        problem = f"`{options.half_life:g}` is not a number of days above 0 and up to {MAX_DAYS}"
        raise InputError("--half-life", problem, "write 14")
    for option, days, least in (("--ttl", options.ttl, 1), ("--dwell", options.dwell, 0)):
        if not least <= days <= MAX_DAYS:
            problem = f"`{days}` is not a number of days from {least} to {MAX_DAYS}"
            raise InputError(option, problem, f"write {DEFAULTS[option[2:]]}")


def _part(text: str, option: str) -> float:
    """A share below the whole."""
    found = share(text, option)
    if found >= 1:
        raise InputError(
            f"{option} {text}", "it must be below 100%", "write 95% for --sure, 2% for --tolerate"
        )
    return found


def _planned_share(options: argparse.Namespace) -> float | None:
    """What was assigned, of two arms."""
    if not options.share:
        return None
    if len(options.arm) > 1:
        problem = "it is of one treated arm, and there are several"
        raise InputError(f"--share {options.share}", problem, "leave it out, or record arm_propensity")
    found = share(options.share, "--share")
    if found >= 1:
        raise InputError(f"--share {options.share}", "it leaves no control arm", "write a share below 100%")
    return found


def _holdback(options: argparse.Namespace) -> float:
    """The holdback, if it and the random share leave clients to the table."""
    found = share(options.holdback, "--holdback")
    if found + share(options.random, "--random") >= 1:
        problem = f"with --random {options.random} it leaves no client to the table"
        raise InputError(f"--holdback {options.holdback}", problem, "write shares below 100% together")
    return found


def _arms(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Settings by arm, control first. Two arms with the same settings are none to choose from."""
    found = _named_arms(options)
    names: dict[tuple[tuple[str, str], ...], str] = {}
    for arm, settings in found.items():
        other = names.setdefault(tuple(sorted(settings.items())), arm)
        if other != arm:
            problem = f"its settings are those of the arm {other}, so a policy cannot choose"
            remedy = "write what the arms differ in, such as --treated-settings tcp=bbr"
            raise InputError(f"arm {arm}", problem, remedy)
    return found


def _named_arms(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Of all `--arm`, or of `--treated`."""
    if not options.arm and options.treated == options.control:
        problem = f"`{options.treated}` is the arm --control, too"
        raise InputError("--treated", problem, "name the other arm of the experiment")
    control = {options.control: connection_settings(options.control_settings, "--control-settings")}
    if not options.arm:
        return control | {
            options.treated: connection_settings(options.treated_settings, "--treated-settings")
        }
    arms = control
    for text in options.arm:
        name, colon, settings = text.partition(":")
        if not colon or not BARE.match(name):
            raise InputError(f"--arm {text}", "no arm", "write --arm w32:tcp=cubic,initial_window=32p")
        if name in arms:
            raise InputError(f"--arm {text}", f"there are two arms {name}", "give each another name")
        arms[name] = connection_settings(settings, f"--arm {name}:")
    return arms


def _guardrails(options: argparse.Namespace, arms: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Those given. By default starts have more, as they overflow the buffer."""
    given = tuple(options.guardrail)
    has_starts = bool(options.arm) and any(key in of for of in arms.values() for key in (WINDOW, RESUME))
    return (*given, *OF_WINDOWS) if has_starts and given == GUARDRAILS else given


def _check_several(options: argparse.Namespace, confirm: float) -> None:
    """What is of two arms only."""
    if confirm < 1:
        raise InputError(
            "--confirm", "a switchback confirms one treated arm", "leave out --confirm, or all but one --arm"
        )
    if options.prior:
        raise InputError(
            "--prior", "a twin expects the lift of one treated arm", "leave out --prior, or all but one --arm"
        )


def _regions(file: Path) -> Regions:
    """Names of client networks. Each is an entry, so none reads like an entry of another kind."""
    found = load_regions(file)
    for name in sorted(set(found.values())):
        if level_of(name) != REGION or name[0] == "?":
            raise InputError(
                f"--networks {file}",
                f"{name!r} reads like another entry of the policy",
                "write a name such as Lima, not a network, an AS or the code of a country",
            )
    return found


def _rules(name: str) -> str:
    """The hand-written rules in the file; without a name there are none."""
    if not name:
        return ""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--rules {name}", str(error), "name a file of rules in TOML") from None


def _controllers(options: argparse.Namespace, arms: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Control and treated of each transport, as a twin names them."""
    if options.arm:
        options = argparse.Namespace(control=options.control, treated=options.arm[0].partition(":")[0])
    return list(dict.fromkeys(twin.controllers(arms, options.control, options.treated).values()))
