"""The same records on DuckDB and on PySpark: are all counts equal, and what does each cost?

    python bench/engines.py --dir /tmp/scale --rows 5

Writes records as bench/scale.py does, reduces them by region and size class on both engines, compares every
count of the results, and deletes the files. Spark runs in a process with two threads (local[2]).
"""

import argparse
import time
from pathlib import Path

import pyarrow as pa
from scale import remove, write

from uncork_experiment.engines import duckdb, spark
from uncork_experiment.reduce import Queries, ReducePlan, Run, to_arrow

PLAN = ReducePlan(control="control", by=("region", "size_class"))


def tables(queries: Queries, run: Run) -> dict[str, pa.Table]:
    """What the engine returns for each query, in one order of rows and columns."""
    wanted = {metric.name: queries.metric(metric) for metric in queries.metrics}
    wanted |= {"units": queries.units(), "sources": queries.sources()}
    found = {}
    for name, query in wanted.items():
        begin = time.perf_counter()
        table = run(query)
        print(f"  {name}: {table.num_rows:,} rows in {time.perf_counter() - begin:.1f} s", flush=True)
        names = sorted(table.column_names)
        found[name] = table.select(names).sort_by([(name, "ascending") for name in names])
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5, help="millions")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    arguments = parser.parse_args()
    files = [arguments.dir / f"{number:03d}.parquet" for number in range(arguments.rows)]
    try:
        write(arguments.dir, arguments.rows)
        print("DuckDB")
        ours = tables(Queries.of(duckdb.connect().read(files), PLAN), to_arrow)
        print("PySpark")
        session = spark.local_session("local[2]", {"spark.driver.memory": "4g"})
        try:
            records, run = spark.open_files(files, session)
            theirs = tables(Queries.of(records, PLAN), run)
        finally:
            session.stop()
    finally:
        if not arguments.keep:
            remove(arguments.dir, arguments.rows)
    for name, table in ours.items():
        if table.to_pylist() != theirs[name].to_pylist():
            raise SystemExit(f"{name} differs")
    rows = sum(table.num_rows for table in ours.values())
    print(f"all {rows:,} rows of {len(ours)} results are equal")


if __name__ == "__main__":
    main()
