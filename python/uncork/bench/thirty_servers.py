"""The servers of `thirty.py`: `uncork serve`, or nginx with the policy applied by `uncork steer`.

`uncork serve` sees each request's cookie, so a user is a cookie, and every network has an estimate of its
own. For nginx the policy decides before a request is read: the unit of the experiment is the client's
/24. There each of the thirty is an AS of 250 /24s, which a database of origins names (`--geo`), and learning
is by AS. Its records are the kernel's, of connections: without the size of an object only downloads of 3 MB
and more are compared, so the paths are faster and shorter, and lose less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from live import NotPossibleError, Processes, say, start_server

SERVER = "100.127.0.1"
"""The server's address; networks are 100.64.N.0/24, for which packets are tunnelled: a path knows its own
addresses only."""
FIRST_AS = 64_512
NETWORKS_OF_AS = 250


def inside(namespace: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *command]


class Server(Protocol):
    """What the course needs of a server."""

    size: int
    """Bytes of an object."""
    section: str
    """The class of objects that it is."""
    rate: float
    """Factor of the paths' rate."""
    delay: float
    """Factor of the round-trip time."""
    loss: float
    """Factor of the random loss."""
    learning: tuple[str, ...]
    """Options of `uncork learn run`."""

    def start(self, processes: Processes, far: str, near: Mapping[int, dict[str, Any]]) -> None:
        """Starts the server before any policy."""

    def enforce(self, processes: Processes, policy: Path, **listeners: int) -> None:
        """Applies a policy and keeps records of it, until the processes are ended."""

    def follow(self, processes: Processes, policy: Path) -> None:
        """From now on applies the policy behind the link, after each change."""

    def client(self, network: int, user: int) -> str:
        """What curl's configuration says of a user."""

    def entry(self, network: int) -> str:
        """The table's name of one of the thirty."""

    def entry_of(self, record: Mapping[str, Any]) -> str:
        """The table's name of the network of a record."""


class Serve:
    """`uncork serve`."""

    size, section, rate, delay, loss = 200_000, "small", 1.0, 1.0, 1.0
    learning = ("--random", "30%")

    def __init__(self, uncork: str, work: Path) -> None:
        self.uncork, self.work, self.far = uncork, work, ""

    def start(self, processes: Processes, far: str, near: Mapping[int, dict[str, Any]]) -> None:
        del processes, near
        self.far = far

    def enforce(self, processes: Processes, policy: Path, **listeners: int) -> None:
        command = inside(self.far, self.uncork, "serve", "--root", str(self.work / "public"), "--plain")
        command += ["--policy", str(policy), "--records", str(records_file(self.work, listeners))]
        for listener, port in listeners.items():
            command += ["--listen", f"{listener}@{SERVER}:{port}"]
        start_server(processes, command, self.work / f"serve-{time.time_ns()}.txt", len(listeners))

    def follow(self, processes: Processes, policy: Path) -> None:
        """It reads the policy again by itself."""

    def client(self, network: int, user: int) -> str:
        del network
        return f'cookie = "uid=u{user}"\n'

    def entry(self, network: int) -> str:
        return f"100.64.{network}.0/24"

    def entry_of(self, record: Mapping[str, Any]) -> str:
        return str(record["service"]["client"])


NGINX = """
user root; pid nginx.pid; error_log error.log; daemon off; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    {log} sendfile on;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    server {{ {listen} root public; }}
}}
"""


