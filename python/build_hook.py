"""The parts of the wheel in Rust: the program and the module. One call of cargo builds both, so it compiles their crates once.

deploy/wheels.sh builds for other machines: `UNCORK_BUILT` is the directory of both, `UNCORK_PLATFORM` the platform in the tag.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CARGO = ("cargo", "build", "--profile", "wheel", "--locked", "--message-format", "json-render-diagnostics")
PACKAGES = ("-p", "uncork", "-p", "uncork-python", "--features", "uncork/full")
PROGRAM, MODULE = "uncork", "_native.abi3.so"


class CargoBuildHook(BuildHookInterface[Any]):
    """Adds both to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is written."""
        built = os.environ.get("UNCORK_BUILT")
        files = list(Path(built).iterdir()) if built else self.build()
        program = next(path for path in files if path.name == PROGRAM)
        module = next(path for path in files if path.stem == "libuncork_native" and path.suffix in (".so", ".dylib"))
        platform = os.environ.get("UNCORK_PLATFORM") or sysconfig.get_platform().translate(str.maketrans("-.", "__"))
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["shared_scripts"][str(program)] = PROGRAM
        if version == "editable":
            shutil.copy2(module, Path(self.root, "python/uncork/src/uncork", MODULE))
        else:
            build_data["force_include"][str(module)] = f"uncork/{MODULE}"

    def build(self) -> list[Path]:
        """The files that cargo has built."""
        if shutil.which("cargo") is None:
            self.app.abort("cargo not found: install Rust 1.93 or newer (https://rustup.rs), or take a wheel")
        done = subprocess.run([*CARGO, *PACKAGES], cwd=self.root, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            self.app.abort("cargo failed: its message is above")
        return [Path(name) for line in done.stdout.splitlines() for name in json.loads(line).get("filenames", [])]
