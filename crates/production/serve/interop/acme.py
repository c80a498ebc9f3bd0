#!/usr/bin/env python3
"""A certificate by ACME: certbot asks pebble, pebble asks `uncork serve` for the proof over HTTP, and a renewal is served
without a restart.

    acme.py --uncork target/release/uncork --pebble ~/go/bin --certbot venv/bin/certbot

Everything is on loopback. pebble and pebble-challtestsrv, which answers its questions for names, come from
`go install github.com/letsencrypt/pebble/v2/cmd/{pebble,pebble-challtestsrv}@latest`, certbot from PyPI.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

NAME = "www.example.test"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, port, environment=None):
    """A program that listens on a TCP port, until the end of the block."""
    process = subprocess.Popen(
        [str(it) for it in command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            time.sleep(0.1)
        else:
            sys.exit(f"{command[0]} does not start")
        yield process
    finally:
        process.terminate()
        process.wait(60)


def make_certificate(directory, names):
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", directory / "key.pem", "-out", directory / "cert.pem", "-addext", f"subjectAltName={names}"]
    subprocess.run([*command.split(), *files], check=True, stderr=subprocess.DEVNULL)


def pebble_config(directory, ports):
    config = {
        "listenAddress": f"127.0.0.1:{ports['acme']}",
        "managementListenAddress": f"127.0.0.1:{ports['management']}",
        "certificate": str(directory / "cert.pem"),
        "privateKey": str(directory / "key.pem"),
        "httpPort": ports["http"],
        "tlsPort": ports["https"],
        "ocspResponderURL": "",
        "externalAccountBindingRequired": False,
    }
    path = directory / "pebble.json"
    path.write_text(json.dumps({"pebble": config}))
    return path


def certbot(options, directory, ports, *arguments):
    own = [f"--{name}-dir={directory}/certbot/{name}" for name in ("config", "work", "logs")]
    server = f"--server=https://localhost:{ports['acme']}/dir"
    command = [
        options.certbot,
        *arguments,
        *own,
        server,
        "--non-interactive",
        "--agree-tos",
        "--register-unsafely-without-email",
    ]
    environment = os.environ | {"REQUESTS_CA_BUNDLE": str(directory / "cert.pem")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"certbot {arguments[0]} failed:\n{done.stdout}{done.stderr}")


def serial(port):
    """The serial number of the certificate that is served."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 5), server_hostname=NAME) as client:
        der = client.getpeercert(binary_form=True)
    output = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-serial"], input=der, capture_output=True, check=True
    )
    return output.stdout.decode().strip()


def play(options, directory):
    ports = {name: free_port() for name in ("acme", "management", "http", "https", "dns", "control")}
    make_certificate(directory, "DNS:localhost")
    root = directory / "root"
    (root / ".well-known").mkdir(parents=True)
    tools = pathlib.Path(options.pebble)
    names = f"{tools}/pebble-challtestsrv -management 127.0.0.1:{ports['control']} -dnsserver 127.0.0.1:{ports['dns']}"
    names = [
        *names.split(),
        "-http01",
        "",
        "-https01",
        "",
        "-tlsalpn01",
        "",
        "-doh",
        "",
        "-defaultIPv4",
        "127.0.0.1",
        "-defaultIPv6",
        "",
    ]
    pebble = [tools / "pebble", "-config", pebble_config(directory, ports), "-dnsserver", f"127.0.0.1:{ports['dns']}"]
    quick = os.environ | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}
    plain = [options.uncork, "serve", "--root", root, "--listen", f"127.0.0.1:{ports['http']}"]
    with running(names, ports["control"]), running(pebble, ports["acme"], quick):
        with running(plain, ports["http"]):
            certbot(options, directory, ports, "certonly", "--webroot", "-w", str(root), "-d", NAME)
        live = directory / "certbot/config/live" / NAME
        tls = ["--tls-cert", live / "fullchain.pem", "--tls-key", live / "privkey.pem"]
        secure = [options.uncork, "serve", "--root", root, "--listen", f"127.0.0.1:{ports['https']}", *tls]
        secure += ["--redirect-http", f"127.0.0.1:{ports['http']}"]
        with running(secure, ports["https"]):
            first = serial(ports["https"])
            print(f"certificate obtained and served: {first}")
            certbot(options, directory, ports, "renew", "--force-renewal", "--no-random-sleep-on-renew")
            began = time.monotonic()
            while serial(ports["https"]) == first:
                if time.monotonic() - began > 30:
                    sys.exit("the renewed certificate is not served after 30 s")
                time.sleep(0.1)
            print(f"renewal served after {time.monotonic() - began:.1f} s: {serial(ports['https'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", default="target/release/uncork", help="the binary")
    parser.add_argument("--pebble", required=True, help="the directory of pebble and pebble-challtestsrv")
    parser.add_argument("--certbot", default="certbot", help="the program")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="uncork-acme-"))
    try:
        play(parser.parse_args(), directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
