"""`uncork learn run`, and what a crash, a clock or broken records do to the active policy."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import learning
from learning import FIRST_DAY, KEY, NOW
from uncork.learn import demo, evidence
from uncork.learn.cli import main
from uncork.learn.decisions import Decisions
from uncork.learn.entries import PreviousArms
from uncork.learn.loop import Loop
from uncork.learn.settings import Settings
from uncork.learn.store import Store
from uncork.measure.errors import InputError
from uncork.measure.reduce import to_arrow

SMALL = tuple(replace(one, networks=3) for one in demo.SYSTEMS[:2])
SETTINGS = replace(learning.SETTINGS, changed=1.0)
OPTIONS = ["--key", KEY, "--changed", "100%"]


def counted(table: pa.Table, settings: Settings = SETTINGS) -> pa.Table:
    return evidence.collect(ibis.memtable(table), settings, to_arrow)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return demo.table(SMALL, days=9)


@pytest.fixture(scope="module")
def by_day(table: pa.Table) -> Callable[[int], tuple[Settings, pa.Table]]:
    """Settings and evidence after a number of days."""

    def of(days: int) -> tuple[Settings, pa.Table]:
        settings = replace(SETTINGS, as_of=FIRST_DAY + days)
        return settings, counted(table, settings)

    return of


def no_check(_: Path) -> None:
    """A server that takes everything."""


def loop_of(store: Store, plans: list[Callable[[], tuple[Settings, pa.Table]]], **others: object) -> Loop:
    """A loop with these plans, one a round."""
    coming = iter(plans)

    def propose(now: datetime) -> int:
        return store.plan(*next(coming)(), now)[0]

    return Loop(store, **{"propose": propose, "check": no_check, "every": 0.0, "now": lambda: NOW, **others})  # type: ignore[arg-type]


def results(store: Store) -> list[object]:
    return [line["result"] for line in store.log() if line["done"] == "round"]


def on(store: Store) -> set[str]:
    text = (store.root / "current" / "policy.toml").read_text()
    name = re.search(r'file = "(.*)"', text)
    assert name is not None
    lines = (store.root / "current" / name[1]).read_text().splitlines()
    return {line.split()[0] for line in lines if line.endswith(" bbr")}


def test_rounds_activate_changes_and_nothing_else(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    store = Store(tmp_path)
    metrics = tmp_path / "m" / "learn.prom"
    loop = loop_of(store, [lambda: by_day(7), lambda: by_day(7), lambda: by_day(8)], metrics=metrics)
    loop.run(3)
    assert results(store) == ["applied", "unchanged", "applied"]
    assert store.numbers() == [1, 2], "a round that changes nothing keeps no version"
    assert store.settings(2).as_of == FIRST_DAY + 8
    assert store.current() == 2
    assert len(on(store)) > 5
    assert main(["verify", str(tmp_path)]) == 0
    exposition = metrics.read_text()
    assert f"uncork_learn_expires_timestamp_seconds {(FIRST_DAY + 15) * 86_400}\n" in exposition
    assert 'uncork_learn_rounds_total{result="applied"} 2\n' in exposition
    assert 'uncork_learn_networks{arm="bbr"} 12\n' in exposition
    assert f"uncork_learn_last_success_timestamp_seconds {NOW.timestamp():.0f}\n" in exposition
    if promtool := shutil.which("promtool"):
        subprocess.run([promtool, "check", "metrics"], input=exposition, text=True, check=True, timeout=60)


def test_a_round_that_fails_changes_nothing_and_the_next_one_works(
    tmp_path: Path,
    by_day: Callable[[int], tuple[Settings, pa.Table]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    store, refused = Store(tmp_path), []

    def broken() -> tuple[Settings, pa.Table]:
        raise InputError("records", "they are broken")

    def bug() -> tuple[Settings, pa.Table]:
        raise ZeroDivisionError("a bug")

    def check(policy: Path) -> None:
        if policy.parent.name == "0002" and not refused:
            refused.append(policy)
            raise InputError(str(policy), "a server would refuse it")

    plans = [lambda: by_day(7), broken, bug, lambda: by_day(8), lambda: by_day(8)]
    loop_of(store, plans, check=check, metrics=tmp_path / "m.prom").run(4)
    assert results(store) == ["applied", "failed", "failed", "failed"]
    assert store.current() == 1
    assert store.numbers() == [1, 2], "what was refused can be looked at"
    loop_of(store, plans[4:], check=check).run(1)
    assert store.current() == 3
    errors = capsys.readouterr().err
    for words in ("records: they are broken", "ZeroDivisionError: a bug", "a server would refuse it"):
        assert words in errors
    assert 'uncork_learn_rounds_total{result="failed"} 3\n' in (tmp_path / "m.prom").read_text()


def test_the_kill_switch_gives_all_clients_the_control_arm(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The random share too. It needs no records, and is a version like others."""
    store = Store(tmp_path)
    loop_of(store, [lambda: by_day(7)]).run(1)
    assert on(store)
    (tmp_path / "stop").touch()
    loop_of(store, []).run(2)
    assert results(store)[1:] == ["applied", "stopped"]
    assert on(store) == set()
    policy = (tmp_path / "current/policy.toml").read_text()
    assert 'experiment = "explore"' not in policy
    if uncork := os.environ.get("UNCORK") or shutil.which("uncork"):
        check = [uncork, "policy", "check", str(tmp_path / "current/policy.toml")]
        subprocess.run(check, check=True, timeout=60)
    assert main(["plan", "nowhere", "-o", str(tmp_path), *OPTIONS]) == 2
    assert "the kill switch is on" in capsys.readouterr().err
    (tmp_path / "stop").unlink()
    loop_of(store, [lambda: by_day(8)]).run(1)
    assert 'experiment = "explore"' in (tmp_path / "current/policy.toml").read_text()
    assert main(["verify", str(tmp_path)]) == 0


