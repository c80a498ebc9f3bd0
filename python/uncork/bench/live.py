"""An experiment while it runs: real players behind emulated paths of four regions, followed to its end.

    python bench/live.py                    200 players, five minutes, then the planned look
    python bench/live.py --harm             the same with a harmful arm: ends when a guardrail breaks
    python bench/live.py --players 8 --for 20

`uncork emu` puts four paths between one server and the players' hosts (live.toml). `uncork serve --policy`
assigns each player to CUBIC or BBR and writes records as they come. `uncork experiment analyze --follow`
looks at them until the planned end or until a guardrail breaks. It needs root, /dev/net/tun and the kernel's
BBR.
All traffic stays in the namespaces; what was started is ended, also after Ctrl-C.

Exit status: 0 the planned look was made; 1 a guardrail broke; 2 wrong usage; 3 not possible on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCENARIO = Path(__file__).with_name("live.toml")
EXPERIMENT = "live"
HOSTS = "emu.json"
BITRATE_KBIT = 320
FIRST_PORT = 8081
HARMFUL_CAP = "350kbit"
"""Just above the songs' bitrate: no song stops, but each chunk takes many times as long."""
START_SECONDS, STOP_SECONDS = 20.0, 10.0
LIMIT_SECONDS = 900


class NotPossibleError(Exception):
    """This machine cannot do it, and why."""


@dataclass(frozen=True)
class Region:
    """Where some of the players are: the namespace behind the region's path, and the server's port for it."""

    name: str
    namespace: str
    port: int


@dataclass(frozen=True)
class Place:
    """The emulated network, while it is up."""

    server: str
    """The server's namespace."""
    address: str
    regions: tuple[Region, ...]


class Processes:
    """Processes that are ended in reverse order, also after an error."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def start(
        self, command: list[str], *, stop: signal.Signals = signal.SIGTERM, out: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts in a process group of its own, so that Ctrl-C reaches only this program."""
        to = self._stack.enter_context(out.open("wb")) if out else subprocess.DEVNULL
        errors = self._stack.enter_context(out.with_suffix(".err").open("wb")) if out else None
        process = subprocess.Popen(command, stdout=to, stderr=errors, process_group=0)
        self._stack.callback(end, process, stop)
        return process

    def after(self, action: Callable[[], object]) -> None:
        """Runs `action` when all processes started later have ended."""
        self._stack.callback(action)


def end(process: subprocess.Popen[bytes], by: signal.Signals = signal.SIGTERM) -> None:
    """Asks a process to end, and makes it end if it does not."""
    if process.poll() is None:
        process.send_signal(by)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())}Z  {words}", flush=True)


def what_is_missing(uncork: str | None) -> str | None:
    """Why it cannot run here, or None."""
    if uncork is None:
        return "program `uncork` not found: build it, and name it with --uncork or UNCORK"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing"
    controllers = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    if not controllers.exists() or "bbr" not in controllers.read_text().split():
        return "the kernel has no bbr: modprobe tcp_bbr"
    return "`ip` is missing: install iproute2" if shutil.which("ip") is None else None


def warn_if_late(work: Path) -> None:
    """The emulation reports at its end whether it kept up."""
    _, _, summary = (work / HOSTS).read_text().partition("\n")
    if json.loads(summary)["flagged"]:
        say("the emulation was late: do not rely on this run")


