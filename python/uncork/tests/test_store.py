"""A fleet over an S3 server: the program publishes, agents follow."""

import hashlib
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stores import BUCKET, SECRET, Host, certificate, host, serving

__all__ = ["host"]

FLEET = f"s3://{BUCKET}/fleet"


def publish(host: Host, controller: str, status: int = 0) -> str:
    (host.directory / f"{controller}.toml").write_text(f'[default]\ntcp = "{controller}"\n')
    line = f"fleet publish {FLEET} {controller}.toml --key fleet.key --hold 0s --stages 100%"
    return host.run(line, status)


def finish(host: Host) -> str:
    return host.run(f"fleet publish {FLEET} --key fleet.key", 0)


def poll(host: Host, status: int, name: str = "edge1") -> str:
    line = f"agent {FLEET} -o {name} --host {name} --public-key fleet.key.pub --once"
    return host.run(line, status)


def active(host: Host, name: str = "edge1") -> str:
    return (host.directory / name / "current/policy.toml").read_text()


@pytest.fixture
def fleet(host: Host) -> Host:
    host.run("fleet keygen fleet.key", 0)
    publish(host, "cubic")
    assert "version 1 is active" in poll(host, 0)
    finish(host)
    return host


def test_agent__publish_and_roll_back_in_s3__follows(fleet: Host) -> None:
    publish(fleet, "reno")
    assert "version 2 is active" in poll(fleet, 0)
    assert "reno" in active(fleet)
    for name in ("edge2", "edge3"):
        poll(fleet, 0, name)
    status = fleet.run(f"fleet status {FLEET} --public-key fleet.key.pub", 0)
    assert "3 hosts run version 2" in status
    hosts = [line.split()[0] for line in status.splitlines() if line.startswith("edge")]
    assert hosts == ["edge1", "edge2", "edge3"]
    fleet.run(f"fleet rollback {FLEET} --key fleet.key", 0)
    poll(fleet, 0)
    assert "cubic" in active(fleet)


def test_agent__store_away_for_some_polls__keeps_its_version_and_goes_on(fleet: Host) -> None:
    fleet.server.stop()
    for _ in range(2):
        said = poll(fleet, 1)
        assert "the store is away: s3://records/fleet/rollout: " in said
        assert "cannot connect to 127.0.0.1" in said
        assert "cubic" in active(fleet)
    fleet.server.start()
    publish(fleet, "reno")
    assert "version 2 is active" in poll(fleet, 0)


def test_agent__replayed_rollout_and_corrupt_bundle__refused(fleet: Host) -> None:
    old = fleet.server.read("fleet/rollout")
    publish(fleet, "reno")
    new = fleet.server.read("fleet/rollout")
    (bundle,) = [name for name in fleet.server.names() if "bundles/0000000002" in name]
    good = fleet.server.read(bundle)
    fleet.server.write(bundle, good[:-100] + b"x" + good[-99:])
    assert "it was altered" in poll(fleet, 1)
    fleet.server.write(bundle, good + bytes(33 << 20))
    assert "has more than 33554432 bytes" in poll(fleet, 1)
    fleet.server.write(bundle, good)
    fleet.server.write("fleet/rollout", old)
    assert "an old file was put back" in poll(fleet, 1)
    assert "cubic" in active(fleet)
    fleet.server.write("fleet/rollout", new)
    assert "version 2 is active" in poll(fleet, 0)


def test_publish__two_at_the_same_time__one_wins_and_one_has_a_conflict(fleet: Host) -> None:
    (fleet.directory / "two.toml").write_text('[default]\ntcp = "reno"\n')
    (fleet.directory / "three.toml").write_text('[default]\ntcp = "bbr"\n')
    # Each has read the rollout before either writes.
    gate = threading.Barrier(2, timeout=60)
    fleet.server.before = lambda method, path: (
        gate.wait() if method == "PUT" and path.endswith("/fleet/rollout") else None
    )
    line = "fleet publish {} {} --key fleet.key --hold 0s --stages 100%"
    started = [fleet.start(*line.format(FLEET, name).split()) for name in ("two.toml", "three.toml")]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert sorted(process.returncode for process in started) == [0, 3], said
    (lost,) = [text for text, process in zip(said, started, strict=True) if process.returncode]
    assert "another program has written it meanwhile" in lost


