// The options of a comparison: their steps on the page, and their form in the address.

const steps = (unit, ...numbers) => numbers.map((number) => `${number}${unit}`);

/** Options with sliders or lists, in the order of the page. A value that is not a step is added to the steps. */
export const OPTIONS = [
  {
    name: "rate", label: "Rate of the bottleneck", usual: "20mbit",
    steps: [...steps("kbit", 250, 500), ...steps("mbit", 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500), "1gbit"],
  },
  { name: "rtt", label: "Round-trip time", usual: "50ms", steps: steps("ms", 1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 600) },
  {
    name: "loss", label: "Random loss", usual: "1%",
    steps: steps("%", 0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 8, 10, 15, 20),
  },
  { name: "buffer", label: "Buffer", usual: "1bdp", steps: steps("bdp", 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 3, 4, 8, 16, 32) },
  { name: "jitter", label: "Jitter", usual: "0s", steps: ["0s", ...steps("ms", 1, 2, 5, 10, 20, 50)] },
  { name: "flows", label: "Flows of each controller", usual: "1", steps: steps("", 1, 2, 3, 4, 5, 8, 10, 16) },
  { name: "size", label: "Bytes per flow", usual: "10MB", steps: [...steps("kB", 30, 100, 300), ...steps("MB", 1, 3, 10, 30, 100)] },
  { name: "duration", label: "Send for", usual: "10s", steps: steps("s", 2, 5, 10, 20, 30, 60) },
  { name: "seeds", label: "Runs of each controller", usual: "10", steps: steps("", 1, 3, 6, 10, 20) },
];

export const QUEUES = ["droptail", "codel", "fq_codel", "cake", "pie", "dualpi2"];
export const STARTS = ["in-turn", "iperf3", "random", "together"];

/** What the page shows without an address. */
export const USUAL = { cc: "cubic,bbr3" };

/** The options of an address: `#rate=20mbit&cc=cubic,bbr3`. */
export function optionsOf(hash) {
  const text = hash.replace(/^#/, "");
  if (!text) return { ...USUAL };
  return Object.fromEntries(text.split("&").filter(Boolean).map((pair) => {
    const at = pair.indexOf("=");
    return at < 0 ? [decoded(pair), ""] : [decoded(pair.slice(0, at)), decoded(pair.slice(at + 1))];
  }));
}

function decoded(text) {
  try {
    return decodeURIComponent(text.replaceAll("+", "%2B"));
  } catch {
    return text; // `loss=1%` typed by hand.
  }
}

/** The address of options. */
export function hashOf(options) {
  const pairs = Object.entries(options).map(([name, value]) => `${name}=${plain(value)}`);
  return `#${pairs.join("&")}`;
}

// Commas, colons and plus signs stay readable.
function plain(value) {
  return encodeURIComponent(value).replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2B", "+").replaceAll("%3D", "=");
}

const UNITS = [
  ["gbit", "Gbit/s", "gigabits per second", 1e9], ["mbit", "Mbit/s", "megabits per second", 1e6],
  ["kbit", "kbit/s", "kilobits per second", 1e3], ["bit", "bit/s", "bits per second", 1],
  ["bdp", "BDP", "bandwidth-delay products", 1], ["us", "µs", "microseconds", 1e-6], ["ms", "ms", "milliseconds", 1e-3],
  ["s", "s", "seconds", 1], ["%", "%", "percent", 1], ["GB", "GB", "gigabytes", 1e9], ["MB", "MB", "megabytes", 1e6],
  ["kB", "kB", "kilobytes", 1e3], ["B", "B", "bytes", 1], ["p", "packets", "packets", 1],
];

function quantity(value) {
  const [, number, unit] = /^\s*([0-9.]+)\s*([a-zA-Z%]*)\s*$/.exec(value) ?? [];
  if (number === undefined) return undefined;
  const known = UNITS.find(([name]) => name === unit);
  return { number, unit: known ?? ["", unit, unit, 1] };
}

/** The value for eyes: `20 Mbit/s`. */
export function shown(value) {
  const it = quantity(value);
  return it ? `${it.number} ${it.unit[1]}`.trim() : value;
}

/** The value for ears: `20 megabits per second`. */
export function spoken(value) {
  const it = quantity(value);
  return it ? `${it.number} ${it.unit[2]}`.trim() : value;
}

/** The steps with `value` among them, in order of size. */
export function stepsWith(steps, value) {
  if (steps.includes(value)) return steps;
  const size = (text) => {
    const it = quantity(text);
    return it ? Number(it.number) * it.unit[3] : Infinity;
  };
  return [...steps, value].sort((a, b) => size(a) - size(b));
}
