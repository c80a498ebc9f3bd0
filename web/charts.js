// Curves of a race over time, as SVG: faint as a whole, strong up to the time that is shown.

import { digits, escaped } from "./numbers.js";
import { PACKET } from "./race.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [46, 10, 8, 20];
const HEIGHT = 170;
const BAND = 13;

const PHASES = [
  [/startup|slow.?start/i, "search"], [/drain/i, "drain"], [/probertt|probe_rtt/i, "rtt"], [/_up|refill/i, "up"],
  [/_down/i, "down"], [/recovery|loss/i, "recovery"], [/cruise|probebw|probe_bw|avoidance/i, "cruise"],
];

export function phaseOf(state) {
  return PHASES.find(([pattern]) => pattern.test(state))?.[1] ?? "other";
}

function charts(race) {
  const { setup, curves } = race;
  const mbit = (values) => values.map((value) => value / 1e6);
  const rule = { at: setup.rate_bps / 1e6, name: "link" };
  return [
    { name: "Throughput", unit: "Mbit/s", rules: [rule], lines: curves.map((it) => ({ ...it, y: mbit(it.goodput) })), band: true },
    {
      name: "In flight, and the window (thin)", unit: "kB",
      rules: [{ at: setup.bdp_bytes / 1e3, name: "1 BDP" }, { at: (setup.bdp_bytes + setup.buffer_bytes) / 1e3, name: "BDP + buffer" }],
      lines: curves.map((it) => ({ ...it, y: it.inflight.map((value) => value / 1e3), thin: it.window.map((value) => value / 1e3) })),
    },
    {
      name: "Queue", unit: "packets", rules: [{ at: setup.buffer_bytes / PACKET, name: "buffer" }],
      lines: race.lanes.map((lane) => ({ ...lane.curves[0], last: Math.max(...lane.curves.map((it) => it.last)), label: lane.name, y: lane.queue.map((value) => value / PACKET) })),
    },
    {
      name: "Pacing rate", unit: "Mbit/s", rules: [rule],
      lines: curves.filter((it) => it.pacing.some((rate) => rate > 0)).map((it) => ({ ...it, y: mbit(it.pacing) })),
      none: "No controller of this race paces: acknowledgements clock them.",
    },
  ];
}

function roundUp(value) {
  const step = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * step).find((n) => n >= value * 0.999) ?? value;
}

// A curve spends most of its time below a few peaks: they may leave the chart.
function topOf({ lines, rules }) {
  const values = lines.flatMap((line) => Array.from(line.y)).sort((a, b) => a - b);
  const high = values[Math.floor(values.length * 0.99)] ?? 1;
  const near = rules.map((rule) => rule.at).filter((at) => at < high * 1.6);
  return roundUp(Math.max(high * 1.08, ...near.map((at) => at * 1.08), 1e-6));
}

