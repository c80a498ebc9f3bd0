"""Signatures of versions: who made them, not only that they are whole.

What is signed is `inputs.json`, which has the number of the version and the SHA-256 of its evidence, its
policy, its table and all other files. The signature is plain Ed25519 (RFC 8032), which OpenSSL checks, too:

    openssl pkeyutl -verify -pubin -inkey learn.pub -rawin -in inputs.json -sigfile inputs.sig
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from uncork.measure.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MAKE = "make one with: openssl genpkey -algorithm ed25519 -out learn.key"
DERIVE = "derive it with: openssl pkey -in learn.key -pubout -out learn.pub"


def sign(message: bytes, key: Path) -> bytes:
    """64 bytes, by the private key in a PEM file."""
    return _private(key).sign(message)


def is_signed_with(message: bytes, signature: bytes, key: Path) -> bool:
    """Whether the signature is that of this private key in a PEM file."""
    return _verifies(_private(key).public_key(), message, signature)


def is_signed(message: bytes, signature: bytes, key: Path) -> bool:
    """Whether the signature is that of the owner of the public key in a PEM file."""
    return _verifies(_public(key), message, signature)


def _verifies(key: Ed25519PublicKey, message: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _private(key: Path) -> Ed25519PrivateKey:
    _need_library()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        found = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise InputError(str(key), f"is not a private key without a password ({error})", MAKE) from None
    if not isinstance(found, Ed25519PrivateKey):
        raise InputError(str(key), "is not an Ed25519 key", MAKE)
    return found


def _public(key: Path) -> Ed25519PublicKey:
    _need_library()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        found = serialization.load_pem_public_key(key.read_bytes())
    except ValueError as error:
        raise InputError(str(key), f"is not a public key ({error})", DERIVE) from None
    if not isinstance(found, Ed25519PublicKey):
        raise InputError(str(key), "is not an Ed25519 key", DERIVE)
    return found


def _need_library() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise InputError(
            "signatures", f"{error.name} is not installed", "pip install 'uncork[sign]'"
        ) from None
