#!/usr/bin/env python3
"""Are the records true? Ten thousand responses, ended in every way, against their clients and a packet capture.

    capture.py --uncork target/release/uncork --python venv/bin/python3
    capture.py --uncork target/release/uncork --responses 1000 --loss 2%

`uncork emu` puts server and clients into network namespaces, with a path between them; tcpdump listens at the server. Clients
(`clients.py`, with aioquic and h2) end responses and connections in the ways listed there. Afterwards each record is compared
with what its client saw, and each connection's sums with the capture. Needs root, tcpdump, and an interpreter with aioquic, h2
and dpkt (`--python`). Exits with 1 if a record is wrong.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import dpkt

from clients import SIZES

HERE = pathlib.Path(__file__).resolve().parent
# GOAWAY and close_notify go out after the record is written.
CLOSING_BYTES = 64
# A QUIC client that closes in order may leave two packets unacknowledged (docs/reference/serve.md).
UNACKNOWLEDGED_BYTES = 3000
# More than a server sends again and again before the client answers.
FIRST_PACKETS = 10
HOST, PORT = "198.18.0.1", 8443


def play(options, directory):
    """Runs server, capture and clients; what they wrote is in the directory."""
    root = directory / "root"
    root.mkdir()
    for name, size in SIZES.items():
        (root / name).write_bytes(os.urandom(size))
    # The second of two QUIC packets in a datagram begins somewhere in it: 1,500 bytes of each are kept.
    capture = f"tcpdump -U -q -n -i uncork0 -s 1500 -B 65536 -w {directory}/capture.pcap port {PORT}"
    serve = (
        f"{options.uncork} serve --root {root} --listen {HOST}:{PORT} --self-signed --quiet --records {directory}/records.jsonl"
    )
    server = f"sh -c '{capture} 2>{directory}/tcpdump.txt & sleep 1; echo $$ >{directory}/pid; exec {serve}'"
    clients = f"{sys.executable} {HERE}/clients.py {HOST} {PORT} {options.responses} {options.seed} {directory}/clients.json"
    stop = f"pid=$(cat {directory}/pid); kill $pid; for i in $(seq 200); do kill -0 $pid || break; sleep 0.3; done 2>/dev/null"
    client = ["sh", "-c", f"{clients} && {{ {stop}; }}"]
    path = ["--rate", options.rate, "--rtt", options.rtt, "--loss", options.loss, "--seed", options.seed]
    command = [options.uncork, "emu", *path, "--server", server, "--", *client]
    done = subprocess.run([str(it) for it in command], timeout=1800)
    if done.returncode:
        sys.exit(f"the run ended with {done.returncode}")


class TcpFlow:
    """What a capture at the server says of a connection, in bytes of its payload."""

    def __init__(self):
        self.first = self.next = self.acked = None
        self.sent = 0
        self.acks = []

    def add_sent(self, tcp, length):
        if tcp.flags & dpkt.tcp.TH_SYN:
            self.first = self.next = self.acked = tcp.seq + 1
        elif length:
            self.sent += length
            self.next = max(self.next, self.absolute(tcp.seq) + length)

    def add_received(self, time, tcp):
        # A reset is obeyed, its acknowledgement is not read.
        if self.first is None or tcp.flags & dpkt.tcp.TH_RST:
            return
        # The FIN has a number, too.
        acked = min(self.absolute(tcp.ack), self.next)
        if acked > self.acked:
            self.acked = acked
            self.acks.append(time)

    def absolute(self, sequence):
        """Continues the numbers beyond 32 bits."""
        offset = (sequence - self.first) & 0xFFFFFFFF
        return self.first + (offset if offset < 1 << 31 else offset - (1 << 32))

    def sums(self):
        retransmitted = self.sent - (self.next - self.first)
        return {"bytes_acked": self.acked - self.first, "bytes_sent": self.sent, "bytes_retransmitted": retransmitted}

    def is_all_acked(self):
        return self.acked + CLOSING_BYTES >= self.next

    def last_ack_before(self, time):
        return max((it for it in self.acks if it < time), default=None)


class QuicFlow:
    """All packets but the server's first, which the stack does not count."""

    def __init__(self):
        # Minus the first packet.
        self.sent, self.packets = 0, -1
        self.latest = None

    def is_other(self, time):
        """Whether an Initial begins another connection: it comes again only while the handshake lasts."""
        return self.packets > FIRST_PACKETS and time - self.latest > 3

    def add_sent(self, payload, length):
        start = 0
        while start < len(payload) and payload[start] & 0x80:
            end = end_of_long_packet(payload, start)
            self.add_packet(end - start)
            start = end
        if start < length:
            self.add_packet(length - start)

    def add_packet(self, length):
        self.sent += length if self.packets >= 0 else 0
        self.packets += 1

    def sums(self):
        return {"bytes_sent": self.sent, "packets_sent": self.packets}


