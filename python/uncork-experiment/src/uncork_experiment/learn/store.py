"""The directory of versions: each with its inputs, one of them in force, and a log of what was done.

current -> versions/0003         a symbolic link: replaced as one, so a server never sees half a version
overrides.json                   pins and freezes
stop                             the kill switch of `uncork learn run`: if there, all get the control arm
log.jsonl                        what was done when
versions/0003/inputs.json        settings, overrides, the version before
versions/0003/inputs.sig         its signature, if a key was given
versions/0003/evidence.parquet   counts of the records
versions/0003/policy.toml …      what follows from them

Files are on the disk before they get the name that others look for: a crash leaves the old state or the new.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from uncork_experiment.commands.common import OutputError, write
from uncork_experiment.errors import InputError
from uncork_experiment.learn import confirm, signature
from uncork_experiment.learn import version as version_
from uncork_experiment.learn.confirm import Trials
from uncork_experiment.learn.decisions import Decisions
from uncork_experiment.learn.entries import Before
from uncork_experiment.learn.settings import Overrides, Settings
from uncork_experiment.learn.version import Inputs

SCHEMA = "learn-4"
INPUTS, SIGNATURE, EVIDENCE = "inputs.json", "inputs.sig", "evidence.parquet"


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
        """The version in force."""
        try:
            return int(Path(os.readlink(self.root / "current")).name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise InputError(
                str(self.root / "current"), "is no link to a version", "remove it, and apply a version"
            ) from None

    def need_current(self) -> int:
        number = self.current()
        if number is None:
            raise InputError(str(self.root), "no version is in force", "uncork learn apply DIR")
        return number

    def check(self, number: int) -> None:
        if number not in self.numbers():
            there = ", ".join(map(str, self.numbers())) or "none"
            raise InputError(f"version {number}", "there is none", f"there are: {there}")

    def decisions(self, number: int) -> Decisions:
        return Decisions.of_bytes((self.path(number) / version_.DECISIONS).read_bytes())

    def decisions_about(self, number: int, keys: Sequence[str]) -> Decisions:
        """Those of these entries, and of all wide ones."""
        wanted = (pc.field("level") != "network") | pc.field("key").isin(list(keys))
        return Decisions.read(pq.read_table(self.path(number) / version_.DECISIONS, filters=wanted))

    def trials(self, number: int) -> Trials:
        return confirm.read(json.loads(self.text(number, version_.TRIALS)))

    def text(self, number: int, name: str) -> str:
        return (self.path(number) / name).read_text(encoding="utf-8")

    def settings(self, number: int) -> Settings:
        return Settings.read(self._document(number)["settings"])  # type: ignore[arg-type]

    def evidence(self, number: int) -> pa.Table:
        return pq.read_table(self.path(number) / EVIDENCE)

    def _document(self, number: int) -> dict[str, object]:
        document: dict[str, object] = json.loads(self.text(number, INPUTS))
        if document.get("schema") != SCHEMA:
            raise InputError(
                str(self.path(number)), f"is not of schema {SCHEMA}", "plan again with this version of uncork"
            )
        return document

    def overrides_of(self, number: int) -> Overrides:
        """Those that a version was planned with."""
        return _overrides(self._document(number)["overrides"])

    def overrides(self) -> Overrides:
        """What a person decided."""
        try:
            document = json.loads((self.root / "overrides.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Overrides()
        return _overrides(document)

    def override(self, overrides: Overrides) -> None:
        pins, frozen = dict(sorted(overrides.pins.items())), sorted(overrides.frozen)
        write(self.root / "overrides.json", _json({"pins": pins, "frozen": frozen}))

    @property
    def stop_file(self) -> Path:
        return self.root / "stop"

    def is_stopped(self) -> bool:
        """Whether the kill switch is on."""
        return self.stop_file.exists()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time changes the directory. The lock of one that dies is gone with it."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / ".lock").open("w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise OutputError(f"{error.filename or self.root}: {error.strerror or error}") from error

    def plan(
        self, settings: Settings, evidence: pa.Table, now: datetime, overrides: Overrides | None = None
    ) -> tuple[int, str]:
        """Adds a version. The result is its number and what it changes. `overrides` are those of a person
        unless given.
        """
        with self._alone():
            self._remove_parts()
            number = max(self.numbers(), default=0) + 1
            overrides = self.overrides() if overrides is None else overrides
            document = {
                "schema": SCHEMA,
                "version": number,
                "before": self.current(),
                "settings": settings.document(),
                "overrides": {"pins": dict(overrides.pins), "frozen": list(overrides.frozen)},
            }
            files = version_.files(self._inputs(document, evidence))
            part = self.root / "versions" / f".{number:04d}.{os.getpid()}"
            try:
                part.mkdir(parents=True)
                pq.write_table(evidence, part / EVIDENCE, compression="zstd")
                document["evidence_sha256"] = _digest(part / EVIDENCE)
                document["sha256"] = {
                    name: hashlib.sha256(content).hexdigest() for name, content in files.items()
                }
                write(part / INPUTS, _json(document))
                for name, content in files.items():
                    (part / name).write_bytes(content)
                if self.private_key is not None:
                    signed = signature.sign((part / INPUTS).read_bytes(), self.private_key)
                    (part / SIGNATURE).write_bytes(signed)
                for path in (*part.iterdir(), part):
                    _to_disk(path)
                part.rename(self.path(number))
                _to_disk(part.parent)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
            self.note(now, "plan", version=number, inputs_sha256=_digest(self.path(number) / INPUTS))
        return number, files[version_.CHANGES].decode()

    def _remove_parts(self) -> None:
        """What a plan left that was killed."""
        for part in (self.root / "versions").glob(".[0-9]*"):
            shutil.rmtree(part, ignore_errors=True)

    def remove(self, number: int) -> None:
        """Removes a version that never was in force."""
        assert number != self.current()
        with self._alone():
            part = self.root / "versions" / f".{number:04d}.{os.getpid()}"
            self.path(number).rename(part)
            shutil.rmtree(part)

    def _inputs(self, document: Mapping[str, object], evidence: pa.Table) -> Inputs:
        before = document["before"]
        assert before is None or isinstance(before, int)
        return Inputs(
            version=int(str(document["version"])),
            settings=Settings.read(document["settings"]),  # type: ignore[arg-type]
            overrides=_overrides(document["overrides"]),
            before=lambda: (
                Before.read(self.path(before) / version_.DECISIONS) if before is not None else Before({})
            ),
            before_as_of=self.settings(before).as_of if before is not None else None,
            before_trials=self.trials(before) if before is not None else {},
            evidence=evidence,
        )

    def damaged(self, number: int) -> list[str]:
        """The files of a version that are not as they were written, and a signature that is not right."""
        digests = self._document(number)["sha256"]
        assert isinstance(digests, dict)
        wrong = [name for name, digest in digests.items() if not _has(self.path(number) / name, digest)]
        return [*wrong, *([] if self._is_signed(number) else [SIGNATURE])]

    def _is_signed(self, number: int) -> bool:
        """By the key that versions must be signed with, if there is one."""
        if self.public_key is None:
            return True
        try:
            signed = (self.path(number) / SIGNATURE).read_bytes()
        except FileNotFoundError:
            return False
        return signature.is_signed((self.path(number) / INPUTS).read_bytes(), signed, self.public_key)

    def apply(self, number: int, now: datetime, done: str = "apply") -> None:
        """Puts a version in force: one link is replaced, or nothing happens."""
        self.check(number)
        if damaged := self.damaged(number):
            problem = f"{', '.join(damaged)} is not as it was planned"
            if damaged == [SIGNATURE]:
                problem = f"it is not signed by the owner of {self.public_key}"
            raise InputError(f"version {number}", problem, "plan again, or apply another version")
        part = self.root / f".current.{os.getpid()}"
        with self._alone():
            part.unlink(missing_ok=True)
            part.symlink_to(Path("versions") / f"{number:04d}")
            part.replace(self.root / "current")
            _to_disk(self.root)
            self.note(now, done, version=number)

    def note(self, at: datetime, done: str, **what: object) -> None:
        """Adds a line to the log."""
        line = json.dumps({"at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "done": done, **what}, ensure_ascii=False)
        path = self.root / "log.jsonl"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as log:
                # A line that a crash cut short must not take this one with it.
                log.seek(max(log.tell() - 1, 0))
                is_whole = log.read(1) in (b"", b"\n")
                log.write(("" if is_whole else "\n").encode() + line.encode() + b"\n")
        except OSError as error:
            raise OutputError(f"{path}: {error.strerror or error}") from error

    def log(self) -> list[dict[str, object]]:
        """All lines. One that a crash cut short is left out."""
        try:
            lines = (self.root / "log.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [entry for line in lines if isinstance(entry := _parsed(line), dict)]

    def differences(self, number: int) -> list[str]:
        """Computes a version again. The result names the files that differ from what is kept, and inputs that
        differ from what the log says.
        """
        document = self._document(number)
        wrong = [] if _has(self.path(number) / EVIDENCE, document["evidence_sha256"]) else [EVIDENCE]
        for name, content in version_.files(self._inputs(document, self.evidence(number))).items():
            if not version_.is_same(name, (self.path(number) / name).read_bytes(), content):
                wrong.append(name)
        planned = [line for line in self.log() if line["done"] == "plan" and line.get("version") == number]
        if planned and not _has(self.path(number) / INPUTS, planned[-1].get("inputs_sha256")):
            wrong.append(INPUTS)
        return [*wrong, *([] if self._is_signed(number) else [SIGNATURE])]


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _overrides(document: object) -> Overrides:
    assert isinstance(document, dict)
    return Overrides(document["pins"], tuple(document["frozen"]))


def _has(path: Path, digest: object) -> bool:
    """Whether the file is there with this SHA-256."""
    try:
        return _digest(path) == digest
    except FileNotFoundError:
        return False


def _to_disk(path: Path) -> None:
    """Waits until the file, or the names in the directory, would survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
