"""What a plan of a million networks costs: time and memory of `uncork learn plan`, with the query.

    python bench/learn_scale.py                              a million networks, ten million records
    python bench/learn_scale.py --networks 100000 --records 2000000
    python bench/learn_scale.py --again                      a second plan with all of them in the table

Every network has a record; the others are Zipf. A tenth of them are of the random share, in 28 days. Prints a
line for each step: wall time, CPU time and the most memory of its process. Records and versions are in a
directory that is deleted at the end, unless --dir names one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 1_000_000
DAYS = 28
END = datetime(2026, 11, 20, tzinfo=UTC)
SYSTEMS, COUNTRIES = 3_000, ["BR", "DE", "FR", "GB", "IN", "JP", "PE", "PL", "US", "ZA"]
PROGRAM = [sys.executable, "-m", "uncork.learn.cli"]


def names(networks: int) -> pa.Array:
    """Networks 11.0.0.0/24 and following."""
    at = np.arange(networks) + (11 << 16)
    parts = [pa.array(part).cast(pa.string()) for part in (at >> 16, at >> 8 & 255, at & 255)]
    return pa.compute.binary_join_element_wise(*parts, pa.scalar("0/24"), ".")


def coded(codes: pa.Array, words: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(codes, words)


def chunk(number: int, rows: int, networks: int, random: float, known: pa.Array) -> pa.Table:
    """Records, the same in every run. The first ones are of all networks in turn."""
    rng = np.random.default_rng([21, number])
    turn = np.arange(rows) + number * CHUNK
    zipf = np.exp(rng.random(rows) * np.log(networks)).astype(np.int64) - 1
    who = np.where(turn < networks, turn, np.minimum(zipf, networks - 1))
    system = who * 2_654_435_761 % SYSTEMS
    lift = np.random.default_rng(7).normal(0.05, 0.1, SYSTEMS)[system]
    is_random = rng.random(rows) < random
    is_bbr = rng.random(rows) < 0.5
    size = np.where(rng.random(rows) < 0.7, 5_000_000, 200_000)
    rate = np.exp(rng.normal(16.6, 0.6, rows) + lift * is_bbr)
    taken = (size * 8e9 / rate).astype(np.int64)
    again = (size * 0.01 * rng.random(rows)).astype(np.int64)
    start = (int(END.timestamp()) - 1 - rng.integers(0, DAYS * 86_400, rows)) * 1_000_000_000
    one = np.zeros(rows, np.int8)
    arm = coded(pa.array(is_bbr.astype(np.int8), mask=~is_random), ["control", "bbr"])
    return pa.table(
        {
            "engine": coded(pa.array(one), ["serve"]),
            "completion_ns": taken,
            "busy_ns": taken,
            "size_bytes": size,
            "bytes_acked": size,
            "bytes_delivered": size,
            "bytes_sent": size + again,
            "bytes_retransmitted": again,
            "service_scope": coded(pa.array(one), ["response"]),
            "service_start_unix_ns": start,
            "service_client": known.take(pa.array(who)),
            "service_asn": 64_500 + system,
            "service_country": coded(pa.array((system % len(COUNTRIES)).astype(np.int8)), COUNTRIES),
            "service_responses": np.ones(rows, np.int64),
            "service_broken_off": (rng.random(rows) < 0.004).astype(np.int64),
            "arm_experiment": coded(pa.array(one, mask=~is_random), ["explore"]),
            "arm": arm,
            "arm_unit": pa.array(rng.integers(0, 2**63, rows), mask=~is_random),
            "arm_bucket": pa.array(rng.integers(0, 100, rows), mask=~is_random),
            "arm_propensity": pa.array(np.full(rows, 0.5), mask=~is_random),
        }
    )


def write(directory: Path, options: argparse.Namespace) -> None:
    known = names(options.networks)
    for number in range(-(-options.records // CHUNK)):
        rows = min(CHUNK, options.records - number * CHUNK)
        path = directory / f"{number:03d}.parquet"
        if not path.exists():
            pq.write_table(chunk(number, rows, options.networks, options.random, known), path)


def measured(what: str, command: list[str]) -> None:
    """Runs it in a process of its own."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{what} failed: {' '.join(command)}")
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2
    wall = time.monotonic() - began
    print(f"{what:<12} {wall:6.1f} s  {seconds:6.1f} s of CPU  {memory:5.2f} GiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--records", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--random", type=float, default=0.1, metavar="SHARE", help="of the records")
    parser.add_argument("--memory", default="600MB", metavar="SIZE", help="of DuckDB; beyond it spills")
    parser.add_argument("--again", action="store_true", help="more steps, see above")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="keep records and versions here")
    options = parser.parse_args()
    if options.records < options.networks or not 0 < options.random <= 1:
        parser.error("each network needs a record, and the share is above 0 and at most 1")
    with tempfile.TemporaryDirectory(prefix="uncork-scale-") as scratch:
        root = options.dir or Path(scratch)
        records, learned = root / "records", root / "learned"
        records.mkdir(parents=True, exist_ok=True)
        write(records, options)
        cores, load = os.cpu_count(), os.getloadavg()[0]
        print(f"{options.networks:,} networks, {options.records:,} records; {cores} cores, load {load:.1f}")
        plan = [*PROGRAM, "plan", str(records), "-o", str(learned), "--key", "0" * 32]
        plan += ["--changed", "100%", "--memory", options.memory]
        measured("plan", plan)
        measured("apply", [*PROGRAM, "apply", str(learned)])
        if options.again:
            subprocess.run([*PROGRAM, "pin", str(learned), "*", "bbr"], check=True)
            measured("plan again", plan)
            measured("apply", [*PROGRAM, "apply", str(learned)])
            measured("verify", [*PROGRAM, "verify", str(learned)])
        measured("explain", [*PROGRAM, "explain", str(learned), "11.0.0.7"])
        sizes = {path.name: path.stat().st_size / 1e6 for path in sorted((learned / "current").iterdir())}
        print(", ".join(f"{name} {size:.1f} MB" for name, size in sizes.items()))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    print(f"most memory of all steps: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
