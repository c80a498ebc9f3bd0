// The sliders and lists of the page.

import { OPTIONS, QUEUES, STARTS, shown, spoken, stepsWith } from "./options.js";
import { escaped } from "./numbers.js";

const OF_PATH = ["rate", "rtt", "loss", "buffer", "jitter"];
const MIXES = ["bbr1+cubic", "bbr3+cubic", "bbr3+bbr1"];

/** Controls in `form` for options; `change` gets the options with the value that was touched. */
export class Controls {
  #form;
  #change;
  #options = {};
  #catalogue;

  constructor(form, catalogue, change) {
    this.#form = form;
    this.#catalogue = catalogue;
    this.#change = change;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", ({ target }) => this.#touched(target));
    form.innerHTML = [
      `<h2>Path and traffic</h2>`,
      list("preset", "Path", [["", "my own"], ...catalogue.presets.map(({ name, title }) => [name, title])]),
      ...["rate", "rtt", "loss", "buffer"].map(slider),
      list("queue", "Queue discipline", QUEUES.map(pair)),
      slider("jitter"),
      `<fieldset class="lanes"><legend>Controllers</legend>${[0, 1, 2].map((nth) => list(`cc${nth}`, `Lane ${nth + 1}`, [])).join("")}</fieldset>`,
      slider("flows"),
      list("traffic", "Each flow sends", [["size", "a number of bytes"], ["duration", "for a time"]]),
      slider("size"), slider("duration"),
      list("start", "Flows start", [["", "the usual way"], ...STARTS.map(pair)]),
      slider("seeds"),
      `<div class="field"><button type="button" data-seed>Other luck: next seed</button></div>`,
    ].join("");
    form.querySelector("[data-seed]").addEventListener("click", () => {
      const seed = Number(this.#options.seed ?? 1) + 1;
      this.#set({ seed: String(Number.isSafeInteger(seed) ? seed : 1) });
    });
  }

  /** Shows `options`; values that are not steps become steps. */
  show(options) {
    this.#options = options;
    for (const { name, usual, steps } of OPTIONS) {
      const input = this.#input(name);
      const isOfPreset = options.preset && OF_PATH.includes(name) && options[name] === undefined;
      const value = options[name] ?? usual;
      input.steps = stepsWith(steps, value);
      input.max = input.steps.length - 1;
      input.value = input.steps.indexOf(value);
      this.#say(input, value, isOfPreset);
    }
    const isTimed = options.duration !== undefined;
    this.#input("traffic").value = isTimed ? "duration" : "size";
    this.#field("size").hidden = isTimed;
    this.#field("duration").hidden = !isTimed;
    choose(this.#input("preset"), options.preset ?? "");
    choose(this.#input("queue"), options.queue ?? (options.preset ? "" : "droptail"), options.preset ? "of the preset" : undefined);
    choose(this.#input("start"), options.start ?? "");
    const columns = (options.cc ?? "cubic,bbr1,bbr3").split(",");
    [0, 1, 2].forEach((nth) => this.#lane(nth, columns));
  }

  /** Marks the option at fault, or none. */
  mark(option) {
    this.#form.querySelectorAll(".field").forEach((field) => {
      const isWrong = field.dataset.name === option || (option === "cc" && field.dataset.name?.startsWith("cc"));
      field.classList.toggle("wrong", isWrong);
      field.querySelector("input,select")?.setAttribute("aria-invalid", isWrong);
    });
  }

  #lane(nth, columns) {
    const own = columns[nth] ?? "";
    const names = [...this.#catalogue.controllers, ...MIXES];
    const free = names.filter((name) => name === own || !columns.includes(name));
    const none = nth > 0 ? [["", "none"]] : [];
    const input = this.#input(`cc${nth}`);
    input.innerHTML = [...none, ...free.map(pair)].map(choice).join("");
    choose(input, own);
    input.disabled = nth > columns.length;
  }

  #touched(input) {
    const name = input.name;
    if (input.type === "range") {
      const value = input.steps[Number(input.value)];
      this.#say(input, value, false);
      return this.#set({ [name]: value });
    }
    if (name === "traffic") {
      return this.#set(input.value === "size" ? { duration: undefined, size: "10MB", start: undefined } : { size: undefined, duration: "10s" });
    }
    if (name === "preset") {
      return this.#set({ ...Object.fromEntries([...OF_PATH, "queue", "loss-position"].map((it) => [it, undefined])), preset: input.value || undefined });
    }
    if (name.startsWith("cc")) {
      const columns = [0, 1, 2].map((nth) => this.#input(`cc${nth}`).value);
      const more = (this.#options.cc ?? "").split(",").slice(3);
      return this.#set({ cc: [...columns, ...more].filter(Boolean).join(",") });
    }
    return this.#set({ [name]: input.value || undefined });
  }

  #set(changes) {
    const options = { ...this.#options, ...changes };
    Object.keys(options).forEach((name) => options[name] === undefined && delete options[name]);
    if (options.jitter === "0s" && !options.preset) delete options.jitter;
    if (options.queue === "droptail" && !options.preset) delete options.queue;
    this.show(options);
    this.#change(options);
  }

  #say(input, value, isOfPreset) {
    const text = isOfPreset ? "as the preset" : shown(value);
    input.setAttribute("aria-valuetext", isOfPreset ? text : spoken(value));
    input.nextElementSibling.textContent = text;
  }

  #input(name) {
    return this.#form.elements[name];
  }

  #field(name) {
    return this.#form.querySelector(`[data-name="${name}"]`);
  }
}

const pair = (name) => [name, name];
const choice = ([value, text]) => `<option value="${escaped(value)}">${escaped(text)}</option>`;

function slider(name) {
  const { label } = OPTIONS.find((option) => option.name === name);
  return `<div class="field" data-name="${name}"><label for="o-${name}">${label}</label><input type="range" id="o-${name}" name="${name}" min="0" step="1"><output for="o-${name}"></output></div>`;
}

function list(name, label, choices) {
  return `<div class="field" data-name="${name}"><label for="o-${name}">${label}</label><select id="o-${name}" name="${name}">${choices.map(choice).join("")}</select></div>`;
}

/** Selects `value`, which is added if the list does not have it. */
function choose(select, value, text = value) {
  if (![...select.options].some((option) => option.value === value)) select.add(new Option(text, value));
  select.value = value;
}
