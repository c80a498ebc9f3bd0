
// Asks the server each second what it has counted, and draws the differences.
(() => {
  "use strict";
  const root = document.documentElement;
  const errors = [];
  const fault = (text) => {
    errors.push(String(text));
    root.dataset.errors = errors.slice(-20).join("\n");
  };
  addEventListener("error", (event) => fault(event.message));
  addEventListener("unhandledrejection", (event) => fault(event.reason));
  addEventListener("securitypolicyviolation", (event) => fault(event.violatedDirective));

  const PERIOD = 1000;
  const KEPT = 600;
  const DASHES = [[], [7, 4.5], [1, 4], [9, 4.5, 1, 4.5], [14, 5.5]];
  const COLOURS = 7;
  const CURVES = 12;
  const by = document.getElementById("by");
  const pause = document.getElementById("pause");
  const show = (id, text) => (document.getElementById(id).textContent = text);
  const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);

  // Each reading of the server: a time, and what was counted by then.
  const readings = [];

  const number = (value) =>
    value == null || !isFinite(value) ? "–" : Number(value.toPrecision(3)).toLocaleString("en");
  const bytes = (value) => {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let at = 0;
    while (value >= 1000 && at + 1 < units.length) [value, at] = [value / 1000, at + 1];
    return number(value) + " " + units[at];
  };
  const span = (seconds) => {
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = parts.findIndex(([length]) => seconds >= length);
    if (first < 0) return "0 s";
    const rest = parts.slice(first, first + 2);
    return rest
      .map(([length, unit]) => {
        const count = Math.floor(seconds / length);
        seconds -= count * length;
        return count + " " + unit;
      })
      .join(" ");
  };

  const name = (one) => {
    if (by.value === "arm") return one.arm ? one.experiment + "/" + one.arm : one.cc;
    return one[by.value];
  };

  // What was counted by the time of a reading, for each curve.
  const grouped = (reading) => {
    const groups = new Map();
    for (const one of reading.series) {
      const key = name(one);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(one);
    }
    const total = (list) => ({
      open: sum(list, (one) => one.open),
      acked: sum(list, (one) => one.bytes_acked),
      sent: sum(list, (one) => one.bytes_sent),
      retransmitted: sum(list, (one) => one.bytes_retransmitted),
      ratio: reading.rtt_ratio_edges.concat(0).map((_, n) => sum(list, (one) => one.rtt_ratio[n])),
    });
    return new Map([...groups].map(([key, list]) => [key, total(list)]));
  };

  // The median of what came into buckets between two readings, as if even within each.
  const median = (edges, now, before) => {
    const counts = now.map((count, n) => count - (before ? before[n] : 0));
    const all = sum(counts, (count) => count);
    if (all <= 0) return null;
    let below = 0;
    for (let n = 0; n < edges.length; n++) {
      if (below + counts[n] >= all / 2) {
        const low = n ? edges[n - 1] : 1;
        return low + (edges[n] - low) * ((all / 2 - below) / counts[n]);
      }
      below += counts[n];
    }
    return edges.at(-1);
  };

  const NOTHING = { open: 0, acked: 0, sent: 0, retransmitted: 0, ratio: null };

  // A row for each interval between readings, a value for each curve.
  const curves = () => {
    const groups = readings.map(grouped);
    const keys = [...new Set(groups.flatMap((group) => [...group.keys()]))].sort().slice(0, CURVES);
    const times = readings.slice(1).map((reading) => reading.unix_s);
    const values = (of) =>
      keys.map((key) =>
        times.map((time, n) => {
          const now = groups[n + 1].get(key);
          const before = groups[n].get(key) ?? NOTHING;
          return now ? of(now, before, time - readings[n].unix_s) : null;
        }),
      );
    return {
      keys,
      times,
      open: values((now) => now.open),
      rate: values((now, before, s) => ((now.acked - before.acked) * 8) / 1e6 / s),
      ratio: values((now, before) => median(readings[0].rtt_ratio_edges, now.ratio, before.ratio)),
      retransmitted: values((now, before) => {
        const sent = now.sent - before.sent;
        return sent > 0 ? (100 * (now.retransmitted - before.retransmitted)) / sent : null;
      }),
    };
  };

  const axis = (size) => ({
    size,
    font: "12px system-ui, sans-serif",
    stroke: variable("--fg"),
    grid: { stroke: variable("--line"), width: 1 },
    ticks: { stroke: variable("--line"), width: 1 },
  });

  let drawn = { keys: null, plots: [] };
  const CHARTS = ["open", "rate", "ratio", "retransmitted"];

  const begin = (keys) => {
    drawn.plots.forEach((plot) => plot.destroy());
    const plots = CHARTS.map((chart) => {
      const box = document.getElementById("chart-" + chart);
      const least = chart === "ratio" ? 1 : 0;
      const curve = (key, n) => ({
        label: key,
        stroke: variable("--c" + (n % COLOURS)),
        dash: DASHES[n % DASHES.length],
        width: 1.8,
        spanGaps: false,
        points: { show: false },
        value: (_, value) => number(value),
      });
      return new uPlot(
        {
          width: box.clientWidth,
          height: 220,
          axes: [axis(32), axis(56)],
          scales: {
            y: { range: (_, low, high) => [least, Math.max(high ?? 0, least + (least || 0.1)) * 1.05] },
          },
          series: [{ label: "time" }, ...keys.map(curve)],
          cursor: { sync: { key: "all", scales: ["x", null] } },
        },
        [[], ...keys.map(() => [])],
        box,
      );
    });
    drawn = { keys: JSON.stringify(keys), plots };
  };

  const draw = () => {
    if (readings.length < 2) return;
    const all = curves();
    if (drawn.keys !== JSON.stringify(all.keys)) begin(all.keys);
    CHARTS.forEach((chart, n) => drawn.plots[n].setData([all.times, ...all[chart]]));
  };

  const cell = (text, kind) => {
    const made = document.createElement("td");
    made.textContent = text;
    made.title = text;
    made.className = kind;
    return made;
  };

  const row = (record) => {
    const service = record.service;
    const arm = record.choice?.arm;
    const rate = record.busy_ns > 0 ? (record.bytes_acked * 8e3) / record.busy_ns : null;
    const share = record.bytes_sent > 0 ? (100 * record.bytes_retransmitted) / record.bytes_sent : null;
    const made = document.createElement("tr");
    made.append(
      cell(service.host ?? "–", "text"),
      cell(service.client ?? "–", "text"),
      cell(service.protocol, "text"),
      cell(record.cc, "text"),
      cell(arm ? arm.experiment + "/" + arm.arm : "–", "text"),
      cell(service.status + (service.broken_off ? ", broken off" : ""), "text"),
      cell(bytes(record.bytes_delivered), ""),
      cell(number(rate), ""),
      cell(number(service.min_rtt_ns == null ? null : service.min_rtt_ns / 1e6), ""),
      cell(share == null ? "–" : number(share) + " %", ""),
    );
    return made;
  };

  const update = (status) => {
    const counted = (of) => number(sum(status.series, of));
    state(status.state, status.state);
    show("version", status.version);
    show("open", counted((one) => one.open));
    show("responses", sum(status.series, (one) => sum(one.responses, ([, n]) => n)).toLocaleString("en"));
    show("broken", sum(status.series, (one) => one.broken_off).toLocaleString("en"));
    show("acked", bytes(sum(status.series, (one) => one.bytes_acked)));
    show("uptime", span(status.unix_s - status.start_unix_s));
    show("policy", status.policy ?? "none");
    const lost = status.records_lost ? ", " + status.records_lost + " lost" : "";
    show("records", status.records_written == null ? "none" : status.records_written + lost);
    document.getElementById("recent").replaceChildren(...status.recent.map(row));
  };

  const state = (kind, text) => {
    const element = document.getElementById("state");
    element.className = "state " + kind;
    if (element.textContent !== text) element.textContent = text;
    document.title = "uncork serve: " + text;
  };

  const read = async () => {
    let status;
    try {
      const answer = await fetch("status.json", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      status = await answer.json();
    } catch {
      state("lost", "the server does not answer");
      return;
    }
    // A server that was restarted counts from zero.
    if (readings.length && readings[0].start_unix_s !== status.start_unix_s) readings.length = 0;
    if (readings.length && readings.at(-1).unix_s >= status.unix_s) return;
    readings.push(status);
    if (readings.length > KEPT) readings.shift();
    update(status);
    draw();
    root.dataset.readings = readings.length;
  };

  let paused = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(paused));
  });
  by.addEventListener("change", draw);
  const redraw = () => {
    drawn.keys = null;
    draw();
  };
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const loop = async () => {
    if (!paused) await read();
    setTimeout(loop, PERIOD);
  };
  loop();
})();
