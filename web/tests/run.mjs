// Tests target/web: equal bytes to the program, and the page in a headless Chromium.
//
//   web/tests/run.mjs                       # fails with a list of what is wrong
//   web/tests/run.mjs --write               # also measures, and writes docs/evidence/playground.md
//   web/tests/run.mjs --pictures DIR        # also takes pictures of the page
//
// UNCORK names the program to compare with, CHROMIUM the browser.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

import { chromium } from "playwright-core";

import { BAD_ADDRESSES, EXTREME, REFUSED, SETTINGS } from "./cases.mjs";
import { evidence } from "./evidence.mjs";
import { serve } from "./serve.mjs";
import { engineOf } from "../engine.js";
import { STORIES } from "../stories.js";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "../..");
const PAGE = join(ROOT, "target/web");
const PROGRAM = process.env.UNCORK ?? ["release", "debug"].map((it) => join(ROOT, "target", it, "uncork")).find(existsSync);
const BROWSER = process.env.CHROMIUM ?? ["chromium-headless-shell", "chromium"].map((it) => `/usr/bin/${it}`).find(existsSync);
/** Maximum size of the page in bytes, compressed. */
const MAX_BYTES = 250_000;
const WIDTHS = [400, 768, 1280, 1600];
const AXE = await readFile(join(ROOT, "web/node_modules/axe-core/axe.min.js"), "utf8");

const failed = [];
async function test(name, body) {
  try {
    await body();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed.push(name);
    console.log(`FAIL  ${name}\n${String(error.message).replace(/^/gm, "      ")}`);
  }
}

function compressed(bytes) {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 } }).length;
}

const files = (await readdir(PAGE)).sort();
const sizes = await Promise.all(files.map(async (name) => {
  const bytes = await readFile(join(PAGE, name));
  return { name, bytes: bytes.length, compressed: compressed(bytes) };
}));
const total = sizes.reduce((sum, file) => sum + file.compressed, 0);
await test(`page_compressed_is_at_most_${MAX_BYTES}_bytes`, () => assert.ok(total <= MAX_BYTES, `${total} bytes`));

await test("links_lead_to_pages_of_the_documentation", async () => {
  const html = await readFile(join(PAGE, "index.html"), "utf8");
  const links = [...html.matchAll(/href="\.\.\/([^"]+)"/g)].map(([, link]) => link).concat(STORIES.map((story) => story.more[1].replace("../", "")));
  for (const link of links) {
    const [path, anchor] = link.split("#");
    const page = join(ROOT, "docs", path === "index.html" ? "README.md" : path.replace(/\.html$/, ".md"));
    const text = await readFile(page, "utf8");
    assert.ok(!anchor || text.includes(`<a id="${anchor}">`) || text.match(new RegExp(`^#+ .*${anchor}\\s*$`, "im")), link);
  }
});

const module = await WebAssembly.compile(await readFile(join(PAGE, "uncork.wasm")));
const engine = await engineOf(module);
for (const options of [...SETTINGS, ...STORIES.map((story) => story.options)]) {
  await test(`compare_is_equal_to_the_program ${JSON.stringify(options)}`, () => {
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    const run = (format) => execFileSync(PROGRAM, ["compare", "--quiet", "--color", "never", "--format", format, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 26 });
    const { json } = engine.compare(options);
    assert.ok(json === run("json"), "the JSON differs");
  });
}

await test("refused_options_are_named_with_a_remedy", () => {
  for (const [options, option, part] of REFUSED) {
    for (const ask of ["setup", "race", "compare"]) {
      const named = (error) => error.option === option && error.message.includes(part);
      assert.throws(() => engine[ask](options), (error) => named(error) || assert.fail(`${JSON.stringify(options)}: ${error.option}: ${error.message}`));
    }
  }
});

await test("extreme_options_run", () => {
  for (const options of EXTREME) {
    engine.setup(options);
    assert.ok(engine.race(options).lanes.length > 0, JSON.stringify(options));
    assert.ok(engine.compare(options).text.length > 0, JSON.stringify(options));
  }
});