def test_a_kill_switch_that_fails_is_tried_again_soon(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the next round."""
    monkeypatch.setattr("uncork.learn.loop.RETRY_SECONDS", 0.0)
    store, refused = Store(tmp_path), []
    loop_of(store, [lambda: by_day(7)]).run(1)
    (tmp_path / "stop").touch()

    def check(policy: Path) -> None:
        if not refused:
            refused.append(policy)
            raise InputError(str(policy), "a server would refuse it")

    loop_of(store, [], check=check, every=3600.0).run(2)
    assert results(store) == ["applied", "failed", "applied"]
    assert on(store) == set()


def test_a_guardrail_acts_in_the_round_that_sees_it(tmp_path: Path) -> None:
    """On the same day, within the dwell, after the traffic that may change has changed."""
    good = replace(demo.SYSTEMS[0], networks=8), replace(demo.SYSTEMS[1], networks=6)
    bad = good[0], replace(good[1], retransmits=0.12)
    settings = replace(SETTINGS, as_of=FIRST_DAY + 8)
    noon = ((FIRST_DAY + 7) * 86_400 + 12 * 3600) * 10**9
    late = demo.table(bad, days=8, daily=400, seed=3)
    late = late.filter(pa.array(np.array(late["service_start_unix_ns"]) >= noon))
    first = demo.table(good, days=8)
    rounds = [counted(table, settings) for table in (first, pa.concat_tables([first, late]))]
    store = Store(tmp_path)
    loop_of(store, [lambda: (settings, rounds[0]), lambda: (settings, rounds[1])]).run(2)
    assert results(store) == ["applied", "applied"]
    arms = [
        {(one.parent, one.arm) for one in store.decisions(number) if one.level == "network"}
        for number in (1, 2)
    ]
    assert arms[0] >= {("AS64501", "bbr"), ("AS64502", "bbr")}
    assert arms[1] == {("AS64501", "bbr"), ("AS64502", "control")}


def test_alerts_use_metrics_that_exist(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    rules = Path(__file__).parents[3] / "deploy/prometheus/rules.yml"
    if not rules.exists():
        pytest.skip(f"*** NOT RUN: {rules} is only in the repository ***")
    store, file = Store(tmp_path), tmp_path / "learn.prom"
    loop_of(store, [lambda: by_day(7)], metrics=file).run(1)
    used = set(re.findall(r"uncork_learn_\w+", rules.read_text(encoding="utf-8")))
    assert len(used) >= 4
    assert used <= set(re.findall(r"^# TYPE (\w+)", file.read_text(), flags=re.M))


def metrics_table(exposition: str) -> str:
    """The families as a table in Markdown."""
    rows = ""
    for family in exposition.split("# HELP uncork_learn_")[1:]:
        (name, help), kind, sample = (line.split(" ", 1) for line in family.splitlines()[:3])
        labels = re.findall(r'(\w+)="', sample[0] + sample[1])
        shown = ", ".join(f"`{label}`" for label in labels)
        about = help.removesuffix(".")
        rows += f'| <a id="metric-{name}"></a>`{name}` | {kind[1].split()[-1]} | {shown} | {about} |\n'
    return f"| metric | type | labels | meaning |\n|---|---|---|---|\n{rows}"


def test_table_of_metrics_is_current(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    page = Path(__file__).parents[3] / "docs/reference/learn.md"
    if not page.exists():
        pytest.skip(f"*** NOT RUN: {page} is only in the repository ***")
    loop_of(Store(tmp_path), [lambda: by_day(7)], metrics=tmp_path / "learn.prom").run(1)
    table = metrics_table((tmp_path / "learn.prom").read_text())
    text = page.read_text(encoding="utf-8")
    command = "UPDATE_DOCS=1 pytest tests/test_learn_run.py -k table"
    marker = f"<!-- generated: metrics by `{command}` -->\n"
    before, after = text.split(marker)
    end = after[after.index("<!-- end -->") :]
    whole = f"{before}{marker}\n{table}\n{end}"
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(whole, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == whole, f"run {command}"


def run_program(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "uncork.learn.cli", "run", *arguments, *OPTIONS],
        stderr=subprocess.PIPE,
        text=True,
    )


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def test_the_program_runs_switches_off_and_ends_by_signal(tmp_path: Path, table: pa.Table) -> None:
    """With records that grow, the kill switch, and SIGTERM."""
    records, out = tmp_path / "records", tmp_path / "learned"
    records.mkdir()
    pq.write_table(table, records / "a.parquet")
    running = run_program(str(records), "-o", str(out), "--every", "1h", "--metrics", str(tmp_path / "m"))
    try:
        store = Store(out)
        assert within(60, lambda: len(results(store)) == 1), running.poll()
        assert results(store) == ["applied"]
        (out / "stop").touch()
        assert within(30, lambda: len(results(store)) == 2), "long before the hour is over"
        assert on(store) == set()
        assert within(30, lambda: "uncork_learn_stopped 1" in (tmp_path / "m").read_text())
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=30)
        assert running.returncode == 0, errors
        assert "Version 1" in errors
    finally:
        running.kill()
        running.wait()
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "current",
        "log.jsonl",
        "options.json",
        "stop",
        "versions",
    ]


def test_a_loop_that_is_ended_in_a_round_activates_nothing(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    ended = threading.Event()
    store = Store(tmp_path)

    def then_ended() -> tuple[Settings, pa.Table]:
        ended.set()
        return by_day(7)

    loop_of(store, [then_ended], ended=ended).run()
    assert store.current() is None
    assert results(store) == ["ended"]


KILLED = 9
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.rmdir")


def killed_at(step: int, root: Path, work: Callable[[], object]) -> bool:
    """Does the work in a process that dies just before its change number `step` of a file below `root`, and
    whether it died.
    """
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            is_write = event in CHANGES or (event == "open" and str(arguments[1]) not in ("r", "rb"))
            if is_write and str(root) in str(arguments[0]):
                left -= 1
                if left == 0:
                    os._exit(KILLED)

        sys.addaudithook(hook)
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, KILLED)
    return os.waitstatus_to_exitcode(status) == KILLED


def active_bytes(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "current/").iterdir()}


def test_a_crash_at_any_step_leaves_the_old_policy_or_the_new_one(
    tmp_path: Path,
) -> None:
    few = demo.table(SMALL[:1], days=8, daily=60)

    def by_day(days: int) -> tuple[Settings, pa.Table]:
        settings = replace(SETTINGS, as_of=FIRST_DAY + days)
        return settings, counted(few, settings)

    start = tmp_path / "start"
    store = Store(start)
    store.plan(*by_day(7), NOW)
    store.apply(1, NOW)
    after = tmp_path / "after"
    shutil.copytree(start, after, symlinks=True)
    later = by_day(8)

    def work(root: Path) -> None:
        number, _ = Store(root).plan(*later, NOW)
        Store(root).apply(number, NOW)

    work(after)
    old, new = active_bytes(start), active_bytes(after)
    assert old != new
    seen = set()
    for step in range(1, 100):
        root = tmp_path / f"crash{step}"
        shutil.copytree(start, root, symlinks=True)
        died = killed_at(step, root, lambda root=root: work(root))  # type: ignore[misc]
        found = active_bytes(root)
        assert found in (old, new), step
        seen.add(found == new)
        store = Store(root)
        assert all(not store.damaged(number) for number in store.numbers())
        if step % 4 == 1:
            # The next run finds its way from there.
            loop_of(store, [lambda: later]).run(1)
            assert store.settings(store.need_current()).as_of == later[0].as_of
            assert not [path for path in (root / "versions").iterdir() if path.name.startswith(".")]
            assert main(["verify", str(root)]) == 0
        shutil.rmtree(root)
        if not died:
            break
    assert not died
    assert step > 8, "steps at which it was killed"
    assert seen == {False, True}


def test_a_damaged_version_is_not_activated(
    tmp_path: Path,
    by_day: Callable[[int], tuple[Settings, pa.Table]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = Store(tmp_path)
    for days in (7, 8):
        store.plan(*by_day(days), NOW)
        if days == 7:
            store.apply(1, NOW)
    (tmp_path / "versions/0002/networks-2.table").write_text("uncork-table 1\n")
    assert main(["apply", str(tmp_path)]) == 2
    assert "networks-2.table is not as it was planned" in capsys.readouterr().err
    assert store.current() == 1


def test_a_line_of_the_log_that_was_cut_spoils_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.note(NOW, "plan", version=1)
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"at": "2026-11-')
    store.note(NOW, "apply", version=1)
    assert [line["done"] for line in store.log()] == ["plan", "apply"]


def test_verify_sees_inputs_that_were_changed(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Even where everything that follows from them was made again."""
    store = Store(tmp_path / "a")
    store.plan(*by_day(7), NOW)
    settings, counts = by_day(7)
    other = Store(tmp_path / "b")
    other.plan(replace(settings, sure=0.6), counts, NOW)
    shutil.rmtree(store.path(1))
    shutil.copytree(other.path(1), store.path(1))
    assert main(["verify", str(store.root)]) == 1
    assert "differs in inputs.json" in capsys.readouterr().out


def test_records_from_the_future_do_not_move_the_expiry(
    tmp_path: Path, table: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server with a fast clock: its records are left out until their day, and the others count."""
    place = table.column_names.index("service_start_unix_ns")
    ahead = table.slice(0, 50).set_column(
        place, "service_start_unix_ns", pa.array([2_000_000_000 * 10**9] * 50)
    )
    pq.write_table(pa.concat_tables([table, ahead]), tmp_path / "r.parquet")
    assert main(["plan", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "out"), *OPTIONS]) == 0
    tomorrow = int(datetime.now(UTC).timestamp()) // 86_400 + 1
    assert Store(tmp_path / "out").settings(1).as_of <= tomorrow
    assert "from the future" in capsys.readouterr().err


def test_a_clock_that_goes_back_changes_nothing_but_by_guardrails(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    store = Store(tmp_path)
    loop_of(store, [lambda: by_day(9), lambda: by_day(7), lambda: by_day(9)]).run(3)
    arms = [
        {(one.section, one.key): (one.arm, one.since) for one in store.decisions(number)}
        for number in store.numbers()
    ]
    assert arms[0] == arms[1] == arms[2]


def on_of(counts: pa.Table, settings: Settings = SETTINGS) -> dict[tuple[str, str], str]:
    from uncork.learn import version

    nothing = PreviousArms({})
    files = version.files(version.Inputs(1, settings, version.Overrides(), lambda: nothing, None, {}, counts))
    decisions = Decisions.from_bytes(files[version.DECISIONS])
    return {(one.section, one.key): one.arm for one in decisions if one.level == "network"}


def test_lost_late_and_old_records_move_no_decision(table: pa.Table) -> None:
    """A tenth lost at random, a day that comes late, and a part without the columns of newer servers."""
    whole = on_of(counted(table))
    assert set(whole.values()) == {"bbr"}
    rng = np.random.default_rng(2)
    lost = table.filter(pa.array(rng.random(table.num_rows) > 0.1))
    assert on_of(counted(lost)) == whole
    start = np.array(table["service_start_unix_ns"])
    is_late = (start >= (FIRST_DAY + 4) * 86_400 * 10**9) & (start < (FIRST_DAY + 5) * 86_400 * 10**9)
    before_it_came = table.filter(pa.array(~is_late))
    assert on_of(counted(before_it_came)) == whole
    came = pa.concat_tables([before_it_came, table.filter(pa.array(is_late))])
    assert counted(came).equals(counted(table)), "a late file counts for its own day"


def test_duplicate_records_add_no_evidence(table: pa.Table) -> None:
    """Copies are in the buckets of what they copy, so the jackknife does not take them for more users."""
    from uncork.learn.evidence import sections
    from uncork.learn.lift import lifts

    once, twice = (
        [lifts(section, SETTINGS) for section in sections(counted(of), SETTINGS)]
        for of in (table, pa.concat_tables([table, table]))
    )
    for one, two in zip(once, twice, strict=True):
        assert one is not None
        assert two is not None
        assert two.raw.keys() == one.raw.keys()
        for at, estimate in one.raw.items():
            assert two.raw[at].lift == pytest.approx(estimate.lift, abs=1e-3)
            assert two.raw[at].error == pytest.approx(estimate.error, rel=1e-2)


def test_records_of_several_versions_of_the_server_are_read_together(tmp_path: Path, table: pa.Table) -> None:
    """Older files lack columns, newer ones have more: what they have in common counts."""
    half = table.num_rows // 2
    old = table.slice(0, half).drop_columns(["service_broken_off", "service_country", "bytes_retransmitted"])
    new = table.slice(half).append_column("from_the_future", pa.array(["x"] * (table.num_rows - half)))
    pq.write_table(old, tmp_path / "a.parquet")
    pq.write_table(new, tmp_path / "b.parquet")
    out = tmp_path / "out"
    until = (demo.START + timedelta(days=7)).strftime("%Y-%m-%d")
    assert main(["plan", str(tmp_path), "-o", str(out), "--until", until, *OPTIONS]) == 0
    counts = Store(out).evidence(1).to_pylist()
    within_window = sum(row["n"] for row in counts if row["metric"] == evidence.TRAFFIC)
    start = np.array(table["service_start_unix_ns"])
    assert within_window == int((start < (FIRST_DAY + 7) * 86_400 * 10**9).sum())
    assert json.loads(Store(out).text(1, "inputs.json"))["version"] == 1


def key_pair(directory: Path) -> tuple[Path, Path]:
    """As the documentation says."""
    private, public = directory / "learn.key", directory / "learn.pub"
    for line in (
        f"openssl genpkey -algorithm ed25519 -out {private}",
        f"openssl pkey -in {private} -pubout -out {public}",
    ):
        subprocess.run(line.split(), check=True, timeout=60)
    return private, public


@pytest.mark.sign
def test_only_versions_signed_by_the_right_key_become_active(
    tmp_path: Path,
    by_day: Callable[[int], tuple[Settings, pa.Table]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = tmp_path / "learned"
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    private, public = key_pair(tmp_path / "mine")
    other, _ = key_pair(tmp_path / "theirs")
    Store(root, private_key=private).plan(*by_day(7), NOW)
    Store(root, private_key=other).plan(*by_day(7), NOW)
    Store(root).plan(*by_day(7), NOW)
    assert main(["apply", str(root), "1", "--key", str(public)]) == 0
    for number in ("2", "3"):
        assert main(["apply", str(root), number, "--key", str(public)]) == 2
        assert "is not signed by the owner of" in capsys.readouterr().err
    assert Store(root).current() == 1
    assert main(["verify", str(root), "1", "--key", str(public)]) == 0
    assert main(["verify", str(root), "2", "--key", str(public)]) == 1
    assert "differs in inputs.sig" in capsys.readouterr().out
    assert main(["verify", str(root)]) == 0, "without a key it says that nothing is damaged"
    one = root / "versions/0001"
    check = f"openssl pkeyutl -verify -pubin -inkey {public} -rawin -in {one}/inputs.json"
    subprocess.run([*check.split(), "-sigfile", str(one / "inputs.sig")], check=True, timeout=60)
    inputs = one / "inputs.json"
    inputs.write_text(inputs.read_text().replace('"sure": 0.95', '"sure": 0.05'))
    assert main(["apply", str(root), "1", "--key", str(public)]) == 2
    assert main(["apply", str(root), "2", "--key", str(private)]) == 2
    assert "is not a public key" in capsys.readouterr().err


@pytest.mark.sign
def test_signed_versions_age_and_a_rollback_is_signed_again(
    tmp_path: Path,
    by_day: Callable[[int], tuple[Settings, pa.Table]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = tmp_path / "learned"
    private, public = key_pair(tmp_path)
    store = Store(root, private_key=private)
    for _ in range(2):
        store.plan(*by_day(7), NOW)
    serials = [json.loads(store.text(number, "inputs.json"))["serial"] for number in (1, 2)]
    assert serials == [int(NOW.timestamp()), int(NOW.timestamp()) + 1]
    for number in ("1", "2"):
        assert main(["apply", str(root), number]) == 0
    for old in (["apply", str(root), "1"], ["rollback", str(root)]):
        assert main(old) == 2
        remedy = f"uncork learn rollback {root} 1 --sign learn.key"
        assert remedy in capsys.readouterr().err.replace("\n", " ")
    assert store.current() == 2
    assert main(["rollback", str(root), "--sign", str(private), "--key", str(public)]) == 0
    again = json.loads(store.text(3, "inputs.json"))
    assert (store.current(), again["version"], again["as_version"]) == (3, 3, 1)
    assert again["serial"] > serials[1]
    assert store.text(3, "policy.toml") == store.text(1, "policy.toml")
    assert main(["verify", str(root), "--key", str(public)]) == 0
    capsys.readouterr()
    assert main(["history", str(root)]) == 0
    assert "* Version 3, signed again: Version 1:" in capsys.readouterr().out
    assert main(["rollback", str(root), "--sign", str(private)]) == 2
    assert "version 1: is the first one" in capsys.readouterr().err


@pytest.mark.sign
def test_only_the_key_raises_the_serial_and_a_clock_that_was_ahead_does_no_harm(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    private, _ = key_pair(tmp_path)
    store = Store(tmp_path / "learned", private_key=private)

    def serial(number: int) -> int:
        return int(json.loads(store.text(number, "inputs.json"))["serial"])

    store.plan(*by_day(7), NOW)
    inputs = store.path(1) / "inputs.json"
    inputs.write_text(inputs.read_text().replace(f'"serial": {serial(1)}', f'"serial": {2**70}'))
    store.plan(*by_day(7), NOW)
    assert serial(2) == int(NOW.timestamp())
    store.plan(*by_day(7), NOW + timedelta(days=36_500))
    store.plan(*by_day(7), NOW)
    assert serial(4) == serial(3) + 1


@pytest.mark.sign
def test_a_key_that_cannot_sign_leaves_no_version(
    tmp_path: Path, by_day: Callable[[int], tuple[Settings, pa.Table]]
) -> None:
    (tmp_path / "key").write_text("no key")
    with pytest.raises(InputError, match="openssl genpkey"):
        Store(tmp_path / "out", private_key=tmp_path / "key").plan(*by_day(7), NOW)
    assert Store(tmp_path / "out").numbers() == []
    assert list((tmp_path / "out/versions").iterdir()) == []
