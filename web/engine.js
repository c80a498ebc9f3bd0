// The crates as WebAssembly: options in, texts out. Used by the worker, the build and the tests.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An engine of a compiled module. Its functions take options as an object and return texts, or throw a `Refusal`. */
export async function engineOf(module) {
  const { exports } = await WebAssembly.instantiate(module, {});
  const call = (name, options = {}) => {
    const lines = Object.entries(options).map(([option, value]) => `${option}=${oneLine(value)}`);
    const bytes = encoder.encode(lines.join("\n"));
    const input = exports.input(bytes.length);
    new Uint8Array(exports.memory.buffer, input, bytes.length).set(bytes);
    if (!exports[name]()) throw new Refusal(JSON.parse(text(exports, 0)));
    return (nth) => text(exports, nth);
  };
  return {
    // The lists of presets and controllers depend on no option.
    catalogue: () => JSON.parse(call("setup")(0)),
    setup: (options) => JSON.parse(call("setup", options)(0)),
    race: (options) => JSON.parse(call("race", options)(0)),
    compare: (options) => {
      const output = call("compare", options);
      return { json: output(0), text: output(1) };
    },
  };
}

/** Why options are not run: `option` is the one at fault, empty if none is. */
export class Refusal extends Error {
  constructor({ option, message }) {
    super(message);
    this.option = option;
  }
}

// A line is an option: a value has no others in it.
function oneLine(value) {
  return String(value).replace(/\s+/g, " ");
}

function text(exports, nth) {
  const [at, bytes] = [exports.output(nth), exports.output_bytes(nth)];
  return decoder.decode(new Uint8Array(exports.memory.buffer, at, bytes));
}