const { server, address } = await serve(PAGE);
const browser = await chromium.launch({ executablePath: BROWSER });

/** A page at `hash` that has its results or an error. */
async function open(hash = "", { width = 1280, throttle = 1, ...context } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, reducedMotion: "reduce", ...context });
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(address) || request.url().startsWith("data:") || page.problems.push(`request to ${request.url()}`));
  if (throttle > 1) await (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: throttle });
  await page.goto(address + hash);
  if (context.javaScriptEnabled !== false) await settled(page);
  return page;
}

async function settled(page) {
  await page.waitForFunction(() => !document.querySelector("#error").hidden || document.querySelector("#answer").getAttribute("aria-busy") === null, null, { timeout: 120_000 });
}

const textOf = (page, id) => page.locator(`#${id}`).textContent();

const times = {};
await test("page_loads_without_problem_and_asks_no_other_host", async () => {
  const page = await open();
  assert.deepEqual(page.problems, []);
  times.first = await page.evaluate(() => performance.getEntriesByName("first-race")[0].duration);
  await page.close();
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of WIDTHS) {
    await test(`page_is_accessible_and_fits ${width} ${colorScheme}`, async () => {
      const page = await open("", { width, colorScheme });
      await page.evaluate(() => document.querySelectorAll("details").forEach((it) => { it.open = true; }));
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      assert.deepEqual(violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html.slice(0, 90)).join(" | ")}`), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
      const small = await page.evaluate(() => [...document.querySelectorAll("button, select, input, summary, header a")]
        .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44).map((it) => it.outerHTML.slice(0, 80)));
      assert.deepEqual(small, []);
      await page.close();
    });
  }
}

await test("address_holds_all_settings", async () => {
  const hash = "#rate=17mbit&rtt=33ms&loss=0.3%25&buffer=90p&queue=codel:target=10ms&jitter=3ms&flows=2&duration=4s&start=together&cc=bbr3:loss_floor,reno+cubic&seeds=2&seed=7";
  const page = await open(hash);
  const command = await textOf(page, "command");
  assert.equal(command, "uncork compare --rate 17mbit --rtt 33ms --loss 0.3% --loss-position after --buffer 90p --queue codel:target=10ms --jitter 3ms --host-jitter usual --duration 4s --start together --flows 2 --cc bbr3:loss_floor,reno+cubic --seeds 2 --seed 7");
  const again = await open(new URL(await textOf(page, "link")).hash);
  for (const id of ["command", "scenario", "json", "answer"]) assert.equal(await textOf(again, id), await textOf(page, id), id);
  await Promise.all([page.close(), again.close()]);
});

await test("command_of_the_page_prints_the_figures_of_the_page", async () => {
  const page = await open("#cc=cubic,bbr3&size=1MB&seeds=3&loss=2%25");
  const [, ...args] = (await textOf(page, "command")).split(" ");
  const printed = execFileSync(PROGRAM, [...args, "--format", "json", "--quiet"], { encoding: "utf8" });
  assert.ok(printed === (await textOf(page, "json")), "the JSON differs");
  await page.close();
});

for (const [hash, option, expected] of BAD_ADDRESSES) {
  await test(`bad_address_is_explained ${hash.slice(0, 60)}`, async () => {
    const page = await open(hash);
    assert.deepEqual(page.problems, []);
    const message = await textOf(page, "error");
    assert.ok(message.includes(expected), message);
    if (option) await page.getByRole("button", { name: `Use the default of '${option}'` }).click();
    else await page.getByRole("button", { name: "Start again" }).click();
    await page.waitForFunction(() => document.querySelector("#error").hidden, null, { timeout: 30_000 }).catch(() => page.getByRole("button", { name: "Start again" }).click());
    await page.waitForFunction(() => document.querySelector("#error").hidden && document.querySelector("#command").textContent.startsWith("uncork compare"));
    await page.close();
  });
}

await test("keys_move_sliders_and_values_are_spoken_with_units", async () => {
  const page = await open("#cc=cubic,bbr3&size=300kB&seeds=1");
  const rate = page.getByRole("slider", { name: "Rate of the bottleneck" });
  await rate.focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await rate.getAttribute("aria-valuetext"), "30 megabits per second");
  await page.waitForFunction(() => document.querySelector("#command").textContent.includes("--rate 30mbit"));
  assert.ok(page.url().includes("rate=30mbit"), page.url());
  const time = page.getByRole("slider", { name: "Time", exact: true });
  await page.getByRole("button", { name: "One step forward" }).press("Enter");
  assert.match(await time.getAttribute("aria-valuetext"), /^[0-9.]+ of [0-9.]+ seconds$/);
  await page.close();
});

await test("every_touched_control_changes_the_command", async () => {
  const page = await open("#cc=cubic,bbr3&size=300kB&seeds=1");
  for (const [name, value, part] of [["queue", "fq_codel", "--queue fq_codel"], ["cc2", "reno", "--cc cubic,bbr3,reno"], ["traffic", "duration", "--duration 10s"], ["start", "together", "--start together"], ["preset", "wifi", "--preset wifi"]]) {
    await page.locator(`[name=${name}]`).selectOption(value);
    await page.waitForFunction((part) => document.querySelector("#command").textContent.includes(part), part, { timeout: 60_000 });
  }
  assert.deepEqual(page.problems, []);
  await page.close();
});

await test("reduced_motion_has_steps_and_no_play", async () => {
  const page = await open();
  assert.equal(await page.locator("#play").isVisible(), false);
  const moving = await open("", { reducedMotion: "no-preference" });
  assert.equal(await moving.locator("#play").isVisible(), true);
  const clock = await textOf(moving, "clock");
  await moving.waitForFunction((clock) => document.querySelector("#clock").textContent !== clock, clock);
  await Promise.all([page.close(), moving.close()]);
});

await test("page_works_without_a_network_after_the_first_visit", async () => {
  const page = await open("#cc=cubic,bbr3&size=300kB&seeds=1");
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    if (active.state !== "activated") await new Promise((resolve) => active.addEventListener("statechange", resolve, { once: true }));
  });
  await page.context().setOffline(true);
  await page.reload();
  await settled(page);
  assert.ok((await textOf(page, "answer")).includes("bbr3"));
  await page.close();
});

await test("page_without_script_has_text_and_picture", async () => {
  const page = await open("", { javaScriptEnabled: false });
  assert.ok(await page.locator("noscript img, figure img").first().isVisible());
  assert.ok((await page.locator("main").innerText()).includes("CUBIC takes each loss for congestion"));
  assert.equal(await page.locator("#controls").isVisible(), false);
  await page.close();
});

const pictures = process.argv.indexOf("--pictures");
if (pictures > 0) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      const page = await open("", { width, colorScheme });
      await page.screenshot({ path: join(process.argv[pictures + 1], `playground-${width}-${colorScheme}.png`), fullPage: true });
      await page.close();
    }
  }
}
if (process.argv.includes("--write")) {
  const runs = [];
  for (let nth = 0; nth < 5; nth += 1) {
    const page = await open("", { throttle: 4 });
    runs.push(await page.evaluate(() => performance.getEntriesByName("first-race")[0].duration));
    await page.close();
  }
  times.throttled = runs.sort((a, b) => a - b)[2];
  const text = evidence({ sizes, total, times, engine, browser: browser.version(), commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: ROOT, encoding: "utf8" }).trim() });
  await writeFile(join(ROOT, "docs/evidence/playground.md"), text);
}

await browser.close();
server.close();
if (failed.length) {
  console.error(`error: ${failed.length} tests failed: ${failed.join(", ")}`);
  process.exit(1);
}
