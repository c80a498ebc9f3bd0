// The page: options from the address and the controls, the race, the comparison, and what to take along.

import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { laboratory } from "./laboratory.js";
import { Lane } from "./lane.js";
import { digits, escaped, quantity } from "./numbers.js";
import { hashOf, optionsOf } from "./options.js";
import { raceOf } from "./race.js";
import { STORIES } from "./stories.js";

/** Milliseconds that a race lasts on the page. */
const PLAY_MS = 9000;
/** Loops of a dot per second at the full rate of the link. */
const LOOPS = 0.4;
/** Milliseconds without a change until all seeds run. */
const QUIET_MS = 350;

const byId = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let controls;
let wrong = "";
let options = optionsOf(location.hash);
let [race, lanes, share, since, quiet] = [undefined, [], undefined, undefined, undefined];

const charts = new Charts(byId("charts"), (to) => { pause(); seek(to); });

function seek(to) {
  share = Math.min(1, Math.max(0, to));
  const seconds = race ? (share * race.end_ns) / 1e9 : 0;
  const [now, all] = [digits(seconds), digits((race?.end_ns ?? 0) / 1e9)];
  byId("time").value = Math.round(share * 1000);
  byId("time").setAttribute("aria-valuetext", `${now} of ${all} seconds`);
  byId("clock").textContent = `${now} of ${all} s`;
  charts.at(share, since !== undefined);
  drawLanes();
}

function drawLanes() {
  if (!race) return;
  const at = Math.min(race.samples - 1, Math.round(share * (race.samples - 1)));
  const loops = (performance.now() / 1000) * LOOPS;
  lanes.forEach((lane) => lane.draw(at, since === undefined ? 0.37 : loops % 1));
}

function play() {
  if (!race) return;
  share = share === undefined || share >= 1 ? 0 : share;
  since = performance.now() - share * PLAY_MS;
  byId("play").textContent = "Pause";
  requestAnimationFrame(frame);
}

function pause() {
  since = undefined;
  byId("play").textContent = "Play";
}

function frame(now) {
  if (since === undefined) return;
  const to = (now - since) / PLAY_MS;
  if (to >= 1) pause();
  seek(to);
  if (to >= 1) share = undefined;
  else requestAnimationFrame(frame);
}

function step(by) {
  pause();
  seek((share ?? middle()) + by / 40);
}

/** Shows `error`, which has the option at fault and a remedy. */
function fail({ option, message }) {
  wrong = option;
  controls?.mark(wrong);
  const place = byId("error");
  const [what, ...help] = message.split("; ");
  const button = option ? `<button type="button">Use the default of '${escaped(option)}'</button>` : "";
  place.innerHTML = `<p><strong>${escaped(what)}</strong></p><p>${escaped(help.join("; "))}</p>${button} <button type="button" data-all>Start again</button>`;
  place.hidden = false;
  place.querySelector("button:not([data-all])")?.addEventListener("click", () => {
    const { [option]: _, ...others } = options;
    if (option === "duration" && options.size) delete others.size;
    take(others);
  });
  place.querySelector("[data-all]").addEventListener("click", () => take(optionsOf("")));
  byId("answer").textContent = "–";
  byId("answer").removeAttribute("aria-busy");
  byId("results").innerHTML = "";
  ["command", "scenario", "json"].forEach((id) => { byId(id).textContent = "–"; });
}

/** Takes new options: address, controls, race and comparison follow. */
function take(to, { replay = false } = {}) {
  options = to;
  history.replaceState(null, "", hashOf(options));
  byId("link").textContent = location.href;
  controls?.show(options);
  explain();
  return run(replay);
}

/** Explains the story that has these options, and marks its button. */
function explain() {
  const nth = STORIES.findIndex((story) => hashOf(story.options) === hashOf(options));
  byId("stories").querySelectorAll("button").forEach((button, at) => button.setAttribute("aria-pressed", at === nth));
  const { text, more } = STORIES[nth] ?? {};
  byId("story").innerHTML = text ? `${escaped(text)} <a href="${more[1]}">${more[0]}</a>` : "Your own path. The stories above are paths worth seeing.";
}

async function run(replay) {
  const asked = options;
  clearTimeout(quiet);
  try {
    const began = performance.now();
    const answers = [laboratory.ask("setup", asked), laboratory.ask("race", asked)];
    const [{ result: setup }, { result, ms }] = await Promise.all(answers);
    if (asked !== options) return;
    byId("error").hidden = true;
    wrong = "";
    controls?.mark(wrong);
    byId("command").textContent = setup.command;
    byId("scenario").textContent = setup.scenario;
    byId("race-what").textContent = `${setup.title.replace(/^./, (c) => c.toLowerCase())}; seed ${asked.seed ?? 1}`;
    show(raceOf(result, setup), replay);
    byId("cost").textContent = `${result.packets.toLocaleString("en")} packets, simulated in ${digits(ms)} ms`;
    if (!performance.getEntriesByName("first-race").length) performance.measure("first-race", { start: 0, end: performance.now() });
    performance.measure("race", { start: began, end: performance.now() });
    byId("answer").setAttribute("aria-busy", "true");
    quiet = setTimeout(() => compare(asked), QUIET_MS);
  } catch (error) {
    if (asked === options) fail(error);
  }
}

