"""An S3 server on this machine (moto), which can be away and can lose answers."""

import importlib.util
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from capability import not_run
from test_design import uncork

BUCKET = "records"
SECRET = "hunter2-is-the-secret"
KEY = "AKIDEXAMPLE"

Answer = Callable[..., Any]


class Server:
    """The server of a test. It has one bucket."""

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        """With a certificate and its key it speaks TLS."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.certificate = certificate
        self.trusted: str | None = None
        """A file of authorities, instead of those of this machine."""
        self.seen: list[tuple[str, str, int]] = []
        """Method, path and status of each request."""
        self.lose_answers = 0
        """The number of writes that will be done and answered with an error."""
        self.before: Callable[[str, str], object] = lambda *_: None
        """Runs before each request, with its method and path."""
        self.after: Callable[[str, str], object] = lambda *_: None
        """Runs when it was done, before it is answered."""
        self._server: Any = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        trusted = {"SSL_CERT_FILE": self.trusted} if self.trusted else {}
        return trusted | {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "false" if self.certificate else "true",
        }

    def start(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", self.port, self._seeing(moto), threaded=True, ssl_context=self.certificate
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Away: it refuses connections. What it has stays."""
        self._server.shutdown()
        self._server.server_close()

    def _seeing(self, moto: Answer) -> Answer:
        def answer(environ: dict[str, Any], start: Answer) -> Iterable[bytes]:
            method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
            self.before(method, path)

            def started(status: str, headers: Any, *more: Any) -> Any:
                self.seen.append((method, path, int(status.split()[0])))
                self.after(method, path)
                if method == "PUT" and self.lose_answers:
                    self.lose_answers -= 1
                    status = "500 Internal Server Error"
                return start(status, headers, *more)

            parts: Iterable[bytes] = moto(environ, started)
            return parts

        return answer

    def statuses(self, method: str, end: str) -> list[int]:
        return [status for did, path, status in self.seen if did == method and path.endswith(end)]

    def s3(self) -> Any:
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            verify=self.certificate[0] if self.certificate else None,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def read(self, name: str) -> bytes:
        found: bytes = self.s3().get_object(Bucket=BUCKET, Key=name)["Body"].read()
        return found

    def write(self, name: str, content: bytes) -> None:
        self.s3().put_object(Bucket=BUCKET, Key=name, Body=content)

    def names(self) -> list[str]:
        return [one["Key"] for one in self.s3().list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def certificate(directory: Path) -> tuple[str, str]:
    """A certificate of this machine, signed by itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "store")])
    this = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(this, critical=False)
        .sign(key, hashes.SHA256())
    )
    files = directory / "certificate.pem", directory / "certificate.key"
    files[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(files[0]), str(files[1])


@contextmanager
def serving(certificate: tuple[str, str] | None = None) -> Iterator[Server]:
    """A server with an empty bucket."""
    if any(importlib.util.find_spec(name) is None for name in ("moto", "flask_cors")):
        not_run("store", "moto is not installed (pip install 'moto[s3]' flask flask-cors)")
    server = Server(certificate)
    server.start()
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    try:
        yield server
    finally:
        for name in server.names():
            s3.delete_object(Bucket=BUCKET, Key=name)
        s3.delete_bucket(Bucket=BUCKET)
        server.stop()


class Host:
    """Runs the program in a directory, with the credentials of a server."""

    def __init__(self, server: Server, directory: Path) -> None:
        found = uncork()
        if found is None:
            not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
        self.program, self.server, self.directory = found, server, directory

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.Popen(
            [self.program, *words],
            cwd=self.directory,
            env={**own, **self.server.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, line: str, status: int, **environment: str) -> str:
        """What a command says. No command ever says a secret."""
        process = self.start(*line.split(), **environment)
        said = process.communicate(timeout=120)[0]
        assert process.returncode == status, f"{line}\n{said}"
        assert SECRET not in said
        return said


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with serving() as server:
        yield Host(server, tmp_path)
