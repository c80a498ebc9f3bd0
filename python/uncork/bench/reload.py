"""The longest pause of requests while `uncork serve` reads a table of a million networks again.

    python bench/reload.py learned            a directory of bench/learn_scale.py --again --dir

One client asks for a small file over a kept connection, as fast as it can. After a while the policy's link is
replaced, so that the server reads policy and table again. Prints the longest time between two answers before,
during and after, three times.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUIET_SECONDS, LIMIT_SECONDS = 5.0, 90.0


def longest(
    client: http.client.HTTPConnection, seconds: float, until: Path | None = None, lines: int = 0
) -> float:
    """Milliseconds between two answers; ends early when the server's log exceeds its limit of lines."""
    worst, began = 0.0, time.monotonic()
    last = began
    while last - began < seconds:
        client.request("GET", "/page")
        client.getresponse().read()
        now = time.monotonic()
        worst, last = max(worst, now - last), now
        if until is not None and until.read_bytes().count(b"\n") > lines:
            break
    return 1000 * worst


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, help="of versions")
    parser.add_argument("--uncork", default=os.environ.get("UNCORK", "uncork"), metavar="PROGRAM")
    options = parser.parse_args()
    uncork = shutil.which(options.uncork)
    if uncork is None:
        parser.error("program `uncork` not found: name it with --uncork")
    versions = sorted((options.directory / "versions").iterdir())
    with tempfile.TemporaryDirectory(prefix="uncork-reload-") as scratch:
        work = Path(scratch)
        (work / "public").mkdir()
        (work / "public/page").write_bytes(b"x" * 1000)
        (work / "current").symlink_to(versions[-1].resolve())
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [
            uncork,
            "serve",
            "--root",
            str(work / "public"),
            "--plain",
            "--listen",
            f"127.0.0.1:{port}",
        ]
        command += ["--policy", str(work / "current/policy.toml")]
        log = work / "log"
        with log.open("wb") as errors:
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            for _ in range(600):
                try:
                    client.connect()
                    break
                except OSError:
                    time.sleep(0.1)
            for number in range(3):
                before = longest(client, QUIET_SECONDS)
                lines = log.read_bytes().count(b"\n")
                part = work / "part"
                part.symlink_to(versions[-1 - (number + 1) % len(versions)].resolve())
                part.replace(work / "current")
                began = time.monotonic()
                during = longest(client, LIMIT_SECONDS, log, lines)
                took = time.monotonic() - began
                after = longest(client, QUIET_SECONDS)
                print(
                    f"longest pause: before {before:.1f} ms, while it was read ({took:.1f} s) "
                    f"{during:.1f} ms, after {after:.1f} ms; load {os.getloadavg()[0]:.1f}"
                )
        finally:
            server.terminate()
            server.wait(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
