"""What tests of `uncork learn` have in common: settings for the made-up records of `demo`."""

import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from uncork.learn import demo
from uncork.learn.settings import Settings

KEY = "000102030405060708090a0b0c0d0e0f"
FIRST_DAY = int(demo.START.timestamp()) // 86_400
NOW = demo.START + timedelta(days=7, hours=1)
SETTINGS = Settings(
    experiment="explore",
    control="control",
    treated="bbr",
    arms={"control": {"tcp": "cubic"}, "bbr": {"tcp": "bbr"}},
    as_of=FIRST_DAY + 7,
    key=KEY,
    # Each of a dozen networks is more of the traffic than usually may be harmed.
    harmed=0.05,
)


def program() -> str:
    """The program that reads policies."""
    uncork = os.environ.get("UNCORK") or shutil.which("uncork")
    if not uncork:
        pytest.skip("*** NOT RUN: set UNCORK=/path/to/uncork ***")
    return uncork


def check(policy: Path) -> None:
    """Fails if a server would refuse the policy."""
    subprocess.run([program(), "policy", "check", str(policy)], check=True, timeout=60)


def decision(policy: Path, address: str, *facts: str) -> dict[str, Any]:
    """What the server decides for a request."""
    asked = ["--ip", address, "--at", "2026-11-10T00:00:00Z", "--path", "/a", *facts]
    done = subprocess.run(
        [program(), "policy", "explain", str(policy), *asked, "--format", "json"],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)["decision"]
    return found
