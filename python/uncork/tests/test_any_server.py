"""docs/reference/steer.md: nginx, `uncork steer` and the analysis are an A/B test. It needs root.

The clients are 120 networks behind an emulated path of 20 ms and 1 % loss. Their packets go through it in a
tunnel, because the path knows only its own addresses.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from capability import not_run
from test_design import uncork
from uncork.experiment.cli import main

DOCUMENT = Path(__file__).parents[3] / "docs/reference/steer.md"
CGROUP = "/sys/fs/cgroup/system.slice/nginx.service"
NETWORKS = 120

NGINX = """
user root; pid nginx.pid; error_log error.log; daemon off; worker_processes 1;
events { worker_connections 1024; }
http {
    access_log off; sendfile on;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    server { listen 80; root web; }
}
"""

TUNNEL = """set -e
ip link add tunnel type vxlan id 1 local {own} remote {other} dstport 4789
ip link set tunnel up
ip addr add {address}/8 dev tunnel
"""

SERVER = """
{apply}
{record} & recorder=$!
sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec nginx -p . -c nginx.conf' & server=$!
for i in $(seq 600); do [ -e loaded ] && break; sleep 0.1; done
sleep 1
kill -INT $recorder
wait $recorder
uncork steer status --format json > status.json
{revert}
kill $server
wait $server || true
[ ! -e /sys/fs/bpf/uncork ]
touch done
"""

CLIENT = """
ip route add local 10.2.0.0/16 dev lo
for i in $(seq 100); do python3 load.py 1 2> /dev/null && break; sleep 0.1; done
python3 load.py {networks} || exit 8
touch loaded
for i in $(seq 300); do [ -e done ] && exit 0; sleep 0.1; done
exit 9
"""

LOAD = """
import http.client, sys
from concurrent.futures import ThreadPoolExecutor

def get(network):
    client = http.client.HTTPConnection("10.1.0.1", 80, timeout=60, source_address=(f"10.2.{network}.7", 0))
    client.request("GET", "/song")
    assert len(client.getresponse().read()) == 3200000
    client.close()

with ThreadPoolExecutor(40) as pool:
    list(pool.map(get, range(int(sys.argv[1]))))
"""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of version 2 for nginx."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if os.geteuid() != 0 or root is None:
        not_run("bpf", "it needs root and cgroups of version 2")
    path = root / f"uncork-any-server-{os.getpid()}"
    path.mkdir()
    yield path
    path.rmdir()


def what_is_missing() -> tuple[str, str] | None:
    """The capability that this machine lacks, and why."""
    controllers = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    if shutil.which("nginx") is None:
        return "nginx", "nginx is not installed"
    if "bbr" not in controllers.read_text().split():
        return "bbr", "the kernel has no bbr: modprobe tcp_bbr"
    if not Path("/dev/net/tun").exists():
        return "netns", "/dev/net/tun is missing"
    vxlan = ["unshare", "--net", "ip", "link", "add", "tunnel", "type", "vxlan", "id", "1", "dstport", "4789"]
    if subprocess.run(vxlan, capture_output=True, timeout=10).returncode != 0:
        return "netns", "this kernel has no vxlan"
    return None


def block(kind: str) -> str:
    """The first block of this kind in the section about nginx."""
    _, section = DOCUMENT.read_text(encoding="utf-8").split("## An A/B test with nginx\n", 1)
    found = re.search(rf"^```{kind}\n(.*?)^```", section, flags=re.M | re.S)
    assert found, kind
    return found[1]


def serve(work: Path, cgroup: Path, program: str, apply: str, record: str, revert: str) -> None:
    """The commands of the page around nginx, while each network downloads once."""
    (work / "web").mkdir()
    (work / "web/song").write_bytes(os.urandom(3_200_000))
    near, far = "198.19.0.1", "198.18.0.1"
    server = TUNNEL.format(own=far, other=near, address="10.1.0.1")
    server += SERVER.format(apply=apply, record=f"exec {record}", revert=revert)
    client = TUNNEL.format(own=near, other=far, address="10.3.0.1") + CLIENT.format(networks=NETWORKS)
    texts = {"policy.toml": block("toml"), "nginx.conf": NGINX, "load.py": LOAD}
    for name, text in {**texts, "server.sh": server, "client.sh": client}.items():
        (work / name).write_text(text, encoding="utf-8")
    emulated = "mount -t bpf bpf /sys/fs/bpf && exec uncork emu -q --rate 400mbit --delay 10ms --loss 1% "
    emulated += "--server 'sh server.sh' -- sh client.sh"
    path = f"{Path(program).resolve().parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", emulated],
        env={**os.environ, "CGROUP": str(cgroup), "PATH": path},
        cwd=work,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_nginx_and_steer_and_analyze_are_an_experiment(
    tmp_path: Path, cgroup: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not DOCUMENT.exists():
        pytest.skip(f"*** NOT RUN: {DOCUMENT} is only in the repository ***")
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    if (missing := what_is_missing()) is not None:
        not_run(*missing)
    lines = [line.removeprefix("sudo ") for line in block("sh").strip().splitlines()]
    apply, record, analyze, revert = (line.replace(CGROUP, str(cgroup)) for line in lines)
    assert record.endswith(" --for 14d")
    serve(tmp_path, cgroup, program, apply, record.removesuffix(" --for 14d"), revert)
    status = json.loads((tmp_path / "status.json").read_text(encoding="utf-8"))
    counted = {one["arm"]: one["connections"] for one in status["cgroups"][0]["decided"]}
    assert counted[None] == 0
    assert min(counted["cubic"], counted["bbr"]) > NETWORKS / 4
    # One more of the first network: the client asks until nginx answers.
    assert sum(counted.values()) == NETWORKS + 1

    monkeypatch.chdir(tmp_path)
    program, subcommand, *arguments = shlex.split(analyze)
    assert (program, subcommand) == ("uncork", "experiment")
    # The guardrails depend on the machine; what the arms got does not.
    main(arguments)
    printed = capsys.readouterr().out
    assert f"bbr against cubic · trial · 1 day, {NETWORKS} units" in printed, printed
    better = re.search(r"^p50 throughput ≥ 3 MB +better +\+(\d+)", printed, flags=re.M)
    assert better is not None, printed
    assert int(better[1]) > 50, printed