function pathOf(values, last, x, y) {
  const points = Array.from(values.subarray(0, last + 1), (value, at) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
  return `M${points.join("L")}`;
}

function bandOf(curve, x, samples) {
  const parts = [];
  for (let from = 0; from < samples; ) {
    let to = from + 1;
    while (to < samples && curve.states[to] === curve.states[from]) to += 1;
    const state = curve.states[from];
    if (state) parts.push(`<rect class="p-${phaseOf(state)}" x="${x(from).toFixed(1)}" width="${Math.max(0.8, x(to) - x(from)).toFixed(1)}" height="${BAND - 4}"><title>${escaped(state)}</title></rect>`);
    from = to;
  }
  return parts.join("");
}

/** A chart for each quantity. `seek` moves the time that is shown. */
export class Charts {
  #place;
  #race;
  #heads = [];

  constructor(place, seek) {
    this.#place = place;
    new ResizeObserver(() => this.#race && this.draw(this.#race)).observe(place);
    place.addEventListener("pointerdown", (event) => this.#seek(event, seek));
    place.addEventListener("pointermove", (event) => event.buttons && this.#seek(event, seek));
  }

  #seek(event, seek) {
    const svg = event.target.closest("svg");
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    seek(Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT))));
  }

  draw(race) {
    this.#race = race;
    const columns = this.#place.clientWidth > 620 ? 2 : 1;
    const width = Math.max(240, Math.floor((this.#place.clientWidth - (columns - 1) * 20) / columns));
    this.#place.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    this.#place.innerHTML = charts(race).map((chart, nth) => this.#chart(chart, nth, width)).join("");
    this.#heads = [...this.#place.querySelectorAll("svg")].map((svg) => ({
      clip: svg.querySelector("clipPath rect"), head: svg.querySelector(".head"), width,
    }));
    this.at(this.share ?? 1, false);
  }

  /** Shows this time: while the race runs, curves end there. */
  at(share, isRunning) {
    this.share = share;
    for (const { clip, head, width } of this.#heads) {
      const x = share * (width - LEFT - RIGHT);
      clip.setAttribute("width", isRunning ? x : width);
      head.setAttribute("transform", `translate(${LEFT + x} 0)`);
    }
  }

  #chart(chart, nth, width) {
    const race = this.#race;
    const { samples } = race;
    const bands = chart.band ? race.curves.slice(0, 4) : [];
    const bottom = HEIGHT - BOTTOM;
    const height = HEIGHT + bands.length * BAND;
    const top = topOf(chart);
    const x = (at) => LEFT + (at / (samples - 1)) * (width - LEFT - RIGHT);
    const y = (value) => Math.max(TOP - 4, bottom - (value / top) * (bottom - TOP));
    const ticks = [0, top / 2, top].map((value) => `<path class="grid" d="M${LEFT} ${y(value)}H${width - RIGHT}"/><text class="e q" x="${LEFT - 6}" y="${y(value) + 4}">${digits(value).replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") ? "" : zeros))}</text>`);
    const inside = chart.rules.filter((rule) => rule.at < top);
    const rules = inside.map((rule) => `<path class="rule" d="M${LEFT} ${y(rule.at)}H${width - RIGHT}"/>`);
    const names = inside.map((rule) => `<text class="e q halo" x="${width - RIGHT - 2}" y="${y(rule.at) - 4}">${rule.name}</text>`);
    const lines = chart.lines.map((line) => {
      const thin = line.thin ? `<path class="line thin s${line.ink} d${line.ink}" d="${pathOf(line.thin, line.last, x, y)}"/>` : "";
      return `${thin}<path class="line s${line.ink} d${line.ink}" d="${pathOf(line.y, line.last, x, y)}"/>`;
    }).join("");
    const seconds = race.end_ns / 1e9;
    const times = [0, 0.5, 1].map((share) => `<text class="${["", "m", "e"][share * 2]} q" x="${LEFT + share * (width - LEFT - RIGHT)}" y="${height - 4}">${digits(share * seconds)}${share === 1 ? " s" : ""}</text>`);
    const states = bands.map((curve, row) => `<g transform="translate(0 ${bottom + 4 + row * BAND})"><path class="line s${curve.ink} d${curve.ink}" d="M4 5H38"/>${bandOf(curve, x, samples)}</g>`);
    const last = chart.lines.map((line) => `${line.label}: ${digits(Math.max(...line.y))} ${chart.unit} at most`).join("; ");
    const empty = chart.lines.length ? "" : `<text class="m q" x="${width / 2}" y="${HEIGHT / 2}">${chart.none ?? ""}</text>`;
    return `<figure><figcaption><b>${chart.name}</b> ${chart.unit}${chart.band ? ", and states" : ""}</figcaption>
<svg class="chart" role="img" aria-label="${escaped(`${chart.name} over ${digits(seconds)} s. ${last}`)}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<clipPath id="clip${nth}"><rect x="${LEFT}" y="0" width="${width}" height="${height}"/></clipPath>
${ticks.join("")}${rules.join("")}${empty}<g class="faint">${lines}</g><g clip-path="url(#clip${nth})">${lines}</g>${names.join("")}${states.join("")}${times.join("")}
<path class="head" d="M0 ${TOP - 4}V${height - BOTTOM + 2}"/></svg></figure>`;
  }
}
