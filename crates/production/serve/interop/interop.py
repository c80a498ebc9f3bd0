#!/usr/bin/env python3
"""Clients that others wrote, against `uncork serve`: what of HTTP each of them gets to work.

    crates/production/serve/interop/interop.py --uncork target/release/uncork
    crates/production/serve/interop/interop.py --others /srv/chroot --python venv/bin/python3 --quicgo /tmp/quicgo --only curl

Each check is a run of `uncork emu`: server and client in network namespaces of their own, 100 Mbit/s and 20 ms
between them, 2 % of the packets lost where it is about loss. A check passes if the client printed what it should:
the SHA-256 of what was sent, a session that was resumed, and so on. A client that is not there is said to be
missing; nothing is installed or downloaded. Needs root and `openssl`.

Clients: curl with HTTP/3, wrk, h2load (may lie in a tree of their own, --others), h2spec (--h2spec), aioquic
(--python, an interpreter that has it), quic-go (--quicgo, built from `quicgo/` here), headless Chromium, oha (--oha), and
h3i, which breaks the rules of HTTP/3 one by one (--h3i, built from `h3i/` here).
"""

import argparse
import base64
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOST, PORT = "198.18.0.1", 8443
URL = f"https://{HOST}:{PORT}"
LARGE, SMALL = 5_000_000, 1024

PAGE = """<!doctype html><title>waits</title><script>
(async () => {
  const bytes = await (await fetch("/large")).arrayBuffer();
  const part = await fetch("/large", {headers: {range: "bytes=1000-1999"}});
  const hash = await crypto.subtle.digest("SHA-256", bytes);
  const hex = (buffer) => Array.from(new Uint8Array(buffer), (it) => it.toString(16).padStart(2, "0")).join("");
  const seen = performance.getEntriesByType("resource").map((it) => it.nextHopProtocol);
  const partial = hex(await crypto.subtle.digest("SHA-256", await part.arrayBuffer()));
  document.body.textContent = [hex(hash), part.status, partial, ...seen].join(" ");
})();
</script><body>waits</body>
"""


