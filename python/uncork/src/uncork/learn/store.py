"""The directory of versions: each with its inputs, one of them active, and a log of all changes.

current -> versions/0003         a symbolic link: replaced as one, so a server never sees half a version
overrides.json                   pins and freezes
stop                             the kill switch of `uncork learn run`: if there, all get the control arm
log.jsonl                        what was done when
versions/0003/inputs.json        settings, overrides, the version before; `serial` if it is signed
versions/0003/inputs.sig         its signature, if a key was given
versions/0003/evidence.parquet   counts of the records
versions/0003/policy.toml …      what follows from them
rounds/4f1d…/inputs.json         those of a plan that changed nothing, under their SHA-256, and its signature
rounds/4f1d…/evidence.parquet    its counts, unless they are those of the version before

Files are on the disk before they get the name that others look for: a crash leaves the old state or the new.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork.experiment.result import Finding
from uncork.learn import checks, confirm, sample_ratio, signature, tablefile
from uncork.learn import version as version_
from uncork.learn.confirm import Trials
from uncork.learn.decisions import Decisions
from uncork.learn.entries import ALL_CLIENTS, PreviousArms
from uncork.learn.history import INTENT, SIGNED
from uncork.learn.lock import alone
from uncork.learn.sample_ratio import Ratio
from uncork.learn.settings import Overrides, Settings
from uncork.learn.version import Inputs
from uncork.measure.errors import InputError, OutputError
from uncork.measure.files import read_json, to_disk, understood, write, writing

SCHEMA = "learn-4"
INPUTS, SIGNATURE, EVIDENCE = "inputs.json", "inputs.sig", "evidence.parquet"
DAMAGED = "apply another version, or plan again"


@dataclass(frozen=True)
class Store:
    """A directory of versions."""

    root: Path
    private_key: Path | None = None
    """What plans are signed with."""
    public_key: Path | None = None
    """What versions must be signed with."""

    def numbers(self) -> list[int]:
        """All versions, oldest first."""
        found = (self.root / "versions").glob("[0-9]*")
        return sorted(int(path.name) for path in found if path.name.isdigit())

    def path(self, number: int) -> Path:
        return self.root / "versions" / f"{number:04d}"

    def current(self) -> int | None:
        """The active version."""
        try:
            return int(Path(os.readlink(self.root / "current")).name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise InputError(
                str(self.root / "current"), "is not a link to a version", "remove it, and apply a version"
            ) from None

    def need_current(self) -> int:
        number = self.current()
        if number is None:
            raise InputError(str(self.root), "no version is active", "uncork learn apply DIR")
        return number

    def check(self, number: int) -> None:
        if number not in self.numbers():
            there = ", ".join(map(str, self.numbers())) or "none"
            raise InputError(f"version {number}", "there is none", f"there are: {there}")

    def decisions(self, number: int) -> Decisions:
        with self._understood(number, version_.DECISIONS) as path:
            return Decisions.from_bytes(path.read_bytes())

    def decisions_about(self, number: int, keys: Sequence[str]) -> Decisions:
        """Those of these entries, and of all wide ones."""
        wanted = (pc.field("level") != "network") | pc.field("key").isin(list(keys))
        with self._understood(number, version_.DECISIONS) as path:
            return Decisions.from_table(pq.read_table(path, filters=wanted))

    def figures_about(self, number: int, key: str) -> Decisions:
        """Of several treated arms the figures of each about an entry; otherwise none."""
        if not (self.path(number) / version_.ARMS).exists():
            return Decisions.concat([])
        with self._understood(number, version_.ARMS) as path:
            return Decisions.from_table(pq.read_table(path, filters=pc.field("key") == key))

    def trials(self, number: int) -> Trials:
        with self._understood(number, version_.TRIALS) as path:
            return confirm.load_trials(read_json(path))  # type: ignore[arg-type]

    def guardrails(self, number: int) -> dict[str, Any]:
        """By section, what is watched."""
        with self._understood(number, version_.GUARDRAILS) as path:
            document = read_json(path)
            if not isinstance(document, dict):
                raise TypeError("not an object")
            return document

    def findings(self, number: int) -> dict[str, list[Finding]]:
        """By section, what was found by the checks of the records. Earlier versions have none."""
        if not (self.path(number) / version_.CHECKS).exists():
            return {}
        with self._understood(number, version_.CHECKS) as path:
            return checks.load(read_json(path))  # type: ignore[arg-type]

    def ratios(self, number: int) -> dict[str, Ratio]:
        """By section, the units of the arms over the dealt units."""
        with self._understood(number, version_.GUARDRAILS):
            return sample_ratio.load_ratios(self.guardrails(number))

    @contextmanager
    def _understood(self, number: int, name: str) -> Iterator[Path]:
        """A file of a version. If it is damaged, the error names it and the way out."""
        path = self.path(number) / name
        with understood(path, DAMAGED):
            yield path

    def mismatches(self, number: int) -> dict[str, Ratio]:
        """The ratios of sections with a sample-ratio mismatch."""
        return {name: one for name, one in self.ratios(number).items() if one.is_mismatch}

    def text(self, number: int, name: str) -> str:
        return (self.path(number) / name).read_text(encoding="utf-8")

    def settings(self, number: int) -> Settings:
        with understood(self.path(number) / INPUTS, DAMAGED):
            return _settings(_document(self.path(number)))

    def evidence(self, number: int) -> pa.Table:
        with self._understood(number, EVIDENCE) as path:
            return pq.read_table(path)

    def overrides_of(self, number: int) -> Overrides:
        """The overrides that a version was planned with."""
        with understood(self.path(number) / INPUTS, DAMAGED):
            return _overrides(_document(self.path(number))["overrides"])

    def overrides(self) -> Overrides:
        """What a person decided."""
        path = self.root / "overrides.json"
        if not path.exists():
            return Overrides()
        remedy = "repair it, or remove it and pin again"
        with understood(path, remedy):
            return _overrides(read_json(path, remedy))

    def override(self, overrides: Overrides) -> None:
        pins, frozen = dict(sorted(overrides.pins.items())), sorted(overrides.frozen)
        write(self.root / "overrides.json", _json({"pins": pins, "frozen": frozen}))

    @property
    def stop_file(self) -> Path:
        return self.root / "stop"

    def is_stopped(self) -> bool:
        """Whether the kill switch is on."""
        return self.stop_file.exists()

    def gives_all_control(self, number: int) -> bool:
        """Whether all clients get the control arm by this version, the random share too."""
        settings = self.settings(number)
        return settings.random == 0 and self.overrides_of(number) == Overrides(
            {ALL_CLIENTS: settings.control}
        )

    def plan(
        self,
        settings: Settings,
        evidence: pa.Table,
        now: datetime,
        overrides: Overrides | None = None,
        show: Callable[[str], object] = lambda _: None,
    ) -> tuple[int, str]:
        """Adds a version. The result is its number and what it changes; `show` gets the latter before
        anything is written, which may fail. `overrides` are those of a person unless given.
        """
        with alone(self.root):
            self._remove_parts()
            number = self._next_number()
            overrides = self.overrides() if overrides is None else overrides
            document: dict[str, object] = {
                "schema": SCHEMA,
                "version": number,
                **({"serial": self._next_serial(now)} if self.private_key is not None else {}),
                "before": self.current(),
                "settings": settings.document(),
                "overrides": {"pins": dict(overrides.pins), "frozen": list(overrides.frozen)},
            }
            files = version_.files(self._inputs(document, evidence))
            changes = files[version_.CHANGES].decode()
            show(changes)

            def fill(part: Path) -> None:
                pq.write_table(evidence, part / EVIDENCE, compression="zstd")
                for name, content in files.items():
                    (part / name).write_bytes(content)
                document["evidence_sha256"] = _digest(part / EVIDENCE)
                document["sha256"] = {name: _sha256(content) for name, content in files.items()}

            self._put(number, document, fill)
            self.note(now, "plan", version=number, inputs_sha256=_digest(self.path(number) / INPUTS))
        return number, changes

    def sign_again(self, number: int, now: datetime) -> int:
        """Adds a version with the files of an earlier one and a higher serial: servers take it after later
        ones. The result is its number.
        """
        self._check_whole(number)
        self._check_stop(number)
        with alone(self.root):
            self._remove_parts()
            new, old = self._next_number(), self.path(number)
            changed = {"version": new, "as_version": self.origin(number), "serial": self._next_serial(now)}
            document = _document(old) | changed

            def fill(part: Path) -> None:
                for name in (EVIDENCE, *_digests(document)):
                    shutil.copyfile(old / name, part / name)

            self._put(new, document, fill)
            self.note(now, SIGNED, version=new, inputs_sha256=_digest(self.path(new) / INPUTS))
        return new

    def origin(self, number: int) -> int:
        """The version that has the files first: itself, unless it is an earlier one that was signed again."""
        with understood(self.path(number) / INPUTS, DAMAGED):
            return _origin(_document(self.path(number)))

    def _next_number(self) -> int:
        return max(self.numbers(), default=0) + 1

    def _next_serial(self, now: datetime) -> int:
        """The time, or more if a clock was ahead. A plan that changed nothing has one, too: servers must not
        take it after the next version.
        """
        kept = [*map(self.path, self.numbers()), *map(self.round_path, self.rounds())]
        return max([int(now.timestamp()), *(self._signed_serial(path) + 1 for path in kept)])

    def _signed_serial(self, path: Path) -> int:
        """That of a version or round that was signed with the key of this store: others must not raise it."""
        assert self.private_key is not None
        try:
            content, signed = (path / INPUTS).read_bytes(), (path / SIGNATURE).read_bytes()
        except FileNotFoundError:
            return 0
        if not signature.is_signed_with(content, signed, self.private_key):
            return 0
        return _serial(json.loads(content))

    def _put(self, number: int, document: dict[str, object], fill: Callable[[Path], None]) -> None:
        """The directory of a version, as one. ``fill`` writes all but the inputs, and may add to them."""
        part = self._part(number)
        try:
            with writing(part):
                part.mkdir(parents=True)
                fill(part)
                write(part / INPUTS, _json(document))
                if self.private_key is not None:
                    signed = signature.sign((part / INPUTS).read_bytes(), self.private_key)
                    (part / SIGNATURE).write_bytes(signed)
                for path in (*part.iterdir(), part):
                    to_disk(path)
                part.rename(self.path(number))
                to_disk(part.parent)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise

    def _part(self, number: int) -> Path:
        """What a version is called until it is whole, and when it is none any more."""
        return self.root / "versions" / f".{number:04d}.{os.getpid()}"

    def _remove_parts(self) -> None:
        """What a process left that was killed."""
        for name in ("versions", "rounds"):
            for part in (self.root / name).glob(".[0-9a-f]*"):
                shutil.rmtree(part, ignore_errors=True)

    def changes_nothing(self, number: int) -> bool:
        """Whether servers would do the same by the version before, and as long. A sample-ratio mismatch, or
        another check that blocks, is a change when it begins and ends: the active version reports it.
        """
        document = _document(self.path(number))
        before = _before(document)
        return (
            before is not None
            and self._does_as(before, _settings(document), self.decisions(number))
            and self.mismatches(number).keys() == self.mismatches(before).keys()
            and self._blocks(number) == self._blocks(before)
        )

    def _blocks(self, number: int) -> set[tuple[str, str]]:
        """Sections and checks that hold all of a section back."""
        found = self.findings(number)
        return {(name, one.name) for name, of in found.items() for one in of if one.severity == "blocks"}

    def _does_as(self, before: int, settings: Settings, decisions: Decisions) -> bool:
        """Whether servers do the same by these decisions as by a version."""
        if settings != self.settings(before):
            return False
        texts = [tablefile.table(0, one, settings) for one in (decisions, self.decisions(before))]
        return texts[0] == texts[1]

    def rounds(self) -> list[str]:
        """The plans that changed nothing and kept their inputs."""
        return sorted(path.name for path in (self.root / "rounds").glob("[0-9a-f]*"))

    def round_path(self, name: str) -> Path:
        return self.root / "rounds" / name

    def set_aside(self, number: int) -> str:
        """Of a version that changes nothing only the inputs remain, as a round, and its number is free again.
        The result is the round's name. Equal inputs are kept once.
        """
        assert number != self.current()
        with alone(self.root), writing(self.root):
            part = self._part(number)
            self.path(number).rename(part)
            self._drop_results(part)
            round_ = self.round_path(_digest(part / INPUTS))
            round_.parent.mkdir(exist_ok=True)
            if round_.exists():
                shutil.rmtree(part)
            else:
                part.rename(round_)
            to_disk(round_.parent)
            to_disk(part.parent)
        return round_.name

    def _drop_results(self, part: Path) -> None:
        """All but the inputs, and the evidence too if the version before has it."""
        document = _document(part)
        before = _before(document)
        assert before is not None
        needed = {INPUTS, SIGNATURE, EVIDENCE}
        if _has(self.path(before) / EVIDENCE, document["evidence_sha256"]):
            needed.remove(EVIDENCE)
        for file in part.iterdir():
            if file.name not in needed:
                file.unlink()

    def unchanged(self) -> list[object]:
        """The names of all rounds that changed nothing, oldest first; None if its inputs never were kept."""
        return [line.get("inputs_sha256") for line in self.log() if line.get("result") == "unchanged"]

    def forget_rounds(self, most: int) -> None:
        """Keeps the inputs of the last `most` rounds that changed nothing, and no others."""
        needed = self.unchanged()[::-1][:most]
        with alone(self.root), writing(self.root):
            self._remove_parts()
            for name in {*self.rounds()} - {*needed}:
                part = self.round_path(f".{name}")
                self.round_path(name).rename(part)
                shutil.rmtree(part)

    def _inputs(self, document: Mapping[str, object], evidence: pa.Table) -> Inputs:
        before = _before(document)
        return Inputs(
            version=_origin(document),
            settings=_settings(document),
            overrides=_overrides(document["overrides"]),
            before=lambda: (
                PreviousArms.load(self.path(before) / version_.DECISIONS)
                if before is not None
                else PreviousArms({})
            ),
            before_as_of=self.settings(before).as_of if before is not None else None,
            before_trials=self.trials(before) if before is not None else {},
            evidence=evidence,
        )

    def damaged(self, number: int) -> list[str]:
        """The files of a version that are not as they were written, and a signature that is not right."""
        path = self.path(number)
        digests = _digests(_document(path))
        wrong = [name for name, digest in digests.items() if not _has(path / name, digest)]
        return [*wrong, *([] if self._is_signed(path) else [SIGNATURE])]

    def _is_signed(self, path: Path) -> bool:
        """By the key that versions must be signed with, if there is one."""
        if self.public_key is None:
            return True
        try:
            signed = (path / SIGNATURE).read_bytes()
        except FileNotFoundError:
            return False
        return signature.is_signed((path / INPUTS).read_bytes(), signed, self.public_key)

    def apply(
        self,
        number: int,
        now: datetime,
        done: str = "apply",
        check: Callable[[Path], object] = lambda _: None,
    ) -> str:
        """Activates a version: one link is replaced, or nothing happens. The log has the intent before and
        the outcome after. The result says what of the latter could not be written; empty: nothing. `check`
        gets the policy before, and raises an error if a server would refuse it.
        """
        self._check_whole(number)
        self._check_stop(number)
        self._check_serial(number)
        check(self.path(number) / version_.POLICY)
        part = self.root / f".current.{os.getpid()}"
        with alone(self.root):
            self.note(now, INTENT, version=number)
            with writing(self.root):
                part.unlink(missing_ok=True)
                part.symlink_to(Path("versions") / f"{number:04d}")
                part.replace(self.root / "current")
            try:
                with writing(self.root):
                    to_disk(self.root)
                self.note(now, done, version=number)
            except OutputError as error:
                return f"version {number} is active, but not all of it is written: {error}"
        return ""

    def _check_whole(self, number: int) -> None:
        self.check(number)
        if damaged := self.damaged(number):
            problem = f"{', '.join(damaged)} is not as it was planned"
            if damaged == [SIGNATURE]:
                problem = f"it is not signed by the owner of {self.public_key}"
            raise InputError(f"version {number}", problem, "plan again, or apply another version")

    def _check_stop(self, number: int) -> None:
        if self.is_stopped() and not self.gives_all_control(number):
            problem = f"the kill switch is on, and version {number} does not give all clients the control arm"
            raise InputError(str(self.stop_file), problem, "remove the file, and activate the version again")

    def _check_serial(self, number: int) -> None:
        """Servers that check signatures refuse a version that is older than the active one."""
        current = self.current()
        if current is None or not (self._has_signature(number) and self._has_signature(current)):
            return
        if _serial(_document(self.path(number))) < _serial(_document(self.path(current))):
            raise InputError(
                f"version {number}",
                f"is older than version {current}, which is active: servers that check signatures refuse it",
                f"uncork learn rollback {self.root} {number} --sign learn.key signs it again",
            )

    def _has_signature(self, number: int) -> bool:
        return (self.path(number) / SIGNATURE).exists()

    def note(self, at: datetime, done: str, **what: object) -> None:
        """Adds a line to the log."""
        line = json.dumps({"at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "done": done, **what}, ensure_ascii=False)
        path = self.root / "log.jsonl"
        with writing(path):
            self.root.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as log:
                # A line that a crash cut short must not take this one with it.
                log.seek(max(log.tell() - 1, 0))
                is_whole = log.read(1) in (b"", b"\n")
                log.write(("" if is_whole else "\n").encode() + line.encode() + b"\n")
            to_disk(path)

    def log(self) -> list[dict[str, object]]:
        """All lines. One that a crash cut short is left out."""
        try:
            lines = (self.root / "log.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(str(self.root / "log.jsonl"), error.strerror or str(error)) from None
        return [entry for line in lines if isinstance(entry := _parsed(line), dict)]

    def differences(self, number: int) -> list[str]:
        """Computes a version again. The result names the files that differ from what is kept, and inputs that
        differ from what the log says.
        """
        path = self.path(number)
        document = _document(path)
        wrong = [] if _has(path / EVIDENCE, document["evidence_sha256"]) else [EVIDENCE]
        for name, content in version_.files(self._inputs(document, self.evidence(number))).items():
            # Earlier versions do not have this file.
            if name not in _digests(document) and not (path / name).exists():
                continue
            if not version_.is_same(name, (path / name).read_bytes(), content):
                wrong.append(name)
        added = (line for line in self.log() if line["done"] in ("plan", SIGNED))
        planned = [line for line in added if line.get("version") == number]
        if planned and not _has(path / INPUTS, planned[-1].get("inputs_sha256")):
            wrong.append(INPUTS)
        return [*wrong, *([] if self._is_signed(path) else [SIGNATURE])]

    def round_differences(self, name: str) -> list[str]:
        """Computes a round again. The result names the files that differ from what had followed, inputs that
        differ from their name, and the version before if servers would not do the same by it.
        """
        path = self.round_path(name)
        document = _document(path)
        before = _before(document)
        assert before is not None
        evidence = path / EVIDENCE
        if not evidence.exists():
            evidence = self.path(before) / EVIDENCE
        wrong = [] if _has(evidence, document["evidence_sha256"]) else [EVIDENCE]
        found = version_.files(self._inputs(document, pq.read_table(evidence)))
        if not self._does_as(before, _settings(document), Decisions.from_bytes(found[version_.DECISIONS])):
            wrong.append(f"what version {before} does")
        if not _is_of_this_library(evidence):
            # Its decisions are the same values in other bytes.
            del found[version_.DECISIONS]
            found.pop(version_.ARMS, None)
        # Earlier rounds do not have the digest of the file.
        digests = _digests(document)
        wrong += [name for name in digests.keys() & found.keys() if _sha256(found[name]) != digests[name]]
        wrong += [] if _has(path / INPUTS, name) else [INPUTS]
        return [*wrong, *([] if self._is_signed(path) else [SIGNATURE])]


def _document(path: Path) -> dict[str, object]:
    """The inputs of a version or a round."""
    document = read_json(path / INPUTS, DAMAGED)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(
            str(path / INPUTS), f"is not of schema {SCHEMA}", "plan again with this version of uncork"
        )
    return document


def _before(document: Mapping[str, object]) -> int | None:
    before = document["before"]
    assert before is None or isinstance(before, int)
    return before


def _serial(document: Mapping[str, object]) -> int:
    """What servers order the versions of a key by. Versions without a serial have their number."""
    return int(str(document.get("serial", document["version"])))


def _origin(document: Mapping[str, object]) -> int:
    return int(str(document.get("as_version", document["version"])))


def _settings(document: Mapping[str, object]) -> Settings:
    return Settings.from_document(document["settings"])  # type: ignore[arg-type]


def _digests(document: Mapping[str, object]) -> dict[str, str]:
    digests = document["sha256"]
    assert isinstance(digests, dict)
    return digests


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _digest(path: Path) -> str:
    return _sha256(path.read_bytes())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _overrides(document: object) -> Overrides:
    """Of a document with ``pins``, arms by entry, and ``frozen``, entries."""
    if not isinstance(document, dict):
        raise TypeError("not an object with pins and frozen")
    pins, frozen = document["pins"], document["frozen"]
    if not isinstance(pins, dict) or not all(isinstance(arm, str) for arm in pins.values()):
        raise TypeError("pins: not arms by entry")
    if not isinstance(frozen, list) or not all(isinstance(entry, str) for entry in frozen):
        raise TypeError("frozen: not a list of entries")
    return Overrides(pins, tuple(frozen))


def _is_of_this_library(path: Path) -> bool:
    """Whether the library that wrote a Parquet file is that of today: equal values are then equal bytes."""
    return bool(pq.read_metadata(path).created_by == f"parquet-cpp-arrow version {pa.cpp_version}")


def _has(path: Path, digest: object) -> bool:
    """Whether the file is there with this SHA-256."""
    try:
        return _digest(path) == digest
    except FileNotFoundError:
        return False
