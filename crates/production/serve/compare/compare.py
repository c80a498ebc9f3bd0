#!/usr/bin/env python3
"""The file server compared with others: what each costs for large and for small objects, over each HTTP.

    crates/production/serve/compare/compare.py --uncork target/release/uncork --repeat 3
    crates/production/serve/compare/compare.py --others /srv/chroot --protocols 3 --jobs large

Runs every server that is installed (`uncork`, `nginx`, `caddy`, and the h3 crate's over quinn, if its binary
is given), one after the other for each protocol and job, and all of that again for each repetition, so that
what else the machine does meets all of them. Says which are missing; installs and downloads nothing. Needs
root, `openssl`, and a `curl` with HTTP/3. Those of a newer distribution can be in a directory tree of their
own (--others), made with debootstrap for example; an uncork that lies below it is run in there, too, with the
same C library. Touches no network but that between its two namespaces.

What is the same for all: a veth pair with an MTU of 1500 (over `lo`, with its 65536, the costs are other
ones), one core for the server and one for the client, one worker, TLS 1.3 with one P-256 certificate, files
that are in the page cache, and the client: curl. `large` is one object over one connection; `small` is
objects of 1 KiB, 64 at a time, over as many connections as curl likes. CPU time is that of the server's
processes, which says what a server costs; how fast it went says more of the client and of who else was there.
`uncork-records` writes a record of each response and counts metrics, `nginx-log` writes a line of JSON for each.
`idle` is what the server holds in memory for connections that have fetched a small object and are kept (here
`uncork play` is the client).
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# The benchmarking range of RFC 2544.
SERVER, CLIENT, PREFIX = "198.18.77.1", "198.18.77.2", 24
PORT = 8443
NAMES = {"server": f"uncork-cmp-s{os.getpid()}", "client": f"uncork-cmp-c{os.getpid()}"}
CORES = {"server": 0, "client": 1}
CURL_HTTP = {"1.1": "--http1.1", "2": "--http2", "3": "--http3-only"}
SMALL_BYTES = 1024
AT_A_TIME = 64
TICKS = os.sysconf("SC_CLK_TCK")

NGINX = """
daemon off; worker_processes 1; pid {inside}/nginx.pid; error_log stderr crit; user root;
events {{ worker_connections 20000; }}
http {{
  log_format json escape=json '{{"time":"$time_iso8601","client":"$remote_addr","connection":$connection,'
    '"request":$connection_requests,"protocol":"$server_protocol","host":"$host","uri":"$uri","status":$status,'
    '"bytes":$body_bytes_sent,"seconds":$request_time,"rtt":"$tcpinfo_rtt"}}';
  {log} sendfile on; tcp_nopush on; keepalive_requests 100000000; default_type application/octet-stream;
  server {{
    listen {address}:{port} ssl; listen {address}:{port} quic reuseport; http2 on; http3 on; quic_gso on;
    ssl_certificate {inside}/cert.pem; ssl_certificate_key {inside}/key.pem; ssl_protocols TLSv1.3;
    root {inside}/files;
  }}
}}
"""

CADDY = """
{{
  admin off
  auto_https off
  persist_config off
}}
https://{address}:{port} {{
  tls {inside}/cert.pem {inside}/key.pem
  root * {inside}/files
  file_server
}}
"""


class MissingError(Exception):
    """What is not here."""


class Bench:
    """Files, namespaces, and how to run something in them."""

    def __init__(self, options):
        self.options = options
        self.others = pathlib.Path(options.others) if options.others else None
        top = (self.others or pathlib.Path("/")) / "tmp"
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="uncork-compare-", dir=top))
        # The same directory, as programs below `others` see it.
        self.inside = pathlib.Path("/tmp") / self.directory.name

    def __enter__(self):
        try:
            self.make_files()
            self.make_network()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def make_files(self):
        files = self.directory / "files"
        files.mkdir()
        block = os.urandom(1 << 20)
        with open(files / "large", "wb") as large:
            for _ in range(self.options.megabytes):
                large.write(block)
        (files / "small").write_bytes(os.urandom(SMALL_BYTES))
        # A server may keep a file in memory only if it has not changed for a while.
        time.sleep(2)
        self.directory.chmod(0o755)
        run(
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={SERVER}", "-addext", f"subjectAltName=IP:{SERVER}",
            "-keyout", self.directory / "key.pem", "-out", self.directory / "cert.pem",
        )  # fmt: skip

    def make_network(self):
        for name in NAMES.values():
            run("ip", "netns", "add", name)
        inside = ["ip", "-n", NAMES["server"]]
        run(*inside, "link", "add", "veth-s", "mtu", "1500", "type", "veth",
            "peer", "name", "veth-c", "netns", NAMES["client"], "mtu", "1500")  # fmt: skip
        for side, address in (("server", SERVER), ("client", CLIENT)):
            device = f"veth-{side[0]}"
            run("ip", "-n", NAMES[side], "address", "add", f"{address}/{PREFIX}", "dev", device)
            for up in ("lo", device):
                run("ip", "-n", NAMES[side], "link", "set", up, "up")

    def remove(self):
        for name in NAMES.values():
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def command(self, side, *command, is_other=False):
        """`command` in the namespace and on the core of its side, below `others` if it comes from there."""
        chroot = ["chroot", str(self.others)] if is_other and self.others else []
        place = ["ip", "netns", "exec", NAMES[side], "taskset", "-c", str(CORES[side])]
        return [*place, *chroot, *map(str, command)]

    def find(self, program):
        """Whether another one's program is there."""
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        top = str(self.others or "")
        if not any(os.access(f"{top}{directory}/{program}", os.X_OK) for directory in path.split(":")):
            raise MissingError(f"{program} is not in {top or 'the usual places'}")


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise MissingError(f"`{' '.join(map(str, command))}`: {done.stderr.strip()}")
    return done.stdout


