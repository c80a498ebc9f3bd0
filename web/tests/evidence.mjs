// The page docs/evidence/playground.md.

import { loadavg } from "node:os";

/** Milliseconds of CPU of the fastest of some runs. */
function fastest(run) {
  const once = () => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  return Math.min(...Array.from({ length: 25 }, once));
}

/** The page of these measurements. */
export function evidence({ sizes, total, times, engine, browser, commit }) {
  const ten = { size: "10MB", seeds: "1" };
  const runs = ["cubic", "bbr1", "bbr3"].map((cc) => [cc, fastest(() => engine.compare({ ...ten, cc }))]);
  const files = sizes.map((file) => `| \`${file.name}\` | ${file.bytes} | ${file.compressed} |`);
  return `# Playground: sizes and times

The playground's figures are byte for byte those of \`uncork compare --format json\`. The page takes ${(total / 1000).toFixed(0)} kB compressed; the aim is 250 kB.

A quarter of the module's code plans comparisons and evaluates runs. The simulator's loop, the paths, and the result documents with their sentences are an
eighth each, and the controllers are a tenth. It has no parser of TOML, and no tables for reading floating-point numbers: the page makes its scenario
directly, and a test of the program compares it with the scenario that the text means. The simulator is optimised for time: for size it would save 7 kB and take
40 to 60 % longer, more than 10 ms. The standard library is built for size and without the texts of panics, which no page shows.

\`web/build.sh && node web/tests/run.mjs --write\` tests the page and writes this one. Measured at commit ${commit} with
Chromium ${browser} and Node ${process.versions.node}, on a shared machine with two processors and a load of ${loadavg()[0].toFixed(0)}: times are upper bounds.

| file | bytes | brotli |
|---|---|---|
${files.join("\n")}
| all | ${sizes.reduce((sum, file) => sum + file.bytes, 0)} | ${total} |

| time | ms |
|---|---|
| from navigation to the first race | ${times.first.toFixed(0)} |
| the same with the page's thread throttled four times, median of five; Chromium does not throttle workers | ${times.throttled.toFixed(0)} |
${runs.map(([cc, ms]) => `| 10 MB with ${cc}, one seed, with its result document: CPU | ${ms.toFixed(1)} |`).join("\n")}

The tests also cover accessibility (axe-core, no violations, light and dark, 400 to 1600 pixels wide), bad addresses, keys, reduced motion, the page without a network, and
without scripts.
`;
}
