-- Roll-ups of an object store in ClickHouse: https://clickhouse.com/docs/engines/table-engines/integrations/s3queue
-- Tested with the embedded engine (python/uncork/tests/test_fleet_engines.py): the table, the view, and a query, against the files of
-- `uncork records rollup`. The engine S3Queue needs a server with Keeper: its statement was only parsed.
--
-- Counts add up, so rows of one key become one row, whenever the server merges parts. A file is read once: S3Queue remembers names, and
-- a name of a roll-up has the hash of its content.

CREATE DATABASE IF NOT EXISTS uncork;

CREATE TABLE IF NOT EXISTS uncork.rollups
(
    service_start_unix_ns UInt64,
    rollup_period_s UInt32,
    rollup_host LowCardinality(String),
    engine LowCardinality(String),
    service_scope LowCardinality(String),
    service_listener LowCardinality(String),
    service_client String,
    service_asn UInt32,
    service_country LowCardinality(String),
    arm_experiment LowCardinality(String),
    arm LowCardinality(String),
    arm_bucket UInt32,
    size_bytes UInt64,
    cc LowCardinality(String),
    rollup_records SimpleAggregateFunction(sum, UInt64),
    rollup_bytes SimpleAggregateFunction(sum, UInt64),
    retransmitted_of SimpleAggregateFunction(sum, UInt64),
    retransmitted_per SimpleAggregateFunction(sum, UInt64),
    throughput SimpleAggregateFunction(sumMap, Tuple(Array(Int32), Array(UInt64)))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Nano(toInt64(service_start_unix_ns)))
ORDER BY (service_start_unix_ns, rollup_host, engine, service_scope, service_listener, service_client, service_asn, service_country,
    arm_experiment, arm, arm_bucket, size_bytes, cc, rollup_period_s);

-- What the files have. Add the columns that you need: docs/reference/rollups.md#columns.
CREATE TABLE IF NOT EXISTS uncork.rollup_files
(
    service_start_unix_ns Nullable(UInt64), rollup_period_s Nullable(UInt64), rollup_host Nullable(String), engine Nullable(String),
    service_scope Nullable(String), service_listener Nullable(String), service_client Nullable(String), service_asn Nullable(UInt64),
    service_country Nullable(String), arm_experiment Nullable(String), arm Nullable(String), arm_bucket Nullable(UInt64),
    size_bytes Nullable(UInt64), cc Nullable(String), rollup_records Nullable(UInt64), rollup_bytes Nullable(UInt64),
    rollup_retransmitted_of Nullable(UInt64), rollup_retransmitted_per Nullable(UInt64),
    rollup_throughput_bins Array(Int64), rollup_throughput_counts Array(UInt64)
)
ENGINE = S3Queue('https://telemetry.s3.eu-central-1.amazonaws.com/uncork/**/rollup-*.parquet', 'Parquet')
SETTINGS mode = 'unordered', keeper_path = '/clickhouse/uncork/rollups';

CREATE MATERIALIZED VIEW IF NOT EXISTS uncork.take_rollups TO uncork.rollups AS
SELECT
    assumeNotNull(service_start_unix_ns) AS service_start_unix_ns,
    ifNull(rollup_period_s, 0) AS rollup_period_s,
    ifNull(rollup_host, '') AS rollup_host,
    ifNull(engine, '') AS engine,
    ifNull(service_scope, '') AS service_scope,
    ifNull(service_listener, '') AS service_listener,
    ifNull(service_client, '') AS service_client,
    ifNull(service_asn, 0) AS service_asn,
    ifNull(service_country, '') AS service_country,
    ifNull(arm_experiment, '') AS arm_experiment,
    ifNull(arm, '') AS arm,
    ifNull(arm_bucket, 0) AS arm_bucket,
    ifNull(size_bytes, 0) AS size_bytes,
    ifNull(cc, '') AS cc,
    ifNull(rollup_records, 0) AS rollup_records,
    ifNull(rollup_bytes, 0) AS rollup_bytes,
    ifNull(rollup_retransmitted_of, 0) AS retransmitted_of,
    ifNull(rollup_retransmitted_per, 0) AS retransmitted_per,
    (arrayMap(bin -> toInt32(bin), rollup_throughput_bins), rollup_throughput_counts) AS throughput
FROM uncork.rollup_files
WHERE rollup_records > 0;

-- Example: records, retransmissions and the median throughput of each arm. Bin b ends at 1.02^b bit/s.
SELECT
    arm,
    sum(rollup_records) AS records,
    sum(retransmitted_of) / sum(retransmitted_per) AS retransmitted,
    sumMap(throughput) AS bins,
    pow(1.02, bins.1[arrayFirstIndex(upTo -> upTo * 2 >= arraySum(bins.2), arrayCumSum(bins.2))]) AS median_bit_s
FROM uncork.rollups
WHERE arm != ''
GROUP BY arm
ORDER BY arm;
