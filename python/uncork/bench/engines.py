"""The same records on several engines: are all counts equal, and what does each cost?

    python bench/engines.py --dir /tmp/scale --rows 50 --engines duckdb,spark

Writes records as bench/scale.py does, reduces them on each engine in a process of its own, compares every row
of every result with the first engine's, prints a table in Markdown, and deletes the files. Spark is a local
cluster of two workers, each a process with one core.

Exit status 1: a count differs.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ibis.expr.types as ir
import pyarrow.parquet as pq
from scale import remove, write

from uncork.measure.engines import clickhouse, duckdb, spark
from uncork.measure.reduce import Queries, ReducePlan, Run, to_arrow

MASTER = "local-cluster[2,1,2048]"
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    # a machine that is busy is not one that is lost
    "spark.network.timeout": "900s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.worker.timeout": "900",
    "spark.driver.memory": "4g",
    "spark.driver.maxResultSize": "2g",
    "spark.executor.memory": "2g",
    # more partitions than cores: what a task groups stays within its memory
    "spark.sql.shuffle.partitions": "32",
}
EVERY_SECONDS = 0.5
PAGE_KIB = 4


@dataclass(frozen=True)
class Cost:
    """What one engine needed for all queries."""

    engine: str
    seconds: float
    """Of the queries, without the engine's start."""
    peak_gib: float
    """Of all its processes together."""
    rows: dict[str, int]
    """Rows of each result."""


def plan(by: str, metrics: str) -> ReducePlan:
    """The same for each engine."""
    named = tuple(filter(None, metrics.split(",")))
    return ReducePlan(control="control", by=tuple(filter(None, by.split(","))), metrics=named or None)


def queries(records: ir.Table, of: ReducePlan) -> dict[str, ir.Table]:
    """By name: each metric, the units and the sources."""
    made = Queries.from_records(records, of)
    found = {metric.name: made.metric(metric) for metric in made.metrics}
    return found | {"units": made.units(), "sources": made.sources()}


def reduce_on(engine: str, files: Sequence[Path], of: ReducePlan, out: Path) -> None:
    """Runs all queries on one engine; what each returns stays in ``out``."""
    if engine == "spark":
        session = spark.local_session(MASTER, SETTINGS)
        try:
            run_all(*spark.open_files(files, session), of, out)
        finally:
            session.stop()
    elif engine == "clickhouse":
        run_all(*clickhouse.open_files(files), of, out)
    else:
        run_all(duckdb.connect(duckdb.Settings(spill=out / "spill")).read(files), to_arrow, of, out)


def run_all(records: ir.Table, run: Run, of: ReducePlan, out: Path) -> None:
    """Runs all queries, and writes how long each took."""
    seconds, rows = {}, {}
    for name, query in queries(records, of).items():
        begin = time.perf_counter()
        table = run(query)
        seconds[name], rows[name] = time.perf_counter() - begin, table.num_rows
        names = sorted(table.column_names)
        pq.write_table(table.select(names), out / f"{name}.parquet")
        print(f"  {name}: {table.num_rows:,} rows in {seconds[name]:.1f} s", file=sys.stderr, flush=True)
    (out / "cost.json").write_text(json.dumps({"seconds": sum(seconds.values()), "rows": rows}))


def measured(engine: str, arguments: argparse.Namespace, out: Path) -> Cost:
    """Reduces in a process of its own, and watches the memory of it and all that it starts."""
    out.mkdir()
    print(engine, file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--one", engine, "--out", str(out)]
    command += ["--dir", str(arguments.dir), "--rows", str(arguments.rows)]
    command += ["--by", arguments.by, "--metrics", arguments.metrics]
    process, peak = subprocess.Popen(command), 0
    try:
        while process.poll() is None:
            peak = max(peak, resident_kib(process.pid))
            time.sleep(EVERY_SECONDS)
    finally:
        process.terminate()
        process.wait()
    if process.returncode:
        raise SystemExit(f"{engine} ended with status {process.returncode}")
    cost = json.loads((out / "cost.json").read_text())
    return Cost(engine, cost["seconds"], peak / 2**20, cost["rows"])


def resident_kib(root: int) -> int:
    """Resident memory of a process and all below it. What they share counts for each."""
    parents, sizes = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name, in parentheses, may have blanks
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number], sizes[number] = int(fields[1]), int(fields[21]) * PAGE_KIB

    def is_below(number: int) -> bool:
        while number in parents and number != root:
            number = parents[number]
        return number == root

    return sum(size for number, size in sizes.items() if is_below(number))


def differing(one: Path, other: Path) -> int:
    """Rows that only one of two results has, on disk where they are larger than memory."""
    import duckdb as engine

    with engine.connect() as connection:
        connection.execute(f"SET memory_limit = '4GB'; SET temp_directory = '{one.parent}/spill'")
        sides = [f"SELECT * FROM '{first}' EXCEPT ALL SELECT * FROM '{second}'" for first, second in
                 ((one, other), (other, one))]  # fmt: skip
        counts = [connection.sql(f"SELECT count(*) FROM ({side})").fetchall()[0][0] for side in sides]
    return int(sum(counts))


def compare(engines: Sequence[str], arguments: argparse.Namespace, scratch: Path) -> int:
    """Runs all engines and prints the table; how many rows differ."""
    wrong = 0
    print("| engine | queries, s | peak memory, GiB | rows returned | rows that differ |")
    print("|---|---|---|---|---|")
    for engine in engines:
        cost = measured(engine, arguments, scratch / engine)
        found = 0
        for name in cost.rows if engine != engines[0] else ():
            rows = differing(scratch / engines[0] / f"{name}.parquet", scratch / engine / f"{name}.parquet")
            print(f"  {name}: {rows} rows differ", file=sys.stderr, flush=True)
            found += rows
        wrong += found
        differ = "" if engine == engines[0] else f"{found:,}"
        returned = f"{sum(cost.rows.values()):,}"
        print(f"| {engine} | {cost.seconds:.1f} | {cost.peak_gib:.2f} | {returned} | {differ} |", flush=True)
    return wrong


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5, help="millions")
    parser.add_argument("--engines", default="duckdb,spark", help="of duckdb, spark and clickhouse")
    parser.add_argument("--by", default="region,size_class", help="keys; none if empty")
    parser.add_argument("--metrics", default="", help="such as throughput,first_byte; all if empty")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    if unknown := set(engines) - {"duckdb", "spark", "clickhouse"}:
        parser.error(f"no engine {', '.join(sorted(unknown))}: there are duckdb, spark and clickhouse")
    files = [arguments.dir / f"{number:03d}.parquet" for number in range(arguments.rows)]
    if arguments.one is not None:
        reduce_on(arguments.one, files, plan(arguments.by, arguments.metrics), arguments.out)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        write(arguments.dir, arguments.rows)
        with tempfile.TemporaryDirectory(dir=arguments.dir) as scratch:
            return 1 if compare(engines, arguments, Path(scratch)) else 0
    finally:
        if not arguments.keep:
            remove(arguments.dir, arguments.rows)


if __name__ == "__main__":
    sys.exit(main())