class NginxAndSteer:
    """Debian's nginx in a cgroup, `uncork steer apply` and `uncork steer record`."""

    size, section, rate, delay, loss = 3_200_000, "large", 4.0, 0.25, 0.3
    learning = ("--random", "30%", "--unit", "prefix", "--only", "large", "--site", "none")
    log = "access_log off;"
    recording: tuple[str, ...] = ()
    """Further options of `uncork steer record`."""

    def __init__(self, uncork: str, work: Path, ports: Mapping[str, int]) -> None:
        self.uncork, self.work, self.far, self.ports = uncork, work, "", ports
        self.cgroup = cgroup2() / f"uncork-thirty-{os.getpid()}"
        self.origins = work / "origins.mmdb"

    def start(self, processes: Processes, far: str, near: Mapping[int, dict[str, Any]]) -> None:
        self.prepare(processes, far, near)
        listen = " ".join(f"listen {SERVER}:{port};" for port in self.ports.values())
        (self.work / "nginx.conf").write_text(NGINX.format(log=self.log, listen=listen), encoding="utf-8")
        command = self.in_cgroup("nginx", "-p", str(self.work), "-c", "nginx.conf")
        processes.start(command, out=self.work / "nginx.txt")
        processes.after(lambda: self._steer("revert"))

    def prepare(self, processes: Processes, far: str, near: Mapping[int, dict[str, Any]]) -> None:
        """Addresses of all clients, their origins, and the cgroup."""
        self.far = far
        write_origins(self.origins, len(near))
        for number, host in near.items():
            # Any address of the AS is the client's.
            ip(host["name"], "route", "add", "local", f"11.{number}.0.0/16", "dev", "lo")
            ip(far, "route", "add", f"11.{number}.0.0/16", "via", f"100.64.{number}.7")
        self.cgroup.mkdir()
        processes.after(self.cgroup.rmdir)

    def enforce(self, processes: Processes, policy: Path, **listeners: int) -> None:
        self.apply(policy)
        records = records_file(self.work, listeners)
        command = self._in_namespace(self.uncork, "steer", "record", str(records), "--geo", str(self.origins))
        command += self.recording
        recorder = processes.start(command, out=records.with_suffix(".txt"))
        time.sleep(2)
        if recorder.poll() is not None:
            raise NotPossibleError(records.with_suffix(".err").read_text().strip())

    def follow(self, processes: Processes, policy: Path) -> None:
        """As a path unit of systemd would: steer reads a table when the policy is applied."""
        ended = threading.Event()
        link = policy.parent
        known = os.readlink(link)

        def watch(known: str) -> None:
            while not ended.wait(1):
                if (now := os.readlink(link)) != known:
                    known = now
                    self.apply(policy)
                    say(f"steer: {now} is active")

        thread = threading.Thread(target=watch, args=(known,))
        thread.start()
        processes.after(thread.join)
        processes.after(ended.set)

    def client(self, network: int, user: int) -> str:
        return f'interface = "{self.address(network, user)}"\n'

    def address(self, network: int, user: int) -> str:
        """A user's address."""
        return f"11.{network}.{user % NETWORKS_OF_AS}.7"

    def entry(self, network: int) -> str:
        return f"AS{FIRST_AS + network}"

    def entry_of(self, record: Mapping[str, Any]) -> str:
        return f"AS{record['service']['asn']}"

    def in_cgroup(self, *command: str) -> list[str]:
        """In the server's network and its cgroup."""
        join = f'echo $$ > {self.cgroup}/cgroup.procs; exec "$@"'
        return self._in_namespace("sh", "-c", join, "sh", *command)

    def apply(self, policy: Path) -> None:
        words = [f"--listener={name}={port}" for name, port in self.ports.items()]
        self._steer("apply", str(policy), "--cgroup", str(self.cgroup), "--geo", str(self.origins), *words)

    def _steer(self, *words: str) -> None:
        command = self._in_namespace(self.uncork, "steer", *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise NotPossibleError(done.stderr.strip())

    def _in_namespace(self, *command: str) -> list[str]:
        """In the server's network, but with this system's mounts: `ip netns exec` has other ones of /sys."""
        return ["nsenter", f"--net=/run/netns/{self.far}", *command]


def ip(namespace: str, *words: str) -> None:
    subprocess.run(inside(namespace, "ip", *words), check=True, timeout=30)


def records_file(work: Path, listeners: Mapping[str, int]) -> Path:
    """A new file of records, in a directory for these listeners."""
    directory = work / f"records-{'+'.join(listeners)}"
    directory.mkdir(exist_ok=True)
    return directory / f"{time.time_ns()}.jsonl"


def write_origins(path: Path, systems: int) -> None:
    """A database in MaxMind's format: each /16 is an AS."""
    from mmdb_writer import MMDBWriter
    from netaddr import IPSet

    writer = MMDBWriter(4, "uncork-thirty", int_type="u32", description="AS of each of the thirty")
    for number in range(systems):
        writer.insert_network(IPSet([f"11.{number}.0.0/16"]), {"autonomous_system_number": FIRST_AS + number})
    writer.to_db_file(str(path))


def cgroup2() -> Path:
    """Where cgroups of version 2 are."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if root is None:
        raise NotPossibleError("cgroups of version 2 are not mounted")
    return root


def nginx_is_missing() -> str | None:
    """Why nginx and steer cannot run here, or None."""
    try:
        import mmdb_writer  # noqa: F401
    except ImportError:
        return "the database of origins needs: pip install mmdb_writer"
    return None if shutil.which("nginx") else "nginx is not installed"


def with_own_pins() -> None:
    """Goes on in a mount namespace with a BPF file system of its own: other policies of this host stay."""
    if os.environ.get("UNCORK_OWN_PINS"):
        return
    script = 'mount -t bpf bpf /sys/fs/bpf && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, *sys.argv]
    os.execvpe(command[0], command, {**os.environ, "UNCORK_OWN_PINS": "1"})
