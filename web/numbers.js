// Numbers as texts.

/** Three digits. */
export function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** A quantity of a result document in the unit that fits: `26.6 s`, `17.9 Mbit/s`. */
export function quantity(value, unit) {
  const scaled = (steps) => {
    const [size, name] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1);
    return `${digits(value / size)} ${name}`;
  };
  if (value === null || value === undefined) return "–";
  if (unit === "s") return value === 0 ? "0 s" : scaled([[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
  if (unit === "bit/s") return scaled([[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
  if (unit === "B") return scaled([[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  return `${digits(value)} ${unit}`.trim();
}

/** `1 packet`, `2 packets`. */
export function counted(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Text for HTML. */
export function escaped(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}