def is_initial(payload):
    return payload[0] & 0xB0 == 0x80


def end_of_long_packet(payload, start):
    """Where an Initial or Handshake packet ends (RFC 9000 §17.2)."""
    at = start + 5
    at += 1 + payload[at]
    at += 1 + payload[at]
    if is_initial(payload[start:]):
        token, at = variable(payload, at)
        at += token
    length, at = variable(payload, at)
    return at + length


def variable(payload, at):
    """An integer of variable length, and where it ends (RFC 9000 §16)."""
    size = 1 << (payload[at] >> 6)
    return int.from_bytes(payload[at : at + size]) & ((1 << (8 * size - 2)) - 1), at + size


def read_capture(path):
    """Flows over TCP and QUIC by the client's port; clients use a port again."""
    tcp, quic = collections.defaultdict(lambda: [TcpFlow()]), collections.defaultdict(lambda: [QuicFlow()])
    with open(path, "rb") as file:
        for time, packet in dpkt.pcap.Reader(file):
            if len(packet) < 20:
                continue  # The last one was cut off.
            ip = dpkt.ip.IP(packet)
            inner = ip.data
            if isinstance(inner, dpkt.tcp.TCP) and inner.sport == PORT:
                of_port = tcp[inner.dport]
                if inner.flags & dpkt.tcp.TH_SYN and of_port[-1].sent:
                    of_port.append(TcpFlow())
                of_port[-1].add_sent(inner, ip.len - ip.hl * 4 - inner.off * 4)
            elif isinstance(inner, dpkt.tcp.TCP):
                tcp[inner.sport][-1].add_received(time, inner)
            elif isinstance(inner, dpkt.udp.UDP) and inner.sport == PORT:
                of_port, payload = quic[inner.dport], bytes(inner.data)
                if is_initial(payload) and of_port[-1].is_other(time):
                    of_port.append(QuicFlow())
                of_port[-1].latest = time
                of_port[-1].add_sent(payload, inner.ulen - 8)
    return tcp, quic


def flows_of(connections, tcp, quic):
    """The flow of each connection: those of a port are in the order of their opening."""
    flows = {}
    for it in sorted(connections, key=lambda it: it["opened"]):
        of_port = (quic if it["protocol"] == "h3" else tcp)[it["port"]]
        flows[it["connection"]] = of_port.pop(0) if of_port else None
    return flows