# The servers: how each is started. All leave the directory's `files` at SERVER:PORT.


def uncork(bench, program=None, *more):
    program = pathlib.Path(program or bench.options.uncork).absolute()
    if not os.access(program, os.X_OK):
        raise MissingError(f"uncork is not at {program}: cargo build --release --features full, or --uncork PATH")
    is_inside = bench.others is not None and program.is_relative_to(bench.others)
    directory = bench.inside if is_inside else bench.directory
    if is_inside:
        program = "/" / program.relative_to(bench.others)
    return bench.command(
        "server", program, "serve", "--root", directory / "files", "--listen", f"{SERVER}:{PORT}",
        "--tls-cert", directory / "cert.pem", "--tls-key", directory / "key.pem", "--quiet",
        "--max-connections", 2 * bench.options.idle, "--network-share", 100,
        *bench.options.serve_options.split(), *(str(each).format(here=directory) for each in more), is_other=is_inside,
    )  # fmt: skip


def uncork_before(bench):
    if not bench.options.before:
        raise MissingError("--before PATH is not given")
    return uncork(bench, bench.options.before)


def uncork_records(bench):
    """With a record of each response, and metrics."""
    return uncork(bench, None, "--records", "{here}/records.jsonl", "--admin", "unix:{here}/admin")


def nginx_log(bench):
    """With a line of JSON for each response."""
    return nginx(bench, f"access_log {bench.inside}/access.log json;")


def nginx(bench, log="access_log off;"):
    bench.find("nginx")
    configuration = bench.directory / "nginx.conf"
    configuration.write_text(NGINX.format(inside=bench.inside, address=SERVER, port=PORT, log=log))
    return bench.command("server", "nginx", "-c", bench.inside / "nginx.conf", is_other=True)


def caddy(bench):
    bench.find("caddy")
    configuration = bench.directory / "Caddyfile"
    configuration.write_text(CADDY.format(inside=bench.inside, address=SERVER, port=PORT))
    arguments = ["run", "--adapter", "caddyfile", "--config", bench.inside / "Caddyfile"]
    return bench.command("server", "env", "GOMAXPROCS=1", "HOME=/tmp", "caddy", *arguments, is_other=True)


