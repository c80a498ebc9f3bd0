"""Tests that this machine cannot run."""

import os

import pytest


def not_run(capability: str, why: str) -> None:
    """Skips loudly, or fails where UNCORK_REQUIRE names the capability."""
    required = os.environ.get("UNCORK_REQUIRE", "").split(",")
    assert not {capability, "all"} & set(required), f"UNCORK_REQUIRE demands {capability}: {why}"
    os.write(2, f"\n*** NOT RUN ({capability}): {why} ***\n\n".encode())
    pytest.skip(why)
