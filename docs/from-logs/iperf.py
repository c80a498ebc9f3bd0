"""Rate, RTT and buffer from `iperf3 -J`: python3 iperf.py iperf.json"""

import json
import sys

sender = json.load(open(sys.argv[1]))["end"]["streams"][0]["sender"]
rate, queue = sender["bits_per_second"], sender["max_rtt"] - sender["min_rtt"]
print(f'rate = "{rate * 1500 / 1448 / 1e6:.1f}mbit"')
print(f'rtt = "{sender["min_rtt"] / 1e3:.1f}ms"')
print(f'buffer = "{rate / 8 * queue / 1e9:.0f}kB"')
