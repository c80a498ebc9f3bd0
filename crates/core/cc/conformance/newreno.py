#!/usr/bin/env python3
"""A NewReno for the traces reno-*.jsonl: an example of how to check a controller in another language.

    python3 newreno.py traces

Standard library only. `Trace` reads the format; `NewReno` is the implementation under test, from RFC 5681,
RFC 9002, RFC 9937 and the decisions that README.md lists.
"""

import glob
import json
import os
import sys

INFINITE = 2**64 - 1


class Packet:
    """A packet in flight, with what the controller noted when it left."""

    def __init__(self, number, time, size, delivered):
        self.number, self.time, self.size, self.delivered = number, time, size, delivered


class Episode:
    """A recovery episode (RFC 9002 7.3.2): one congestion event, and whether all its losses were spurious."""

    def __init__(self, since=0, started=0, active=False, undoable=False):
        self.since, self.started = since, started
        self.active, self.undoable, self.lost = active, undoable, 0

    def enter(self, now):
        self.__init__(self.started, now, True, True)

    def count(self, packets):
        return sum(packet.time >= self.since for packet in packets)

    def on_feedback(self, now, acked, lost):
        if lost and lost[-1].time >= self.started:
            self.enter(now)
            self.lost = self.count(lost)
            return "entered"
        self.lost += self.count(lost)
        if self.active and acked and acked[-1].time >= self.started:
            self.active = False
            return "exited"
        return None

    def on_spurious(self, packets):
        had = self.lost > 0
        self.lost = max(self.lost - self.count(packets), 0)
        if not (self.undoable and had and self.lost == 0):
            return False
        self.undoable = self.active = False
        return True


