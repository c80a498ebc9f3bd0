// The page's worker. A later request replaces the earlier ones that it makes needless; one that takes long ends with its worker.

/** Milliseconds that a replaced request may still take. */
const PATIENCE = 300;

/** The requests that a request replaces. */
const REPLACED = { catalogue: [], setup: ["setup", "race", "compare"], race: ["race"], compare: ["compare"] };

class Laboratory {
  // Compiled once, on the browser's threads, for every worker.
  #module = WebAssembly.compileStreaming(fetch("uncork.wasm"));
  #worker;
  #tasks = new Map();
  #next = 0;

  constructor() {
    this.#start();
  }

  /** The answer to `name`; never settles if a later request replaces it. */
  ask(name, options) {
    const replaced = [...this.#tasks].filter(([, task]) => REPLACED[name].includes(task.name));
    replaced.forEach(([id]) => this.#tasks.delete(id));
    if (replaced.some(([, task]) => performance.now() - task.since > PATIENCE)) this.#restart();
    const id = (this.#next += 1);
    return new Promise((resolve, reject) => {
      this.#tasks.set(id, { name, options, since: performance.now(), resolve, reject });
      this.#post(id, name, options);
    });
  }

  #start() {
    const worker = new Worker("worker.js", { type: "module" });
    this.#worker = worker;
    this.#module.then((module) => worker.postMessage({ module }), (error) => this.#fail(error.message));
    worker.onmessage = ({ data }) => this.#settle(data);
    worker.onerror = (event) => {
      this.#fail(event.message ?? "unknown error");
      this.#restart();
    };
  }

  #restart() {
    this.#worker.terminate();
    this.#start();
    this.#tasks.forEach(({ name, options }, id) => this.#post(id, name, options));
  }

  // Behind the module, in the order of the requests.
  #post(task, name, options) {
    const worker = this.#worker;
    this.#module.then(() => worker.postMessage({ task, name, options }), () => {});
  }

  #fail(reason) {
    const message = `the simulator stopped: ${reason}; reload the page, or use smaller values`;
    [...this.#tasks.keys()].forEach((task) => this.#settle({ task, error: { option: "", message } }));
  }

  #settle({ task, result, error, ms }) {
    const waiting = this.#tasks.get(task);
    this.#tasks.delete(task);
    if (!waiting) return;
    if (error) waiting.reject(error);
    else waiting.resolve({ result, ms });
  }
}

/** That of the page. This script runs before the others: the worker starts, and the module compiles, while they still load. */
export const laboratory = new Laboratory();
