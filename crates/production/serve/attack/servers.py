"""uncork and nginx, started on loopback with a small and a large file."""

import os
import pathlib
import resource
import socket
import subprocess
import sys
import time
import urllib.request

DESCRIPTORS = 20_000
NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log; worker_rlimit_nofile 20000; {user}
events {{ worker_connections 10000; }}
http {{
  access_log off; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{
    listen 127.0.0.1:{http2} http2; listen 127.0.0.1:{port}; root {dir}/root;
    location = /healthz {{ return 200 ok; }} {quic}
  }}
}}
"""
NGINX_QUIC = "listen 127.0.0.1:{tls} quic; ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;"


class Server:
    """A process, its ports by version of HTTP, and the address of its health check."""

    def __init__(self, command, ports, health):
        self.ports, self.health = ports, health

        def limit():
            return resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=limit)
        for _ in range(100):
            try:
                return socket.create_connection(("127.0.0.1", ports[1]), 1).close()
            except OSError:
                time.sleep(0.1)
        self.stop()
        sys.exit("the server does not start")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def usage(self):
        """MiB, descriptors and CPU seconds of the process and its children."""
        kib = descriptors = ticks = 0
        parent = self.process.pid
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in [parent, *map(int, children)]:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            kib += int(status.split("VmRSS:")[1].split()[0])
            descriptors += len(os.listdir(f"/proc/{pid}/fd"))
            ticks += sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        return kib // 1024, descriptors, ticks / os.sysconf("SC_CLK_TCK")

    def is_healthy(self):
        try:
            return urllib.request.urlopen(self.health, timeout=2).status == 200
        except OSError:
            return False


def start(options, scratch, over_quic):
    """The server that the options name, with files and a certificate under `scratch`."""
    os.chmod(scratch, 0o755)
    root = scratch / "root"
    root.mkdir()
    (root / "small").write_text("small")
    (root / "large").write_bytes(bytes(1 << 20))
    if over_quic:
        make_certificate(scratch)
    return (
        start_uncork(options.uncork, scratch, over_quic) if options.uncork else start_nginx(options.nginx, scratch, over_quic)
    )


def start_uncork(program, scratch, over_quic):
    port, admin = free_port(), free_port()
    tls = f"--tls-cert {scratch}/cert.pem --tls-key {scratch}/key.pem" if over_quic else ""
    command = f"{program} serve --root {scratch}/root --listen 127.0.0.1:{port} --admin 127.0.0.1:{admin} --quiet {tls}"
    return Server(command.split(), dict.fromkeys((1, 2, 3), port), f"http://127.0.0.1:{admin}/healthz")


def start_nginx(program, scratch, over_quic):
    # It talks no HTTP/1.1 on a port of HTTP/2 without TLS.
    port, http2, tls = free_port(), free_port(), free_port()
    quic = NGINX_QUIC.format(dir=scratch, tls=tls) if over_quic else ""
    user = "user root;" if os.geteuid() == 0 else ""
    config = scratch / "nginx.conf"
    config.write_text(NGINX.format(dir=scratch, port=port, http2=http2, quic=quic, user=user))
    return Server([program, "-c", config], {1: port, 2: http2, 3: tls}, f"http://127.0.0.1:{port}/healthz")


def make_certificate(directory):
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", directory / "key.pem", "-out", directory / "cert.pem"]
    subprocess.run([*command.split(), *files], check=True, stderr=subprocess.DEVNULL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
