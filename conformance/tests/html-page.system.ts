/** The HTML report in a browser: light and dark, wide and narrow, from a run against a faulty service. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { html } from "../report/renderers/html/html.ts";
import { runKit } from "../run/engine.ts";
import { profileFlags } from "../self/case.ts";
import { FAULTS } from "../self/faults.ts";
import { PLAIN } from "../self/service/sound-options.ts";
import { startSoundServer } from "../self/service/sound-server.ts";
import { defaultOptions } from "../target/options.ts";
import { readProfile } from "../target/profile.ts";
import { type Look, openPage, type Page } from "./chromium.ts";
import { sampleReport } from "./sample-report.ts";

const PICTURES = new URL("../../.ci/out/html-report/", import.meta.url).pathname;
const LOOKS: Look[] = [
  { width: 1280, scheme: "light" },
  { width: 1280, scheme: "dark" },
  { width: 390, scheme: "light" },
  { width: 390, scheme: "dark" },
];

const dir = mkdtempSync(join(tmpdir(), "conformance-html-"));
const pages: Page[] = [];

async function show(name: string, text: string): Promise<Page> {
  const path = join(dir, `${name}.html`);
  writeFileSync(path, text);
  const page = await openPage(`file://${path}`);
  pages.push(page);
  return page;
}

async function faultyRun(): Promise<string> {
  const fault = FAULTS.find(({ id }) => id === "all-find-then-save");
  if (fault === undefined) throw new Error("the fault has another name now");
  const server = await startSoundServer(
    PLAIN,
    fault.plant(() => undefined),
  );
  try {
    const options = { ...defaultOptions, rounds: 4, exclusive: true };
    return html(await runKit(readProfile(profileFlags(server, PLAIN), {}), options));
  } finally {
    await server.close();
  }
}

let real: Page;
let hostile: Page;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  real = await show("real", await faultyRun());
  hostile = await show("hostile", html(sampleReport()));
});
afterAll(async () => {
  for (const page of pages) await page.close();
  rmSync(dir, { recursive: true, force: true });
});

test.each(LOOKS)("at $width px in $scheme nothing runs out of the page", async (look) => {
  for (const [name, page] of [
    ["real", real],
    ["hostile", hostile],
  ] as const) {
    await page.look(look);
    await Bun.write(`${PICTURES}${name}-${look.scheme}-${look.width}.png`, await page.screenshot());
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(
      look.width,
    );
  }
});

test("light and dark differ, and follow the reader's setting", async () => {
  const background = async (scheme: Look["scheme"]) => {
    await real.look({ width: 1280, scheme });
    return await real.evaluate<string>("getComputedStyle(document.body).backgroundColor");
  };
  expect(await background("light")).not.toBe(await background("dark"));
});

test("the page asks for nothing but itself, and holds no script", async () => {
  for (const page of [real, hostile]) {
    expect(page.requests).toHaveLength(1);
    expect(await page.evaluate<number>("document.scripts.length")).toBe(0);
  }
});

test("the verdict stands at the top, and a race is drawn with bars that can be seen", async () => {
  await real.look({ width: 1280, scheme: "light" });
  expect(await real.evaluate<string>("document.querySelector('h1').textContent")).toBe(
    "Violates the specification",
  );
  const bars = await real.evaluate<number>(
    "[...document.querySelectorAll('details[open] svg.race rect')].filter((bar) => bar.getBoundingClientRect().width >= 2).length",
  );
  expect(bars).toBeGreaterThan(1);
});
