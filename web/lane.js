// A lane: the path of one run at one time. Packets wait before the bottleneck, cross it, and come back as acknowledgements.

import { phaseOf } from "./charts.js";
import { counted, escaped, quantity } from "./numbers.js";
import { PACKET } from "./race.js";

const HEIGHT = 84;
const DOTS = 44;
const CELLS = 40;

export class Lane {
  #lane;
  #race;
  #canvas;
  #values;
  #lost = Infinity;

  constructor(place, race, lane) {
    this.#race = race;
    this.#lane = lane;
    const keys = lane.curves.map((curve) => `<span class="key"><svg width="34" height="8" aria-hidden="true"><path class="line s${curve.ink} d${curve.ink}" d="M2 4H32"/></svg>${escaped(curve.cc)}</span>`);
    place.insertAdjacentHTML("beforeend", `<article class="lane"><h3>${keys.join(" + ")}<span class="state"></span></h3><canvas height="${HEIGHT}" aria-hidden="true"></canvas><dl></dl></article>`);
    const article = place.lastElementChild;
    this.#canvas = article.querySelector("canvas");
    this.state = article.querySelector(".state");
    this.#values = article.querySelector("dl");
  }

  /** Draws the sample `at`; `phase` moves the dots. */
  draw(at, phase) {
    this.#numbers(at);
    this.#picture(at, phase);
  }

  /** What the lane shows at a sample, with its labels. */
  figures(at) {
    const sum = (key) => this.#lane.curves.reduce((total, curve) => total + curve[key][at], 0);
    const { sample_ns } = this.#race;
    const isOver = this.#lane.end_ns !== null && at * sample_ns >= this.#lane.end_ns;
    const delivered = sum("delivered");
    const lost = sum("lost");
    const pacing = sum("pacing");
    return [
      ["Delivered", quantity(delivered, "B")],
      ["Throughput", isOver ? `done in ${quantity(this.#lane.end_ns / 1e9, "s")}` : quantity(sum("goodput"), "bit/s")],
      ["Window", quantity(sum("window"), "B")],
      ["In flight", quantity(sum("inflight"), "B")],
      ["Pacing rate", pacing ? quantity(pacing, "bit/s") : "none"],
      ["Queue", counted(Math.round(this.#lane.queue[at] / PACKET), "packet")],
      ["Round trip", quantity(Math.max(...this.#lane.curves.map((curve) => curve.rtt[at])) / 1e9, "s")],
      ["Lost", delivered + lost > 0 ? quantity((100 * lost) / (delivered + lost), "%") : "0 %"],
    ];
  }

  #numbers(at) {
    const states = this.#lane.curves.map((curve) => curve.states[at]).filter(Boolean);
    const state = states.map((name) => `<i class="p-${phaseOf(name)}"></i>${escaped(name)}`).join(" ");
    if (this.state.innerHTML !== state) this.state.innerHTML = state;
    this.#values.innerHTML = this.figures(at).map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join("");
  }

  #picture(at, phase) {
    const canvas = this.#canvas;
    const scale = globalThis.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    if (canvas.width !== Math.round(width * scale)) [canvas.width, canvas.height] = [Math.round(width * scale), HEIGHT * scale];
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, HEIGHT);
    const style = getComputedStyle(canvas);
    const ink = (nth) => style.getPropertyValue(`--s${nth}`);
    const [fg, line, soft] = ["--fg", "--line", "--soft"].map((name) => style.getPropertyValue(name));
    const { setup } = this.#race;
    const curves = this.#lane.curves;
    const total = curves.reduce((sum, curve) => sum + curve.inflight[at], 0);
    // The colour of a dot: flows by their share of what is in flight.
    const inkOf = (share) => {
      let sum = 0;
      return ink((curves.find((curve) => (sum += curve.inflight[at]) >= share * total) ?? curves[0]).ink);
    };
    const [server, gate, client, middle] = [58, Math.round(width * 0.44), width - 62, 30];

    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const box = (x, w, text, fill) => {
      pen.strokeStyle = line;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.roundRect(x, middle - 17, w, 34, 6);
      pen.stroke();
      if (fill > 0) {
        pen.save();
        pen.clip();
        pen.globalAlpha = 0.28;
        pen.fillStyle = ink(curves[0].ink);
        pen.fillRect(x, middle + 17 - 34 * fill, w, 34 * fill);
        pen.restore();
      }
      pen.fillStyle = fg;
      pen.textAlign = "center";
      pen.fillText(text, x + w / 2, middle + 1);
    };
    box(1, server - 4, "server", 0);
    const done = this.#lane.end_ns === null ? 0 : curves.reduce((sum, curve) => sum + curve.delivered[at], 0) / this.#lane.size;
    box(client + 4, 56, "client", done);

    // The queue: cells from the bottleneck to the left.
    const queue = this.#lane.queue[at];
    const room = gate - server - 18;
    const cell = room / CELLS;
    const share = Math.min(1, queue / Math.max(setup.buffer_bytes, PACKET));
    pen.strokeStyle = line;
    pen.strokeRect(gate - 6 - room, middle - 13, room, 26);
    const cells = queue > 0 ? Math.max(1, Math.round(share * CELLS)) : 0;
    for (let nth = 0; nth < cells; nth += 1) {
      pen.fillStyle = inkOf((nth + 0.5) / cells);
      pen.fillRect(gate - 6 - (nth + 1) * cell + 0.6, middle - 11, Math.max(1, cell - 1.2), 22);
    }
    // The bottleneck.
    pen.fillStyle = fg;
    pen.fillRect(gate - 3, middle - 19, 2.5, 11);
    pen.fillRect(gate - 3, middle + 8, 2.5, 11);

    // Data to the client, acknowledgements back.
    const wire = Math.max(0, total - queue);
    const count = Math.round(Math.min(1.3, wire / Math.max(setup.bdp_bytes, PACKET)) * DOTS);
    const way = client - gate;
    for (let nth = 0; nth < count; nth += 1) {
      const place = (nth / count + phase) % 1;
      pen.fillStyle = inkOf((((nth * 7) % count) + 0.5) / count);
      if (place < 0.5) pen.fillRect(gate + 2 + place * 2 * (way - 6), middle - 5, 5, 8);
      else {
        pen.globalAlpha = 0.7;
        pen.fillRect(client - (place - 0.5) * 2 * (client - server), middle + 31, 3, 3);
        pen.globalAlpha = 1;
      }
    }
    pen.fillStyle = soft;
    pen.textAlign = "left";
    pen.fillText("queue", gate - 6 - room, middle - 22);
    pen.fillText("link", gate + 4, middle - 22);
    pen.fillText("acknowledgements", server, HEIGHT - 10);

    // A loss since the last picture.
    const lost = curves.reduce((sum, curve) => sum + curve.lost[at], 0);
    if (lost > this.#lost) {
      pen.strokeStyle = style.getPropertyValue("--bad");
      pen.lineWidth = 2;
      pen.beginPath();
      for (const [dx, dy] of [[-5, -5], [5, -5]]) {
        pen.moveTo(gate + way * 0.5 + dx, middle - 1 + dy);
        pen.lineTo(gate + way * 0.5 - dx, middle - 1 - dy);
      }
      pen.stroke();
    }
    this.#lost = lost;
  }
}