def carried_out(course: Callable[[], int]) -> int:
    """The exit status of a course that may be impossible here or interrupted. SIGTERM ends it orderly."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return course()
    except NotPossibleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def hosts_of(processes: Processes, uncork: str, scenario: Path, out: Path) -> list[dict[str, Any]]:
    """Starts the emulation of a scenario and waits for its hosts."""
    emulation = processes.start(
        [uncork, "emu", "--up", str(scenario), "--format", "json"], stop=signal.SIGINT, out=out
    )
    for _ in range(int(START_SECONDS * 10)):
        if emulation.poll() is not None:
            raise NotPossibleError(out.with_suffix(".err").read_text().strip())
        if out.read_bytes().endswith(b"]\n"):
            hosts: list[dict[str, Any]] = json.loads(out.read_text())
            return hosts
        time.sleep(0.1)
    raise NotPossibleError(f"`uncork emu --up` printed no hosts within {START_SECONDS:g} s")


def bring_up(processes: Processes, uncork: str, work: Path) -> Place:
    """The four regions and the server."""
    hosts = hosts_of(processes, uncork, SCENARIO, work / HOSTS)
    far = next(host for host in hosts if host["side"] == "far")
    near = [host for host in hosts if host["side"] == "near"]
    regions = tuple(Region(host["classes"][0], host["name"], FIRST_PORT + n) for n, host in enumerate(near))
    return Place(far["name"], far["v4"], regions)


def policy(regions: tuple[Region, ...], harm: bool) -> str:
    """Half of the players get BBR. A player is known by its CMCD session: a region has one address."""
    names = ", ".join(f'"{region.name}"' for region in regions)
    cap = f'pacing_cap = "{HARMFUL_CAP}"\n' if harm else ""
    return f"""key = "{secrets.token_hex(16)}"

[experiment.{EXPERIMENT}]
unit = "header:cmcd-session"
share = "100%"

[experiment.{EXPERIMENT}.arm.control]
tcp = "cubic"

