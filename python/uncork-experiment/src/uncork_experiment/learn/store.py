"""The directory of versions: each with its inputs, one of them in force, and a log of what was done.

current -> versions/0003         a symbolic link: replaced as one, so a server never sees half a version
overrides.json                   pins and freezes
log.jsonl                        what was done when
versions/0003/inputs.json        settings, overrides, the version before
versions/0003/evidence.parquet   counts of the records
versions/0003/policy.toml …      what follows from them
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from uncork_experiment.commands.common import OutputError, write
from uncork_experiment.errors import InputError
from uncork_experiment.learn import version as version_
from uncork_experiment.learn.decide import Decision
from uncork_experiment.learn.settings import Overrides, Settings
from uncork_experiment.learn.version import Inputs

SCHEMA = "learn-1"
INPUTS, EVIDENCE = "inputs.json", "evidence.parquet"


@dataclass(frozen=True)
class Store:
    """A directory of versions."""

    root: Path

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

    def decisions(self, number: int) -> list[Decision]:
        return version_.of_csv(self.text(number, version_.DECISIONS))

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

    def overrides(self) -> Overrides:
        """What a person decided."""
        try:
            document = json.loads((self.root / "overrides.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Overrides()
        return Overrides(document["pins"], tuple(document["frozen"]))

    def override(self, overrides: Overrides) -> None:
        pins, frozen = dict(sorted(overrides.pins.items())), sorted(overrides.frozen)
        write(self.root / "overrides.json", _json({"pins": pins, "frozen": frozen}))

    def plan(self, settings: Settings, evidence: pa.Table) -> tuple[int, str]:
        """Adds a version. The result is its number and what it changes."""
        number = max(self.numbers(), default=0) + 1
        before = self.current()
        document = {
            "schema": SCHEMA,
            "version": number,
            "before": before,
            "settings": settings.document(),
            "overrides": {"pins": dict(self.overrides().pins), "frozen": list(self.overrides().frozen)},
        }
        files = version_.files(self._inputs(document, evidence))
        part = self.root / "versions" / f".{number:04d}.{os.getpid()}"
        try:
            part.mkdir(parents=True)
            pq.write_table(evidence, part / EVIDENCE, compression="zstd")
            document["evidence_sha256"] = _digest(part / EVIDENCE)
            document["sha256"] = {
                name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()
            }
            for name, text in {INPUTS: _json(document), **files}.items():
                write(part / name, text)
            part.rename(self.path(number))
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise OutputError(f"{error.filename or part}: {error.strerror or error}") from error
        return number, files[version_.CHANGES]

    def _inputs(self, document: Mapping[str, object], evidence: pa.Table) -> Inputs:
        before, overrides = document["before"], document["overrides"]
        assert isinstance(overrides, dict)
        assert before is None or isinstance(before, int)
        return Inputs(
            version=int(str(document["version"])),
            settings=Settings.read(document["settings"]),  # type: ignore[arg-type]
            overrides=Overrides(overrides["pins"], tuple(overrides["frozen"])),
            before=self.decisions(before) if before is not None else (),
            before_as_of=self.settings(before).as_of if before is not None else None,
            evidence=evidence,
        )

    def differences(self, number: int) -> list[str]:
        """Computes a version again. The result names the files that differ from what is kept."""
        document = self._document(number)
        wrong = [] if _digest(self.path(number) / EVIDENCE) == document["evidence_sha256"] else [EVIDENCE]
        for name, text in version_.files(self._inputs(document, self.evidence(number))).items():
            if (self.path(number) / name).read_bytes() != text.encode():
                wrong.append(name)
        return wrong

    def apply(self, number: int) -> None:
        """Puts a version in force: one link is replaced, or nothing happens."""
        self.check(number)
        part = self.root / f".current.{os.getpid()}"
        try:
            part.unlink(missing_ok=True)
            part.symlink_to(Path("versions") / f"{number:04d}")
            part.replace(self.root / "current")
        except OSError as error:
            raise OutputError(f"{self.root / 'current'}: {error.strerror or error}") from error

    def note(self, at: datetime, done: str, **what: object) -> None:
        """Adds a line to the log."""
        line = json.dumps({"at": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "done": done, **what}, ensure_ascii=False)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(line + "\n")
        except OSError as error:
            raise OutputError(f"{self.root / 'log.jsonl'}: {error.strerror or error}") from error

    def log(self) -> list[dict[str, object]]:
        """All lines. One that a crash cut short is left out."""
        try:
            lines = (self.root / "log.jsonl").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [entry for line in lines if isinstance(entry := _parsed(line), dict)]


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
