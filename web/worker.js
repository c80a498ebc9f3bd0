// Runs the engine on a thread of its own. The first message has the compiled module, each other a `task`, which the answer repeats.

import { engineOf } from "./engine.js";

let engine;

self.onmessage = async ({ data: { module, task, name, options } }) => {
  if (module) {
    engine = engineOf(module);
    return;
  }
  try {
    const began = performance.now();
    const result = (await engine)[name](options);
    self.postMessage({ task, result, ms: performance.now() - began });
  } catch (error) {
    self.postMessage({ task, error: { option: error.option ?? "", message: error.message } });
  }
};