class Prr:
    """Proportional Rate Reduction (RFC 9937), in bytes."""

    def __init__(self, recover_fs):
        self.recover_fs, self.delivered, self.out = max(recover_fs, 1), 0, 0

    def window(self, event, delivered, lost, ssthresh, mss):
        self.delivered += delivered
        in_flight = event["in_flight"]
        if in_flight > ssthresh:
            count = max(-(-self.delivered * ssthresh // self.recover_fs) - self.out, 0)
        else:
            safe = event["una_advanced"] and not lost
            count = max(self.delivered - self.out, delivered, 0) + (mss if safe else 0)
            count = min(count, ssthresh - in_flight)
        if self.out == 0:
            count = max(count, mss)  # the fast retransmit
        return max(in_flight + count, mss)


class NewReno:
    def __init__(self, header):
        self.mss, self.paced = header["mss"], header["paced"]
        self.initial_window = self.cwnd = header["initial_window"]
        self.ssthresh, self.undo = INFINITE, (0, 0)
        self.in_flight = self.delivered = self.rounds = self.next_round = self.acked = 0
        self.full = [False, False]
        self.largest = [0, 0]
        self.episode, self.prr = Episode(), None

    def on_sent(self, event, packet):
        packet.delivered = self.delivered
        self.in_flight = event["in_flight"]
        self.full[0] |= self.in_flight + self.mss > self.cwnd
        self.largest[0] = max(self.largest[0], self.in_flight)
        if self.prr:
            self.prr.out += packet.size

    def on_feedback(self, now, event, acked, lost):
        delivered = sum(packet.size for packet in acked)
        self.in_flight = event["in_flight"]
        self.count_round(acked, delivered)
        change = self.update_episode(now, event, acked, lost)
        if change == "entered":
            settled = delivered + sum(packet.size for packet in lost)
            cwnd, used = self.congestion(self.in_flight + settled)
            self.acked, self.undo = 0, (cwnd, self.ssthresh)
            self.ssthresh = max(used // 2, 2 * self.mss)
            self.prr = Prr(event.get("unacked", self.in_flight) + delivered)
        if self.prr and change == "exited":
            self.prr, self.cwnd = None, self.ssthresh
        elif self.prr:
            self.cwnd = self.prr.window(event, delivered, lost, self.ssthresh, self.mss)
        else:
            if self.after_timeout() and lost and not acked and self.cwnd <= self.mss:
                self.cwnd = self.in_flight + self.mss
            if acked and acked[-1].time >= self.episode.started and any(self.full):
                self.grow(delivered)

    def count_round(self, acked, delivered):
        if not acked:
            return
        self.delivered += delivered
        if acked[-1].delivered >= self.next_round:
            self.next_round, self.rounds = self.delivered, self.rounds + 1
            self.full = [False, self.full[0]]
            self.largest = [0, self.largest[0]]

    def update_episode(self, now, event, acked, lost):
        change = self.episode.on_feedback(now, acked, lost)
        if event.get("ce_packets", 0) or event.get("repaired_by_probe"):
            if change != "entered" and acked and acked[-1].time >= self.episode.started:
                self.episode.enter(now)
                change = "entered"
            self.episode.undoable = False
        return change

    def congestion(self, flight):
        """The window that a congestion event met, and how much of it was used."""
        cwnd = self.ssthresh if self.prr else self.cwnd
        if not self.prr:
            flight = max(flight, *self.largest)
        return cwnd, cwnd if flight + self.mss > cwnd else flight

    def grow(self, acked):
        if self.cwnd < self.ssthresh or self.ssthresh == INFINITE:
            most = acked if self.paced else min(acked, 8 * self.mss)
            self.cwnd = max(min(self.cwnd + most, self.ssthresh), self.cwnd)
            return
        self.acked += acked
        if self.acked >= self.cwnd:
            self.acked = min(self.acked - self.cwnd, self.cwnd)
            self.cwnd += self.mss

    def after_timeout(self):
        return self.episode.active and not self.prr

    def on_timeout(self, now, kind):
        if kind == "probe":
            return
        persistent = kind == "persistent"
        repeated = self.episode.active if persistent else self.after_timeout()
        self.acked = 0
        if repeated:
            self.episode.started, self.episode.active = now, True
        else:
            cwnd, used = self.congestion(self.in_flight)
            self.undo = (cwnd, self.ssthresh)
            self.ssthresh = max(used // 2, 2 * self.mss)
            self.episode.enter(now)
        self.prr, self.cwnd = None, (2 if persistent else 1) * self.mss
        if persistent:
            self.episode.undoable = False

    def on_spurious(self, packets):
        if self.episode.on_spurious(packets) and (self.prr or self.cwnd < self.undo[0]):
            self.prr, self.cwnd = None, max(self.undo[0], self.cwnd)
            self.ssthresh = max(self.undo[1], 2 * self.mss)

    def on_mtu(self, mss):
        self.mss, self.cwnd = mss, max(self.cwnd, mss)
        self.ssthresh = max(self.ssthresh, 2 * mss)

    def on_migrated(self, now):
        self.cwnd, self.ssthresh, self.prr = max(self.initial_window, self.mss), INFINITE, None
        self.episode, self.full = Episode(now, now), [False, False]
        self.largest = [0, 0]

    def decisions(self):
        slow_start = self.cwnd < self.ssthresh or self.ssthresh == INFINITE
        state = "SlowStart" if slow_start else "CongestionAvoidance"
        return {
            "cwnd": self.cwnd,
            "send_quantum": self.cwnd,
            "state": "Recovery" if self.prr else state,
            "in_recovery": self.episode.active,
            "ssthresh": None if self.ssthresh == INFINITE else self.ssthresh,
            "round_count": self.rounds,
        }


class Trace:
    """Drives a controller with the events of a trace, and compares its decisions."""

    def __init__(self, path, controller):
        with open(path, encoding="utf-8") as file:
            self.lines = [json.loads(line) for line in file]
        assert self.lines[0]["schema"] == "uncork-cc-trace/1", path
        self.path, self.packets = path, []
        self.cc, self.expected = controller(self.lines[0]), {}

    def play(self):
        """The first difference, or None."""
        for number, line in enumerate(self.lines, 1):
            if number > 1:
                self.event(line)
            self.expected.update(line.get("out", {}))
            for name, value in self.cc.decisions().items():
                if self.expected[name] != value:
                    return f"{self.path}:{number}: {name} is {value}, expected {self.expected[name]}"
        return None

    def event(self, line):
        now, kind = line["t"], line["on"]

        def find(key):
            return [self.packets[number] for number in line.get(key, [])]

        if kind == "sent":
            packet = Packet(len(self.packets), now, line["bytes"], 0)
            self.packets.append(packet)
            self.cc.on_sent(line, packet)
        elif kind == "feedback":
            self.cc.on_feedback(now, line, find("acked"), find("lost"))
        elif kind == "spurious":
            self.cc.on_spurious(find("packets"))
        elif kind == "timeout":
            self.cc.on_timeout(now, line["kind"])
        elif kind == "mtu":
            self.cc.on_mtu(line["mss"])
        elif kind == "migrated":
            self.cc.on_migrated(now)
        elif kind != "drained":  # NewReno ignores it
            sys.exit(f"{self.path}: unknown event {kind}")


def main():
    paths = sorted(glob.glob(os.path.join(sys.argv[1], "reno-*.jsonl")))
    differences = [difference for path in paths if (difference := Trace(path, NewReno).play())]
    print(*differences, sep="\n", end="\n" if differences else "")
    print(f"{len(paths) - len(differences)} traces agree")
    sys.exit(1 if differences or not paths else 0)


if __name__ == "__main__":
    main()
