// Inputs of the tests.

/** Options of the comparisons that are compared with the program's, in addition to the stories. */
export const SETTINGS = [
  {},
  { rate: "100mbit", rtt: "10ms", loss: "0%", buffer: "83p", cc: "reno,cubic:linux,bbr1,bbr2,bbr3", size: "3MB", seeds: "3" },
  { loss: "gilbert:mean=2%,burst=4", "loss-position": "before", queue: "pie", jitter: "5ms", size: "1MB", seeds: "7", seed: "42" },
  { preset: "wifi", duration: "3s", flows: "3", cc: "bbr3:loss_floor+cubic,reno+bbr2", seeds: "4" },
  { preset: "satellite-leo", size: "2MB", "host-jitter": "none", seeds: "6" },
];

/** Addresses with faults: the address, the option at fault, and a part of the message. */
export const BAD_ADDRESSES = [
  ["#rate=fast", "rate", "invalid value 'fast' for 'rate'"],
  ["#rate=", "rate", "invalid value '' for 'rate'"],
  ["#bogus=1", "bogus", "unknown option 'bogus'"],
  ["#loss=100%25", "loss", "every packet would be lost"],
  ["#loss=1", "loss", "invalid value '1' for 'loss'"],
  ["#rtt=10ms,20ms", "rtt", "use one value, or run in a terminal: uncork compare"],
  ["#size=10TB", "size", "packets in all"],
  ["#size=1MB&duration=1s", "duration", "exclude each other"],
  ["#cc=bbr4", "cc", "unknown controller 'bbr4'"],
  ["#cc=%00%F0%9F%98%80%0Aseeds=9999", "cc", "unknown controller"],
  ["#flows=99999999999999999999", "flows", "expected a whole number"],
  ["#<script>alert(1)</script>=<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "unknown option"],
  [`#rate=${"9".repeat(5000)}mbit`, "rate", "for 'rate'"],
  ["#%E0%A4%A=1", "%E0%A4%A", "unknown option '%E0%A4%A'"],
  ["#preset=mars", "preset", "expected one of fibre"],
];

/** Options that are refused: the option at fault, and a part of the message. */
export const REFUSED = [
  [{ rate: "1e3mbit" }, "rate", "unknown unit"],
  [{ rate: "18446744073709551615bit" }, "rate", "out of range; expected 8kbit to 400gbit"],
  [{ rate: "٣mbit" }, "rate", "must start with a number"],
  [{ rtt: "10us", size: "1MB" }, "buffer", "cannot hold one packet of 1500 B; use at least 1p"],
  [{ rtt: "9999999999999s" }, "rtt", "too large"],
  [{ rate: "10gbit", rtt: "60s", duration: "1s" }, "buffer", "too large; the limit is"],
  [{ loss: "gilbert:" }, "loss", "write gilbert:mean=1%,burst=5"],
  [{ queue: "fq_codel:flows=0" }, "queue", "a number from 1 to 65536"],
  [{ "host-jitter": "999s" }, "host-jitter", "its maximum up to 1s"],
  [{ seed: "18446744073709551615" }, "seed", "expected 0 to"],
  [{ cc: Array(300).fill("reno").join("+") }, "size", "too many for a page; the limit is"],
  [{ cc: "cubic,cubic" }, "cc", "listed twice; name it once"],
  [{ start: "in-turn" }, "start", "needs flows with a duration; add --duration 30s"],
  [{ "rate\n": "1mbit" }, "", "unknown option"],
];

/** Options at the ends of what is allowed, that run. */
export const EXTREME = [
  { loss: "99.9%", size: "1kB", seeds: "1", cc: "cubic" },
  { loss: "gilbert:mean=99%,burst=1000000", size: "10kB", seeds: "1" },
  { rtt: "60s", jitter: "60s", size: "100kB", seeds: "1", cc: "bbr3" },
  { buffer: "1p", size: "100kB", seeds: "1" },
  { duration: "1ms", start: "iperf3", flows: "2", seeds: "1", cc: "cubic+reno" },
  { preset: "lte", rate: "100kbit", size: "1B", seeds: "1" },
  { seed: "18446744073709541615", seeds: "2", size: "10kB" },
];