def h3_quinn(bench):
    program = bench.options.h3_quinn
    if not program:
        raise MissingError("h3-quinn is not given: build crates/production/serve/compare/h3-quinn, and --h3-quinn PATH")
    return bench.command("server", program, f"{SERVER}:{PORT}", bench.directory)


SERVERS = {
    "uncork": uncork, "uncork-before": uncork_before, "uncork-records": uncork_records,
    "nginx": nginx, "nginx-log": nginx_log, "caddy": caddy, "h3-quinn": h3_quinn,
}  # fmt: skip
PROTOCOLS = {"h3-quinn": ["3"]}


@contextlib.contextmanager
def started(bench, server):
    """A server that answers, as the ID of its session."""
    command = SERVERS[server](bench)
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            protocol = PROTOCOLS.get(server, ["1.1"])[0]
            deadline = time.monotonic() + 10
            while curl(bench, protocol, "small", 1)["failed"]:
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise MissingError(f"{server} does not answer: {log.read().strip()[-500:]}")
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def curl(bench, protocol, what, count):
    """Fetches `what` `count` times: bytes, failures, and seconds."""
    url = f"https://{SERVER}:{PORT}/{what}"
    if count > 1:
        url += f"?[1-{count}]"
    form = "%{http_code} %{http_version} %{size_download}\\n"
    arguments = ["-sk", CURL_HTTP[protocol], "--parallel", "--parallel-max", AT_A_TIME, "--max-time", 300]
    arguments += ["-w", "%{stderr}" + form, "-o", "/dev/null", url]
    begin = time.monotonic()
    command = bench.command("client", "curl", *arguments, is_other=True)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines = [line.split() for line in done.stderr.splitlines() if line.startswith("2")]
    right = [int(line[2]) for line in lines if line[:2] == ["200", protocol.removesuffix(".0")]]
    return {"failed": count - len(right), "bytes": sum(right), "seconds": time.monotonic() - begin}


def cpu_s(session):
    """CPU time of the processes of a session, which are those of a server."""
    spent = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                spent += sum(map(int, fields[11:15]))
    return spent / TICKS


def resident_mb(session):
    pages = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(bench, session, protocol, job):
    before = cpu_s(session)
    got = curl(bench, protocol, "large", 1) if job == "large" else curl(bench, protocol, "small", bench.options.requests)
    spent = cpu_s(session) - before
    return {**got, "cpu_s": spent, "resident_mb": resident_mb(session)}


def measure_idle(bench, session, protocol):
    """Memory for each of many connections. All of them are open at the end."""
    count = bench.options.idle
    before = resident_mb(session)
    url = f"https://{SERVER}:{PORT}/small"
    arguments = ["--insecure", "--http", protocol, "--connections", "kept", "--parallel", count]
    arguments += ["--repeat", 2 * count, "--gap", "2ms", "--quiet", "--format", "csv"]
    command = bench.command("client", bench.options.uncork, "play", "get", url, *arguments)
    with tempfile.TemporaryFile("w+") as log:
        client = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        # Each connection is begun 2 ms after the one before; half of the rest later all of them rest.
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(count * 0.003)
        peak = resident_mb(session)
        client.terminate()
        client.wait()
        log.seek(0)
        right = sum(",200," in line for line in log)
    return {"failed": max(0, count - right), "idle": count, "resident_mb": peak, "kb_each": (peak - before) * 1e3 / count}


def figure(job, sample):
    """What counts: CPU seconds for a GB, or requests for a CPU second."""
    if job == "idle":
        return sample["kb_each"]
    if job == "large":
        return sample["cpu_s"] / (sample["bytes"] / 1e9)
    return (sample["bytes"] / SMALL_BYTES) / max(sample["cpu_s"], 1 / TICKS)


