// Lets the curves of the page be zoomed and its commands be copied. Pictures stay for print.
(() => {
  "use strict";
  const root = document.documentElement;
  const errors = [];
  const fault = (text) => {
    errors.push(String(text));
    root.dataset.errors = errors.join("\n");
  };
  addEventListener("error", (event) => fault(event.message));
  addEventListener("unhandledrejection", (event) => fault(event.reason));
  addEventListener("securitypolicyviolation", (event) => fault(event.violatedDirective));

  const element = (name, className, text) => {
    const made = document.createElement(name);
    made.className = className;
    if (text) made.textContent = text;
    return made;
  };
  const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // Colour and dashes are the style sheet's: ask it through a path of the same classes.
  const look = (ink) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("width", "0");
    svg.setAttribute("height", "0");
    path.setAttribute("class", "line " + ink);
    svg.append(path);
    document.body.append(svg);
    const style = getComputedStyle(path);
    const dashes = style.strokeDasharray;
    const made = {
      stroke: style.stroke,
      dash: dashes === "none" ? [] : dashes.split(/[ ,]+/).map(parseFloat),
    };
    svg.remove();
    return made;
  };

  const print = (value) => (value == null ? "–" : String(Number(value.toPrecision(4))));

  // The names between both ends of an axis that has names for numbers, a word in a line.
  const named = (names) => ({
    splits: (_, at, low, high) => names.map((_, n) => n).filter((n) => n >= low && n <= high),
    values: (_, splits) => splits.map((n) => names[n].replaceAll(" ", "\n")),
  });
  const words = (names) => Math.max(...names.map((name) => name.split(" ").length));

  const axis = (label, size) => ({
    label: label || undefined,
    size,
    labelSize: 22,
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    stroke: variable("--fg"),
    grid: { stroke: variable("--line"), width: 1 },
    ticks: { stroke: variable("--line"), width: 1 },
  });

  // Whiskers, moments and limits, which the library does not have.
  const extras = (chart) => (plot) => {
    const ctx = plot.ctx;
    const scale = devicePixelRatio;
    const x = (value) => plot.valToPos(value, "x", true);
    const y = (value) => plot.valToPos(value, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.3 * scale;
    chart.series.forEach((series, n) => {
      if (!plot.series[n + 1].show) return;
      ctx.strokeStyle = look(series.ink).stroke;
      ctx.beginPath();
      for (const [at, low, high] of series.errors) {
        ctx.moveTo(x(at), y(low));
        ctx.lineTo(x(at), y(high));
      }
      ctx.stroke();
    });
    ctx.strokeStyle = variable("--soft");
    ctx.fillStyle = variable("--soft");
    ctx.font = 12 * scale + "px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.setLineDash([2 * scale, 4 * scale]);
    chart.marks.forEach(([at, name], n) => {
      ctx.beginPath();
      ctx.moveTo(x(at), plot.bbox.top);
      ctx.lineTo(x(at), plot.bbox.top + plot.bbox.height);
      ctx.stroke();
      ctx.fillText(name, x(at) + 4 * scale, plot.bbox.top + (12 + 13 * (n % 3)) * scale);
    });
    chart.limits.forEach(([at, name]) => {
      ctx.beginPath();
      ctx.moveTo(plot.bbox.left, y(at));
      ctx.lineTo(plot.bbox.left + plot.bbox.width, y(at));
      ctx.stroke();
      ctx.fillText(name, plot.bbox.left + 4 * scale, y(at) - 4 * scale);
    });
    ctx.restore();
  };

  // The library's own range, and the limits within it.
  const reaching = (chart) => (_, low, high) => {
    const values = chart.limits.map(([at]) => at);
    return uPlot.rangeNum(Math.min(low, ...values), Math.max(high, ...values), 0.1, true);
  };

  const draw = (chart, box, key) => {
    const tables = chart.series.map((series) => [series.x, series.y]);
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0];
    const series = chart.series.map((one) => {
      const { stroke, dash } = look(one.ink);
      return {
        label: one.label,
        stroke,
        dash,
        width: 1.8,
        points: { show: one.dots, size: 7, fill: stroke },
        paths: chart.names.length
          ? () => null
          : chart.stairs
            ? uPlot.paths.stepped({ align: 1 })
            : undefined,
        value: (_, value) => print(value),
      };
    });
    const time = {
      label: chart.x || "time, s",
      value: (_, value) => chart.names[value] ?? print(value),
    };
    const bottom = axis(chart.x, chart.x ? 46 : 26);
    if (chart.names.length) {
      Object.assign(bottom, named(chart.names));
      bottom.size += 18 * (words(chart.names) - 1);
    }
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: 300,
        scales: {
          x: { time: false, distr: chart.log_x ? 3 : 1 },
          y: { distr: chart.log_y ? 3 : 1, range: chart.limits.length ? reaching(chart) : undefined },
        },
        axes: [bottom, axis(chart.y, 58)],
        series: [time, ...series],
        cursor: { sync: { key, scales: ["x", null] } },
        hooks: { draw: [extras(chart)] },
      },
      data || [[], []],
      box,
    );
    const [min, max] = chart.range;
    plot.setScale("x", { min, max });
    return plot;
  };

  // One object for each figure with curves: its plots while they are shown.
  const zoomable = (figure, script) => {
    const tools = element("div", "tools");
    const button = element("button", "", "Zoom");
    const box = element("div", "zoom");
    const charts = JSON.parse(script.textContent);
    let plots = [];
    const close = () => {
      plots.forEach((plot) => plot.destroy());
      plots = [];
      box.replaceChildren();
    };
    const open = () => {
      const hint = "Drag to zoom, double-click for the whole, click a name to hide its curve.";
      box.append(element("p", "hint", hint));
      plots = charts.map((chart) => draw(chart, box, figure.id));
    };
    const state = { redraw: () => plots.length && (close(), open()) };
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const zoomed = figure.classList.toggle("zoomed");
      button.textContent = zoomed ? "Picture" : "Zoom";
      button.setAttribute("aria-pressed", String(zoomed));
      zoomed ? open() : close();
    });
    new ResizeObserver(() => {
      plots.forEach((plot) => box.clientWidth && plot.setSize({ width: box.clientWidth, height: 300 }));
    }).observe(figure);
    tools.append(button);
    figure.querySelector("h3").after(tools);
    figure.querySelector(".picture").after(box);
    return state;
  };

  const copyable = (code) => {
    const button = element("button", "copy", "copy");
    button.type = "button";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "selected";
      }
      setTimeout(() => (button.textContent = "copy"), 2000);
    });
    code.after(button);
  };

  document.querySelectorAll("code.command").forEach(copyable);
  const figures = [...document.querySelectorAll("figure > script.curves")].map((script) =>
    zoomable(script.parentElement, script),
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    figures.forEach((figure) => figure.redraw());
  });
  root.dataset.ready = String(figures.length);
})();
