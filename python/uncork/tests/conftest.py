"""Tests of engines run where the engine is installed. A test that is not run says so loudly, and fails if
UNCORK_REQUIRE names what is missing: `UNCORK_REQUIRE=spark,clickhouse pytest`.
"""

import gc
import importlib.util
import os
import shutil

import pytest

CAPABILITIES = {
    "spark": "pyspark and Java",
    "clickhouse": "chdb",
    "sign": "cryptography",
    "module": "the module in Rust",
}
_not_run: dict[str, str] = {}

# A test of Spark lasts seconds: compiling its queries well takes longer than it saves.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_finish() -> None:
    """Modules have a million objects: to look for garbage among them takes a twentieth of the time."""
    gc.set_threshold(50_000, 20, 100)


def _missing(capability: str) -> str | None:
    if capability == "clickhouse":
        return None if importlib.util.find_spec("chdb") else "chdb is not installed (pip install chdb)"
    if capability == "sign":
        has = importlib.util.find_spec("cryptography")
        return None if has else "cryptography is not installed (pip install cryptography)"
    if capability == "module":
        has = importlib.util.find_spec("uncork._native")
        return None if has else "uncork._native is not built (pip install -e .)"
    if importlib.util.find_spec("pyspark") is None:
        return 'pyspark is not installed (pip install "pyspark<4.1")'
    return None if shutil.which("java") else "java is not installed"


def pytest_runtest_setup(item: pytest.Item) -> None:
    required = {name.strip() for name in os.environ.get("UNCORK_REQUIRE", "").split(",")}
    for name in CAPABILITIES:
        if item.get_closest_marker(name) is None or (why := _missing(name)) is None:
            continue
        if name in required or "all" in required:
            pytest.fail(f"UNCORK_REQUIRE demands {name}, but this machine lacks it: {why}", pytrace=False)
        _not_run[name] = why
        pytest.skip(f"*** NOT RUN ({name}): {why} ***")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, why in _not_run.items():
        terminalreporter.write_line(f"*** NOT RUN ({name}): {why} ***", red=True, bold=True)
