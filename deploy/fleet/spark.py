"""Roll-ups of an object store into a table of Spark, each file once.

    spark-submit deploy/fleet/spark.py s3a://telemetry/uncork s3a://lake/uncork/rollups --checkpoint s3a://lake/uncork/checkpoint
        [--format delta|iceberg|parquet]

The stream's checkpoint remembers files by name, and the name of a roll-up has the hash of its content. Run it every few
minutes: it takes what is new and ends. Rows of one key add up in queries: sum(rollup_records), and so on
(docs/reference/rollups.md).

Tested with Spark 4.0, a directory as the source and `--format parquet` (python/uncork/tests/test_fleet_engines.py).
Delta Lake and Iceberg need their packages (`--packages io.delta:delta-spark_2.13:4.0.0`), and were not run.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def rows(spark: SparkSession, source: str) -> DataFrame:
    """The rows that count records, with the day of their period. The first file that is there gives the columns."""
    of = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "rollup-*.parquet")
    stream = (
        spark.readStream.schema(of.parquet(source).schema)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "rollup-*.parquet")
        .parquet(source)
    )
    day = f.to_date(f.timestamp_seconds(f.col("service_start_unix_ns") / 1_000_000_000))
    return stream.where(f.col("rollup_records") > 0).withColumn("day", day)


def take(spark: SparkSession, source: str, target: str, checkpoint: str, kind: str) -> None:
    """Appends what is new."""
    writer = rows(spark, source).writeStream.format(kind).partitionBy("day").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).outputMode("append").start(target).awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser(description="Roll-ups into a table of Spark")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--format", choices=("delta", "iceberg", "parquet"), default="delta")
    words = parser.parse_args()
    spark = SparkSession.builder.appName("uncork-rollups").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    take(spark, words.source, words.target, words.checkpoint, words.format)


if __name__ == "__main__":
    main()