function show(next, replay) {
  race = next;
  const names = race.lanes.map((lane) => lane.name).join();
  const place = byId("lanes");
  place.innerHTML = "";
  place.dataset.lanes = names;
  lanes = race.lanes.map((lane) => new Lane(place, race, lane));
  charts.draw(race);
  table();
  if (replay && !calm.matches) {
    share = 0;
    play();
  } else {
    seek(share ?? middle());
  }
}

/** A time at which every lane is busy. */
function middle() {
  const ends = race.lanes.map((lane) => (lane.end_ns ?? race.end_ns) / race.end_ns);
  return Math.min(...ends) * 0.6;
}

function table() {
  const ends = [0.25, 0.5, 0.75, 1];
  const head = ends.map((part) => `<th scope="col">${digits((part * race.end_ns) / 1e9)} s</th>`).join("");
  const rows = lanes.flatMap((lane, nth) => {
    const columns = ends.map((part) => lane.figures(Math.round(part * (race.samples - 1))));
    return columns[0].map(([name], row) => `<tr><th scope="row">${escaped(race.lanes[nth].name)}: ${name.toLowerCase()}</th>${columns.map((column) => `<td>${column[row][1]}</td>`).join("")}</tr>`);
  });
  byId("race-table").innerHTML = `<caption>What the lanes show at four times.</caption><thead><tr><th scope="col">lane</th>${head}</tr></thead><tbody>${rows.join("")}</tbody>`;
}

async function compare(asked) {
  try {
    const { result } = await laboratory.ask("compare", asked);
    if (asked !== options) return;
    byId("answer").textContent = result.text.trimEnd();
    byId("answer").removeAttribute("aria-busy");
    byId("json").textContent = result.json;
    results(JSON.parse(result.json));
  } catch (error) {
    if (asked === options) fail(error);
  }
}

function results({ cells, intervals }) {
  const classes = cells.flatMap((cell, nth) => cell.classes.map((it) => ({ ...it, cell: nth })));
  const names = [...new Set(classes.flatMap((it) => it.metrics.map((metric) => metric.name)))];
  const label = (it) => (race?.lanes[it.cell] && it.cc !== race.lanes[it.cell].name ? `${it.cc} in ${race.lanes[it.cell].name}` : it.cc);
  const value = ({ estimate, unit }) => {
    const range = estimate.low === null ? "" : ` <small>${quantity(estimate.low, unit)} to ${quantity(estimate.high, unit)}</small>`;
    return quantity(estimate.value, unit) + range;
  };
  const row = (name) => `<tr><th scope="row">${name.replaceAll("_", " ")}</th>${classes.map((it) => {
    const metric = it.metrics.find((metric) => metric.name === name);
    return `<td>${metric ? value(metric) : "–"}</td>`;
  }).join("")}</tr>`;
  byId("results").innerHTML = `<caption>${escaped(intervals)}</caption><thead><tr><th scope="col">metric</th>${classes.map((it) => `<th scope="col">${escaped(label(it))}</th>`).join("")}</tr></thead><tbody>${names.map(row).join("")}</tbody>`;
}

function stories() {
  const place = byId("stories");
  place.innerHTML = STORIES.map(({ name }) => `<button type="button" aria-pressed="false">${name}</button>`).join("");
  [...place.children].forEach((button, nth) => button.addEventListener("click", () => {
    take({ ...STORIES[nth].options }, { replay: true });
  }));
}

async function copy(id) {
  const text = byId(id).textContent;
  try {
    await navigator.clipboard.writeText(text);
    byId("copied").textContent = `Copied the ${id}.`;
  } catch {
    getSelection().selectAllChildren(byId(id));
    byId("copied").textContent = `The browser does not allow copying: the ${id} is selected, press Ctrl+C.`;
  }
}

byId("play").addEventListener("click", () => (since === undefined ? play() : pause()));
byId("back").addEventListener("click", () => step(-1));
byId("forth").addEventListener("click", () => step(1));
byId("time").addEventListener("input", ({ target }) => { pause(); seek(target.value / 1000); });
document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button.dataset.copy)));
addEventListener("hashchange", () => take(optionsOf(location.hash)));
const still = () => { byId("play").hidden = calm.matches; };
calm.addEventListener("change", still);
still();

stories();
navigator.serviceWorker?.register("offline.js");
take(options, { replay: true });
laboratory.ask("catalogue", {}).then(({ result }) => {
  controls = new Controls(byId("controls"), result, (to) => take(to));
  controls.show(options);
  controls.mark(wrong);
}, fail);