[experiment.{EXPERIMENT}.arm.bbr]
tcp = "bbr"
{cap}
[[rule]]
listener = [{names}]
experiment = "{EXPERIMENT}"
"""


def serve(processes: Processes, uncork: str, place: Place, work: Path, harm: bool, seconds: int) -> None:
    """Starts the server of the songs."""
    root = work / "public"
    root.mkdir()
    with (root / "song").open("wb") as song:
        song.truncate(BITRATE_KBIT * 125 * (seconds + 120))
    (work / "policy.toml").write_text(policy(place.regions, harm))
    (work / "records").mkdir()
    command = ["ip", "netns", "exec", place.server, uncork, "serve", "--root", str(root), "--plain"]
    command += ["--policy", str(work / "policy.toml"), "--records", str(work / "records" / "served.jsonl")]
    # All players of a region have one address.
    command += ["--network-share", "100"]
    for region in place.regions:
        command += ["--listen", f"{region.name}@{place.address}:{region.port}"]
    start_server(processes, command, work / "serve.txt", len(place.regions))


def start_server(processes: Processes, command: list[str], out: Path, listeners: int = 1) -> None:
    """Starts `uncork serve` and waits until it listens."""
    server = processes.start(command, out=out)
    for _ in range(int(START_SECONDS * 10)):
        if server.poll() is not None:
            raise NotPossibleError(out.with_suffix(".err").read_text().strip())
        if out.read_bytes().count(b"\n") >= listeners:
            return
        time.sleep(0.1)
    raise NotPossibleError(f"`uncork serve` did not listen within {START_SECONDS:g} s")


def play(
    processes: Processes, uncork: str, place: Place, work: Path, players: int, seconds: int
) -> list[subprocess.Popen[bytes]]:
    """Starts the players: one process for each region."""
    started = []
    for n, region in enumerate(place.regions):
        count = players // len(place.regions) + (n < players % len(place.regions))
        url = f"http://{place.address}:{region.port}/song"
        command = ["ip", "netns", "exec", region.namespace, uncork, "play", "audio", url, "-q"]
        command += ["--listeners", str(count), "--spread", f"{min(30, seconds // 4)}s", "--seed", str(n + 1)]
        # A duration saves the HEAD request, which would come before the player's session is known.
        command += [
            "--bitrate",
            f"{BITRATE_KBIT}kbit",
            "--duration",
            f"{seconds + 60}s",
            "--for",
            f"{seconds}s",
        ]
        command += ["--records", str(work / f"played-{region.name}.jsonl"), "--format", "json"]
        started.append(processes.start(command, out=work / f"play-{region.name}.json"))
    return started


def analyze(work: Path, *more: str) -> list[str]:
    """The analysis, by region, with its default guardrails."""
    program = [sys.executable, "-m", "uncork.experiment.cli", "analyze", str(work / "records")]
    return [*program, "--by", "listener", "--primary", "bandwidth:p50", "-o", str(work / "report"), *more]


def heard(work: Path, regions: tuple[Region, ...]) -> int:
    """Players that heard something, by their own records."""
    files = [work / f"played-{region.name}.jsonl" for region in regions]
    records = [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]
    return sum(1 for record in records if record["group"] == "listener" and record["playback"]["items"])


def run(uncork: str, options: argparse.Namespace, work: Path) -> int:
    status = experiment(uncork, options, work)
    warn_if_late(work)
    return status


def experiment(uncork: str, options: argparse.Namespace, work: Path) -> int:
    with ExitStack() as stack:
        processes = Processes(stack)
        place = bring_up(processes, uncork, work)
        serve(processes, uncork, place, work, options.harm, options.seconds)
        regions = ", ".join(region.name for region in place.regions)
        say(f"{options.players} players in {regions}; arm bbr{' with a harmful cap' if options.harm else ''}")
        players = play(processes, uncork, place, work, options.players, options.seconds)
        status = follow(work, players, options)
        if status == 0:
            say(f"the players are done, {heard(work, place.regions)} of {options.players} heard music")
            say("the planned look:")
            status = subprocess.run(analyze(work, "--look", "1/1"), timeout=LIMIT_SECONDS).returncode
        else:
            say(f"stopped: `analyze --follow` ended with status {status}")
        return status


def follow(work: Path, players: list[subprocess.Popen[bytes]], options: argparse.Namespace) -> int:
    """Follows the records until the players are done (0), or a guardrail breaks (1)."""
    command = analyze(work, "--follow", "--every", str(options.every))
    # If it must be killed, its unpacked files go with the work directory.
    scratch = work / "scratch"
    scratch.mkdir()
    follower = subprocess.Popen(command, process_group=0, env=os.environ | {"TMPDIR": str(scratch)})
    try:
        until = time.monotonic() + min(options.seconds + 60, LIMIT_SECONDS)
        while time.monotonic() < until and any(player.poll() is None for player in players):
            if follower.poll() is not None:
                return follower.returncode
            time.sleep(0.5)
        return 0
    finally:
        end(follower, signal.SIGINT)
        shutil.rmtree(scratch)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--players", type=int, default=200, help="of all regions together [default: 200]")
    parser.add_argument(
        "--for",
        dest="seconds",
        type=int,
        default=300,
        metavar="SECONDS",
        help="planned length [default: 300]",
    )
    parser.add_argument(
        "--every", type=float, default=30, metavar="SECONDS", help="look so often [default: 30]"
    )
    parser.add_argument("--harm", action="store_true", help=f"cap the arm bbr at {HARMFUL_CAP}")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="keep records and report in DIR")
    parser.add_argument("--uncork", default=os.environ.get("UNCORK", "uncork"), metavar="PROGRAM")
    options = parser.parse_args()
    if not 4 <= options.players <= 1000 or not 10 <= options.seconds <= LIMIT_SECONDS - 60:
        parser.error(f"there can be 4 to 1000 players, for 10 to {LIMIT_SECONDS - 60} s")
    if options.output and options.output.exists():
        parser.error(f"-o {options.output} exists: name a new directory")
    uncork = shutil.which(options.uncork)
    missing = what_is_missing(uncork)
    if missing is not None or uncork is None:
        print(f"error: {missing}", file=sys.stderr)
        return 3
    # A shell starts what runs in the background with SIGINT ignored, and so its children's would be.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def course() -> int:
        if options.output:
            options.output.mkdir(parents=True)
            return run(uncork, options, options.output.resolve())
        with tempfile.TemporaryDirectory(prefix="uncork-live-") as work:
            return run(uncork, options, Path(work))

    return carried_out(course)


if __name__ == "__main__":
    sys.exit(main())
