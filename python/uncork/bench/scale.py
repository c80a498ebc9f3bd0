"""What the reduction costs: wall time, CPU time and memory at 1, 10 and 50 million records.

    python bench/scale.py --dir /tmp/scale --rows 1,10,50

Writes flow records of a server in files of a million (about 50 bytes each), reduces them on DuckDB in a
process of its own for each size, prints a table in Markdown, and deletes the files.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MILLION = 1_000_000
UNITS = 2_000_000
DAYS = 14
START_NS = 1_793_577_600_000_000_000
COUNTRIES = np.array(
    [
        "BR",
        "PE",
        "IN",
        "JP",
        "DE",
        "GB",
        "US",
        "ZA",
        "FR",
        "NL",
        "PL",
        "ES",
        "IT",
        "CA",
        "MX",
        "AR",
        "CL",
        "CO",
        "AU",
        "KR",
    ]
)


def chunk(number: int, rows: int = MILLION) -> pa.Table:
    """Records number × rows and following, the same in every run."""
    rng = np.random.default_rng([18, number])
    unit = (UNITS * rng.random(rows) ** 3).astype(np.int64)
    hashes = (unit.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    is_bbr = (hashes >> np.uint64(33)) % np.uint64(2) == 1
    size = np.exp(rng.normal(13.0, 2.2, rows)).astype(np.int64) + 200
    place = unit % len(COUNTRIES)
    rate = np.exp(rng.normal(16.0 + 0.05 * (place % 7), 1.1, rows)) * np.where(is_bbr, 1.04, 1.0)
    busy = (size * 8e9 / rate).astype(np.int64) + 4_000_000
    rtt = np.exp(rng.normal(3.4, 0.7, rows)).round(3)
    is_broken = rng.random(rows) < 0.01
    resent = rng.binomial(np.minimum(size // 1448 + 1, 10_000), np.where(is_bbr, 0.008, 0.006)) * 1448
    same = np.zeros(rows, np.int8)
    names = {
        "engine": same, "cc": is_bbr, "arm": is_bbr, "choice_cc": is_bbr,
        "service_country": place, "service_scope": same, "arm_experiment": same,
    }  # fmt: skip
    texts = {
        "engine": ["serve"], "cc": ["cubic", "bbr"], "arm": ["control", "bbr"], "choice_cc": ["cubic", "bbr"],
        "service_country": COUNTRIES.tolist(), "service_scope": ["response"], "arm_experiment": ["bbr-2026"],
    }  # fmt: skip
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), texts[name])
        for name, codes in names.items()
    }
    counts = {
        "flow": np.arange(rows) + number * rows,
        "completion_ns": busy + (rtt * 1e6).astype(np.int64),
        "first_byte_ns": np.minimum((rtt * 1.3e6).astype(np.int64), busy),
        "busy_ns": busy,
        "size_bytes": size,
        "bytes_acked": np.where(is_broken, size // 2, size),
        "bytes_sent": size + resent,
        "bytes_retransmitted": resent,
        "service_start_unix_ns": START_NS + rng.integers(0, DAYS * 86_400_000, rows) * 1_000_000,
        "service_asn": 64_500 + unit % 200,
        "service_responses": np.ones(rows, np.int64),
        "service_broken_off": is_broken.astype(np.int64),
        "arm_bucket": (hashes >> np.uint64(40)) % np.uint64(100),
    }
    columns |= {name: pa.array(values.astype(np.uint64)) for name, values in counts.items()}
    columns["completion_ns"] = pa.array(counts["completion_ns"].astype(np.uint64), mask=is_broken)
    columns |= {"arm_unit": pa.array(hashes), "rtt_min_ms": pa.array(rtt)}
    columns["rtt_p50_ms"] = pa.array((rtt * np.exp(rng.exponential(0.2, rows))).round(3))
    return pa.table(columns)


def write(directory: Path, millions: int) -> None:
    """Files of a million records; existing files are kept."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(millions):
        path = directory / f"{number:03d}.parquet"
        if not path.exists():
            pq.write_table(chunk(number), path, compression="zstd")


def remove(directory: Path, millions: int) -> None:
    """Deletes what was written, and nothing else."""
    for number in range(millions):
        (directory / f"{number:03d}.parquet").unlink(missing_ok=True)
    shutil.rmtree(directory / "spill", ignore_errors=True)


def reduce_files(directory: Path, millions: int, by: tuple[str, ...], memory: str, threads: int) -> None:
    """Reduces, and prints what it cost as JSON."""
    from uncork.measure.engines import duckdb
    from uncork.measure.reduce import ReducePlan, reduce

    files = [directory / f"{number:03d}.parquet" for number in range(millions)]
    begin = time.perf_counter()
    settings = duckdb.Settings(memory=memory, threads=threads, spill=directory / "spill")
    table = duckdb.connect(settings).read(files)
    reduced = reduce(table, ReducePlan(control="control", by=by))
    values = sum(len(cubes) for cubes in reduced.cells.values())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        "rows": reduced.rows, "cells": len(reduced.cells), "cubes": values,
        "wall_s": time.perf_counter() - begin, "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_gib": usage.ru_maxrss / 2**20, "load": os.getloadavg()[0],
    }))  # fmt: skip


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--rows", default="1,10,50", help="millions, such as 1,10,50")
    parser.add_argument("--by", default="", help="keys, such as region,size_class")
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    by = tuple(filter(None, arguments.by.split(",")))
    if arguments.one is not None:
        reduce_files(arguments.dir, arguments.one, by, arguments.memory, arguments.threads)
        return
    sizes = [int(size) for size in arguments.rows.split(",")]
    try:
        write(arguments.dir, max(sizes))
        print("| rows | by | wall, s | CPU, s | µs CPU/row | peak memory, GiB | cells | load |")
        print("|---|---|---|---|---|---|---|---|")
        for size in sizes:
            options = {"dir": arguments.dir, "one": size, "by": arguments.by, "memory": arguments.memory,
                       "threads": arguments.threads}  # fmt: skip
            command = [sys.executable, __file__, *(f"--{name}={value}" for name, value in options.items())]
            cost = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            each, load = cost["cpu_s"] / size, cost["load"]
            print(
                f"| {size} M | {arguments.by or '(all)'} | {cost['wall_s']:.1f} | {cost['cpu_s']:.1f} | "
                f"{each:.2f} | {cost['peak_gib']:.2f} | {cost['cells']} | {load:.0f} |",
                flush=True,
            )
    finally:
        if not arguments.keep:
            remove(arguments.dir, max(sizes))


if __name__ == "__main__":
    main()
