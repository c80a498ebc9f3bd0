#!/usr/bin/env bash
# The topic of records: one partition for each consumer that the analysis needs, kept for 3 days.
# NOT RUN: the options are those of Kafka 4.
set -euo pipefail
kafka-topics.sh --bootstrap-server "${1:-kafka-1:9092}" --create --if-not-exists --topic uncork-records --partitions 24 \
    --replication-factor 3 --config min.insync.replicas=2 --config retention.ms=259200000 --config compression.type=producer \
    --config max.message.bytes=1048576