def test_publish__answer_is_lost_after_the_write__counts_as_written(fleet: Host) -> None:
    fleet.server.lose_answers = 2
    assert "version 2" in publish(fleet, "reno")
    assert "version 2 is active" in poll(fleet, 0)


def test_agent__that_stays__asks_with_the_etag(fleet: Host) -> None:
    words = f"agent {FLEET} -o edge2 --host edge2 --public-key fleet.key.pub --every 1s"
    process = fleet.start(*words.split())
    until = time.monotonic() + 60
    while 304 not in fleet.server.statuses("GET", "fleet/rollout"):
        assert time.monotonic() < until, fleet.server.seen
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"AWS_ALLOW_HTTP": "false"}, "is not encrypted"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "cannot connect to 127.0.0.1:1"),
        ({"AWS_ENDPOINT_URL": "https://127.0.0.1:{port}"}, "cannot connect"),
    ],
)
def test_status__store_that_cannot_be_reached__error_without_a_credential(
    fleet: Host, change: dict[str, str], says: str
) -> None:
    change = {name: value.format(port=fleet.server.port) for name, value in change.items()}
    said = fleet.run(f"fleet status {FLEET} --public-key fleet.key.pub", 3, **change)
    assert says in said
    assert "s3://records/fleet/rollout: " in said


def test_status__bucket_that_does_not_exist__is_away_and_not_empty(fleet: Host) -> None:
    said = fleet.run("fleet status s3://nowhere/fleet --public-key fleet.key.pub", 3)
    assert "NoSuchBucket" in said
    assert "make the bucket" in said
    fleet.run("fleet status s3://records/other --public-key fleet.key.pub", 3)


def test_address__credential_in_it__refused_and_not_shown(fleet: Host) -> None:
    for address in (f"s3://{SECRET}@records/fleet", f"https://host/fleet?sig={SECRET}"):
        fleet.run(f"fleet status {address} --public-key fleet.key.pub", 2)


@pytest.mark.sign
def test_agent__s3_over_tls__needs_the_authority_of_the_certificate(tmp_path: Path) -> None:
    with serving(certificate(tmp_path)) as server:
        host = Host(server, tmp_path)
        host.run("fleet keygen fleet.key", 0)
        server.trusted = str(tmp_path / "certificate.pem")
        publish(host, "cubic")
        assert "version 1 is active" in poll(host, 0)
        server.trusted = None
        assert "certificate" in poll(host, 1)


@pytest.mark.sign
def test_agent__files_behind_https__are_only_read(host: Host, tmp_path: Path) -> None:
    (tmp_path / "files/fleet").mkdir(parents=True)
    host.run("fleet keygen fleet.key", 0)
    (tmp_path / "cubic.toml").write_text('[default]\ntcp = "cubic"\n')
    host.run("fleet publish files/fleet cubic.toml --key fleet.key --hold 0s --stages 100%", 0)
    files = certificate(tmp_path)
    host.server.trusted = files[0]
    with web_server(tmp_path / "files", files) as (address, statuses):
        line = f"agent {address}/fleet -o edge1 --host edge1 --public-key fleet.key.pub --once"
        said = host.run(line, 0)
        assert "version 1 is active" in said
        assert "note: this store takes no reports; stages have no evidence" in said
        assert set(statuses) == {200}
        process = host.start(*line.replace("--once", "--every 1s").split())
        until = time.monotonic() + 60
        while 304 not in statuses:
            assert time.monotonic() < until
            time.sleep(0.05)
        process.terminate()
        process.communicate(timeout=60)
        said = host.run(f"fleet freeze {address}/fleet --key fleet.key", 3)
        assert "a store behind https cannot be listed; use s3://" in said
    assert "cannot connect to 127.0.0.1" in host.run(line, 1)


@contextmanager
def web_server(directory: Path, files: tuple[str, str]) -> Iterator[tuple[str, list[int]]]:
    """Files of a directory behind HTTPS, with ETags: its address, and the statuses of its answers."""
    statuses: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = directory / self.path.strip("/")
            content = path.read_bytes() if path.is_file() else b""
            etag = f'"{hashlib.sha256(content).hexdigest()}"'
            status = 200 if path.is_file() else 404
            if self.headers["If-None-Match"] == etag:
                status, content = 304, b""
            statuses.append(status)
            self.send_response(status)
            self.send_header("ETag", etag)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Last-Modified", self.date_time_string())
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", statuses
    finally:
        server.shutdown()
        server.server_close()
