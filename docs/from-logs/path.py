"""A scenario from the records of `uncork serve`: python3 path.py records.jsonl > mine.toml"""

import json
import statistics
import sys
from collections import defaultdict

WIRE = 1500 / 1448  # bytes on the wire for each byte of payload
QUARTERS = ["0%", "25%", "50%", "75%", "100%"]


def usable(record):
    """Long enough to leave slow start, and not held back by the client's window."""
    service = record.get("service") or {}
    held_back = service.get("rwnd_limited_ns") or 0
    return (
        service.get("scope") == "response"
        and record["bytes_acked"] > 3e6
        and record["rtt_ms"]
        and held_back < 0.1 * record["busy_ns"]
    )


def is_bbr(record):
    return record["cc"].startswith("bbr")


def has_queue(record):
    """A queue stood most of the time, so the link was the limit and not random loss."""
    return record["rtt_ms"]["p50"] > 1.15 * record["rtt_ms"]["min"]


def rate(record):
    """Bits per second on the wire."""
    return record["bytes_acked"] * WIRE * 8e9 / record["busy_ns"]


def queue(record):
    """Bytes in the queue at the 95th percentile of the round-trip time."""
    return rate(record) / 8 * (record["rtt_ms"]["p95"] - record["rtt_ms"]["min"]) / 1e3


def quantiles(values, unit):
    values = sorted(values)
    inner = statistics.quantiles(values, n=4, method="inclusive")
    points = zip(QUARTERS, [values[0], *inner, values[-1]])
    return ", ".join(f'["{share}", "{value:.1f}{unit}"]' for share, value in points)


def network(name, records):
    # BBR fills links that CUBIC does not; CUBIC with losses shows slow links only.
    full = list(filter(is_bbr, records)) or list(filter(has_queue, records))
    # Where CUBIC had no queue, packets were lost for other reasons.
    random = [record for record in records if not is_bbr(record) and not has_queue(record)]
    sent = sum(record["packets_sent"] for record in random)
    lost = sum(record["packets_lost"] for record in random)
    if len(full) < 2:
        print(f"{name}: too few responses show the rate; left out", file=sys.stderr)
        return
    print(f"[path.{name}]  # {len(records)} responses, {len(full)} show the rate")
    print("own_per_flow = true")
    print(f"rate = {{ quantiles = [{quantiles([rate(r) / 1e6 for r in full], 'mbit')}] }}")
    print(f"rtt = {{ quantiles = [{quantiles([r['rtt_ms']['min'] for r in records], 'ms')}] }}")
    print(f'loss = "{100 * lost / max(sent, 1):.2f}%"')
    print(f'buffer = "{max(map(queue, records)) / 1e3:.0f}kB"\n')
    print(f"[flow.{name}]")
    print(f'path = "{name}"\ncc = ["cubic", "bbr3"]\ncount = 40\npaired = true')
    print(f'transfer = "{statistics.median(r["bytes_delivered"] for r in records) / 1e6:.1f}MB"\n')


networks = defaultdict(list)
for line in open(sys.argv[1]):
    record = json.loads(line)
    if usable(record):
        networks[f"as{record['service']['asn']}"].append(record)
for name in sorted(networks):
    network(name, networks[name])
