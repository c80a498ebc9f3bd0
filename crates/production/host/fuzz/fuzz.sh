#!/usr/bin/env bash
# fuzz.sh SECONDS: starts from the replies of this host's kernel. A datagram that breaks something is left in artifacts/: it belongs
# into a test of its own. Needs nightly and cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"

mkdir -p corpus/datagrams
python3 - corpus/datagrams <<'PYTHON'
"""Writes the kernel's replies to dumps of links, routes and queue disciplines."""
import pathlib, socket, struct, sys

GETLINK, GETROUTE, GETQDISC, REQUEST, DUMP = 18, 26, 38, 0x1, 0x300
BODY_SIZE = {GETLINK: 16, GETROUTE: 12, GETQDISC: 20}
DONE = 3
for request, size in BODY_SIZE.items():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + size, request, REQUEST | DUMP, 1, 0) + bytes(size))
        for number in range(100):
            reply = kernel.recv(1 << 16)
            pathlib.Path(sys.argv[1], f"{request}-{number}").write_bytes(reply)
            if struct.unpack_from("=H", reply, 4)[0] == DONE:
                break
PYTHON

# The crate has no unsafe code for a sanitizer to watch; overflow checks and debug assertions are on.
cargo +nightly fuzz run --sanitizer none datagrams -- -max_total_time="$1" -max_len=8192 -print_final_stats=1