def row(job, samples):
    good = [sample for sample in samples if not sample["failed"]]
    if not good:
        return ["failed"] * 4
    figures = sorted(figure(job, sample) for sample in good)
    digits = 2 if job == "large" else 0
    spread = f"{figures[0]:.{digits}f} to {figures[-1]:.{digits}f}"
    speeds = [sample["bytes"] * 8 / sample["seconds"] / 1e6 for sample in good if "seconds" in sample]
    speed = f"{statistics.median(speeds):.0f}" if speeds else ""
    resident = f"{max(sample['resident_mb'] for sample in good):.0f}"
    return [f"{statistics.median(figures):.{digits}f}", spread, speed, resident]


def table(samples):
    units = {"large": "CPU-s/GB", "small": "requests/CPU-s", "idle": "kB each, when idle"}
    for job, unit in units.items():
        rows = [(key, values) for key, values in samples.items() if key[2] == job]
        if not rows:
            continue
        print(f"\n| HTTP | server | {unit} | from, to | Mbit/s | RSS, MB |\n|---|---|---|---|---|---|")
        for (server, protocol, _), values in sorted(rows, key=lambda it: it[0][1]):
            print(f"| {protocol} | {server} | {' | '.join(row(job, values))} |")


def ratios(samples):
    """Each server compared with nginx in the same round: the median, and the range."""
    print("\n| HTTP | job | server | of nginx's figure | from, to |\n|---|---|---|---|---|")
    for (server, protocol, job), values in sorted(samples.items(), key=lambda it: (it[0][2], it[0][1])):
        pairs = zip(values, samples.get(("nginx", protocol, job), []), strict=False)
        good = [pair for pair in pairs if not any(sample["failed"] for sample in pair)]
        of = sorted(figure(job, sample) / figure(job, nginx) for sample, nginx in good)
        if of and server != "nginx":
            print(f"| {protocol} | {job} | {server} | {statistics.median(of):.2f} | {of[0]:.2f} to {of[-1]:.2f} |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", default="target/release/uncork", help="the binary")
    parser.add_argument("--before", help="another binary of uncork, to compare with")
    parser.add_argument("--serve-options", default="", help="more arguments of `uncork serve`")
    parser.add_argument("--others", help="a directory tree that nginx, caddy and curl are run in")
    parser.add_argument("--h3-quinn", help="the binary of crates/production/serve/compare/h3-quinn")
    parser.add_argument("--servers", default=",".join(SERVERS), help="which (default: %(default)s)")
    parser.add_argument("--protocols", default="1.1,2,3", help="which (default: %(default)s)")
    parser.add_argument("--jobs", default="large,small", help="which (default: %(default)s)")
    parser.add_argument("--megabytes", type=int, default=1000, help="of the large object")
    parser.add_argument("--requests", type=int, default=20000, help="of small objects")
    parser.add_argument("--idle", type=int, default=10000, help="idle connections (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default: %(default)s)")
    parser.add_argument("--json", help="file for all samples")
    return parser.parse_args()


def main():
    options = arguments()
    if os.geteuid():
        sys.exit("network namespaces take root")
    # Ended by a signal, it removes its namespaces, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    samples = {}
    with Bench(options) as bench:
        missing = {}
        for turn in range(options.repeat):
            for server in options.servers.split(","):
                if server in missing:
                    continue
                try:
                    with started(bench, server) as session:
                        for protocol in PROTOCOLS.get(server, options.protocols.split(",")):
                            for job in options.jobs.split(","):
                                idle = job == "idle"
                                sample = (
                                    measure_idle(bench, session, protocol) if idle else measure(bench, session, protocol, job)
                                )
                                samples.setdefault((server, protocol, job), []).append(sample)
                                print(f"{turn + 1}/{options.repeat} {server} HTTP/{protocol} {job}: {sample}", file=sys.stderr)
                except MissingError as problem:
                    missing[server] = str(problem)
                    print(f"left out: {problem}", file=sys.stderr)
    if options.json:
        rows = [{"server": s, "protocol": p, "job": j, "samples": v} for (s, p, j), v in samples.items()]
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    table(samples)
    ratios(samples)


if __name__ == "__main__":
    main()