class Bench:
    """A directory to serve, and the programs."""

    def __init__(self, options):
        self.options = options
        self.others = options.others
        top = pathlib.Path(self.others or "/") / "tmp"
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="uncork-interop-", dir=top))
        root = self.directory / "files"
        root.mkdir()
        self.large = os.urandom(LARGE)
        (root / "large").write_bytes(self.large)
        (root / "small").write_bytes(os.urandom(SMALL))
        (root / "page.html").write_text(PAGE)
        self.whole = hashlib.sha256(self.large).hexdigest()
        self.part = hashlib.sha256(self.large[1000:2000]).hexdigest()
        self.make_certificate()

    def make_certificate(self):
        key, certificate = self.directory / "key.pem", self.directory / "cert.pem"
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test -addext"
        san = f"subjectAltName=IP:{HOST}"
        run([*command.split(), san, "-keyout", key, "-out", certificate])
        public = run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"])
        der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public, stdout=subprocess.PIPE, check=True)
        self.spki = base64.b64encode(hashlib.sha256(der.stdout).digest()).decode()

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def other(self, command):
        return f"chroot {shlex.quote(self.others)} {command}" if self.others else command

    def has(self, program):
        """Whether a program is there, below `others` if that is given."""
        where = "/usr/local/bin:/usr/bin:/bin"
        return any(os.access(f"{self.others or ''}{it}/{program}", os.X_OK) for it in where.split(":"))

    def play(self, command, loss="0%"):
        """What a client prints behind the path, and what the server and the emulator say."""
        options = self.options
        server = [options.uncork, "serve", "--root", self.directory / "files", "--listen", f"{HOST}:{PORT}"]
        server += ["--tls-cert", self.directory / "cert.pem", "--tls-key", self.directory / "key.pem"]
        server = shlex.join(map(str, server)) + f" {options.serve_options}"
        path = ["--rate", "100mbit", "--rtt", "20ms", "--loss", loss]
        emulator = [options.uncork, "emu", *path, "--server", server, "--", "sh", "-c", command]
        try:
            done = subprocess.run(emulator, capture_output=True, timeout=150, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            return "timed out"
        return done.stdout + done.stderr


def run(command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True).stdout


# The clients. Each is None if it is not there, or gives its checks: a name, a command, what must be in what it
# prints, and the share of packets lost.


def ranges(bench, option, processes=10, each=1000, within=100_000):
    """Random ranges by several curls at a time, each with a connection of its own: the command, and what it must print."""
    pick = random.Random(option)
    commands, digests = [], []
    for index in range(processes):
        config, digest = [], hashlib.sha256()
        for _ in range(each):
            start = pick.randrange(within)
            end = min(start + pick.choice([1, pick.randint(1, 2000), pick.randint(1, within)]), within)
            config.append(f'insecure\nsilent\n{option[2:]}\nrange = "{start}-{end - 1}"\nurl = "{URL}/large"\n')
            digest.update(bench.large[start:end])
        path = bench.directory / f"ranges{option}-{index}"
        path.write_text("next\n".join(config))
        inside = path if not bench.others else f"/{path.relative_to(bench.others)}"
        commands.append(bench.other(f"curl -K {inside} | sha256sum &"))
        digests.append(digest.hexdigest())
    return " ".join(commands) + " wait", digests


def curl(bench):
    if not bench.has("curl"):
        return None
    checks = []
    for http, option, version in (("1.1", "--http1.1", "1.1"), ("2", "--http2", "2"), ("3", "--http3-only", "3")):
        get = bench.other(f"curl -sk {option}")
        form = f"-w '%{{stderr}}version %{{http_version}} %{{http_code}}\\n' {URL}/large | sha256sum"
        label = f"HTTP/{http} "
        checks += [
            (label + "download", f"{get} {form}", [bench.whole, f"version {version} 200"], "0%"),
            (label + "range", f"{get} -r 1000-1999 {form}", [bench.part, f"version {version} 206"], "0%"),
            (label + "loss", f"{get} {form}", [bench.whole, f"version {version} 200"], "2%"),
            (label + "10,000 ranges", *ranges(bench, option), "2%"),
        ]
    many = bench.other(
        f"curl -sk --http3-only --parallel -o /dev/null -w '%{{http_code}} %{{size_download}}\\n' '{URL}/small?[1-300]'"
    )
    checks.append(("HTTP/3 300 requests", f"{many} | sort | uniq -c", [f"300 200 {SMALL}"], "2%"))
    return checks


def aioquic(bench):
    python = bench.options.python
    if not python or subprocess.run([python, "-c", "import aioquic"], stderr=subprocess.DEVNULL).returncode:
        return None
    client = f"{shlex.quote(python)} {shlex.quote(str(HERE / 'aioquic_client.py'))} {HOST} {PORT}"
    whole = f"200 {LARGE} {bench.whole}"
    return [
        ("HTTP/3 download", f"{client} download", [whole], "0%"),
        ("HTTP/3 range", f"{client} ranges", [f"206 1000 {bench.part}"], "0%"),
        ("HTTP/3 resumption", f"{client} resumption", ["resumed True"], "0%"),
        ("HTTP/3 migration", f"{client} migration", [whole], "0%"),
        ("HTTP/3 key update", f"{client} key_update", [whole], "0%"),
        ("HTTP/3 loss", f"{client} download", [whole], "2%"),
    ]


def quic_go(bench):
    if not bench.options.quicgo:
        return None
    client = f"{shlex.quote(bench.options.quicgo)} {HOST}:{PORT}"
    whole = f"200 {LARGE} {bench.whole}"
    return [
        ("HTTP/3 download", f"{client} download", [whole], "0%"),
        ("HTTP/3 range", f"{client} ranges", [f"206 1000 {bench.part}"], "0%"),
        ("HTTP/3 resumption", f"{client} resumption", ["resumed true"], "0%"),
        ("HTTP/3 migration", f"{client} migration", ["moved", whole], "0%"),
        ("HTTP/3 loss", f"{client} download", [whole], "2%"),
    ]


def chromium(bench):
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if not program:
        return None
    browse = (
        f"{program} --headless --no-sandbox --disable-gpu --user-data-dir=$(mktemp -d {bench.directory}/profile.XXXX) "
        f"--ignore-certificate-errors-spki-list={bench.spki} --virtual-time-budget=20000 --dump-dom"
    )
    quic = f"--origin-to-force-quic-on={HOST}:{PORT}"
    right = [f"{bench.whole} 206 {bench.part}"]
    return [
        ("HTTP/2 page", f"{browse} --disable-quic {URL}/page.html", [*right, " h2"], "0%"),
        ("HTTP/3 page", f"{browse} {quic} {URL}/page.html", [*right, " h3"], "0%"),
        ("HTTP/3 loss", f"{browse} {quic} {URL}/page.html", [*right, " h3"], "2%"),
    ]


def wrk(bench):
    if not bench.has("wrk"):
        return None
    command = bench.other(f"wrk -t1 -c50 -d3s {URL}/small")
    return [("HTTP/1.1 load", f"{command} | grep -v -e Non-2xx -e 'Socket errors'; {command}", ["requests in"], "0%")]


def h2load(bench):
    if not bench.has("h2load"):
        return None
    command = bench.other(f"h2load -n 3000 -c 20 -m 20 {URL}/small")
    return [("HTTP/2 load", command, ["3000 succeeded, 0 failed, 0 errored"], "0%")]


def h2spec(bench):
    if not bench.options.h2spec:
        return None
    command = f"{shlex.quote(bench.options.h2spec)} -h {HOST} -p {PORT} -t -k -P /small"
    return [("HTTP/2 conformance", command, [" 0 failed"], "0%")]


def oha(bench):
    if not bench.options.oha:
        return None
    program = shlex.quote(bench.options.oha)
    whole = ["100.00%", "[200] 3000 responses"]
    checks = []
    for http in ("1.1", "2", "3"):
        command = f"{program} -n 3000 -c 20 --http-version {http} --insecure --no-tui --no-color {URL}/small"
        checks.append((f"HTTP/{http} load", command, whole, "0%"))
    return checks


def h3i(bench):
    if not bench.options.h3i:
        return None
    return [("HTTP/3 broken rules", f"{shlex.quote(bench.options.h3i)} {HOST}:{PORT} /small", [", 0 wrong"], "0%")]


CLIENTS = {
    "curl": curl,
    "aioquic": aioquic,
    "quic-go": quic_go,
    "Chromium": chromium,
    "wrk": wrk,
    "h2load": h2load,
    "oha": oha,
    "h2spec": h2spec,
    "h3i": h3i,
}


def judged(output, wanted):
    """What of `wanted` is not there; and what the client said last."""
    missing = [it for it in wanted if it not in output]
    counts = re.search(r"\d+ tests, \d+ passed, \d+ skipped, \d+ failed|\d+ right, \d+ known, \d+ wrong", output)
    note = counts.group(0) if counts else ""
    return not missing, note


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", default="target/release/uncork", help="the binary")
    parser.add_argument("--serve-options", default="", help="more arguments of `uncork serve`")
    parser.add_argument("--others", help="a directory tree in which curl, wrk and h2load are run")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has aioquic")
    parser.add_argument("--quicgo", help="the binary of crates/production/serve/interop/quicgo")
    parser.add_argument("--h2spec", default=shutil.which("h2spec"), help="the binary of h2spec")
    parser.add_argument("--oha", default=shutil.which("oha"), help="the binary of oha, with HTTP/3")
    parser.add_argument("--h3i", help="the binary of crates/production/serve/interop/h3i")
    parser.add_argument("--only", help="clients, separated by commas")
    parser.add_argument("--json", help="file for what all programs printed")
    return parser.parse_args()


def main():
    options = arguments()
    if os.geteuid():
        sys.exit("network namespaces take root")
    only = options.only.split(",") if options.only else CLIENTS
    bench, results, failed = Bench(options), [], 0
    try:
        print("| client | check | |\n|---|---|---|")
        for name in only:
            checks = CLIENTS[name](bench)
            if checks is None:
                print(f"| {name} | | NOT RUN: it is not there |")
                continue
            for check, command, wanted, loss in checks:
                output = bench.play(command, loss)
                is_right, note = judged(output, wanted)
                failed += not is_right
                results.append({"client": name, "check": check, "passed": is_right, "output": output})
                print(f"| {name} | {check} | {'passed' if is_right else 'FAILED'}{note and ': ' + note} |", flush=True)
    finally:
        bench.remove()
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