def read_records(path):
    """Records of responses by host, of connections by number."""
    responses, connections = {}, {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["service"]["scope"] == "connection":
            connections[record["flow"]] = record
        else:
            assert record["service"]["host"] not in responses, "two records of one response"
            responses[record["service"]["host"]] = record
    return responses, connections


class Judge:
    """Counts verdicts, and keeps what is wrong."""

    def __init__(self):
        self.counts = collections.Counter()
        self.wrong = []
        self.late_ms = collections.defaultdict(list)

    def response(self, seen, record, flow):
        verdict = "NO RECORD" if record is None else judge_response(seen, record, flow)
        self.note(seen["protocol"], seen["end"] or "(not the last)", verdict, seen, record)

    def connection(self, seen, record, flow):
        if record is None or flow is None:
            self.note(seen["protocol"], "connection", "NO RECORD", seen, record)
            return
        for name, value in flow.sums().items():
            verdict = judge_sum(seen, name, record, value)
            self.note(seen["protocol"], f"connection's {name}", verdict, seen | {"capture": value}, record)

    def completion(self, seen, record, flow):
        """The last response of a connection that was closed later: its last ACK is in the capture."""
        acked = flow.last_ack_before(seen["ended"] + 0.3)
        ended = (record["service"]["start_unix_ns"] + record["completion_ns"]) / 1e9
        self.late_ms[seen["protocol"]].append((ended - acked) * 1e3)

    def note(self, protocol, what, verdict, seen, record):
        self.counts[protocol, what, verdict] += 1
        if verdict.isupper():
            self.wrong.append({"protocol": protocol, "what": what, "verdict": verdict, "seen": seen, "record": record})

    def show(self):
        for (protocol, what, verdict), count in sorted(self.counts.items()):
            print(f"{protocol}  {what:32} {verdict:44} {count:6}")
        for protocol, late in sorted(self.late_ms.items()):
            late.sort()
            low, median, high = (late[int(len(late) * share)] for share in (0.01, 0.5, 0.99))
            print(
                f"{protocol}  completion after the last ACK, ms:"
                f" p1 {low:.1f}, median {median:.1f}, p99 {high:.1f}, of {len(late)}"
            )


def judge_response(seen, record, flow):
    """In capitals if the record is wrong."""
    is_broken_off = record["service"]["broken_off"]
    is_whole = not is_broken_off and record["completion_ns"] is not None
    has_all = seen["protocol"] != "h3" and flow is not None and flow.is_all_acked()
    if seen["whole"] and is_whole:
        return "whole" if record["bytes_delivered"] == seen["size"] else "WHOLE WITH A WRONG SIZE"
    if seen["whole"]:
        if not is_broken_off:
            return "whole, recorded as not known"
        if seen["end"] in ("kill", "reset") and not has_all:
            return "whole, reset before it was acknowledged"
        return "WHOLE, RECORDED BROKEN OFF"
    if is_whole and seen["protocol"] == "h3" and seen["size"] - seen["received"] <= UNACKNOWLEDGED_BYTES:
        return "broken off at its end, recorded whole"
    if is_whole:
        return "broken off, but its kernel had all" if has_all else "BROKEN OFF, RECORDED WHOLE"
    if seen["end"] == "stuck":
        return "STUCK"
    missing = seen["received"] - record["bytes_delivered"]
    if missing > 0:
        # Over QUIC the client need not have acknowledged what it had, over TCP its kernel has.
        return "broken off, not all acknowledged" if seen["protocol"] == "h3" else "LESS DELIVERED THAN ARRIVED"
    return "broken off" if is_broken_off else "broken off, recorded as not known"


def judge_sum(seen, name, record, captured):
    difference = record[name] - captured
    if difference == 0:
        return "equal"
    if seen["protocol"] == "h3":
        # Packets that only acknowledge are counted, their bytes are not.
        if difference < 0 and name == "bytes_sent":
            only_acks = 45 * record["packets_sent"]
            return "fewer by packets that only acknowledge" if -difference <= only_acks else "FEWER"
        if seen["end"] in ("kill", "vanish") and difference <= 5 * (1500 if name == "bytes_sent" else 1):
            return "more: built when the server ended"
        return "within 150 bytes" if name == "bytes_sent" and difference <= 150 else "DIFFERS"
    if abs(difference) <= CLOSING_BYTES:
        return "equal, but for the closing messages"
    # After the server has closed, its kernel goes on with what it has.
    if difference < 0 and seen["end"] in ("abort", "kill"):
        return "fewer: the kernel went on after the end"
    return "DIFFERS"


def compare(directory):
    clients = json.loads((directory / "clients.json").read_text())
    responses, connections = read_records(directory / "records.jsonl")
    flows = flows_of(clients["connections"], *read_capture(directory / "capture.pcap"))
    judge, numbers = Judge(), {}
    for seen in clients["responses"]:
        record, flow = responses.get(seen["host"]), flows[seen["connection"]]
        judge.response(seen, record, flow)
        if record:
            numbers[seen["connection"]] = record["flow"]
        if record and seen["end"] == "later" and seen["protocol"] != "h3":
            judge.completion(seen, record, flow)
    for seen in clients["connections"]:
        judge.connection(seen, connections.get(numbers.get(seen["connection"])), flows[seen["connection"]])
    print(f"{len(clients['responses'])} responses on {len(clients['connections'])} connections")
    judge.show()
    return judge


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", default="target/release/uncork", help="the binary")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has aioquic, h2 and dpkt")
    parser.add_argument("--responses", default="10000")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--rtt", default="20ms")
    parser.add_argument("--loss", default="0.5%")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory for records, capture and what was wrong")
    return parser.parse_args()


def main():
    options = arguments()
    if options.python != sys.executable:
        os.execv(options.python, [options.python, *sys.argv, f"--python={options.python}"])
    if os.geteuid():
        sys.exit("network namespaces take root")
    directory = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="uncork-capture-"))
    directory.mkdir(exist_ok=True)
    try:
        play(options, directory)
        judge = compare(directory)
        (directory / "wrong.json").write_text(json.dumps(judge.wrong, indent=1))
    finally:
        if not options.keep:
            shutil.rmtree(directory)
    if judge.wrong:
        sys.exit(f"{len(judge.wrong)} figures are wrong")


if __name__ == "__main__":
    main()
