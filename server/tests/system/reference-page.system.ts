/** The pages of the service in a browser: the reference with a request that is tried out, the index, the problems. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { TestService } from "../support/service/test-service.ts";

const PICTURES = new URL("../../../.ci/out/pages/", import.meta.url).pathname;
const PAGES = {
  index: "/",
  reference: "/docs",
  problems: "/problems",
  problem: "/problems/precondition-failed",
};
const LOOKS = (["light", "dark"] as const).flatMap((scheme) =>
  [1280, 390].map((width) => ({ scheme, width })),
);

let service: TestService;
let browser: Browser;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  service = await TestService.start();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

type Shown = {
  readonly page: Page;
  /** What went wrong: errors and warnings of the console, which has violations of the policy, and of scripts. */
  readonly faults: string[];
  /** Hosts that the page sent requests to. */
  readonly hosts: Set<string>;
};

async function open(
  path: string,
  look: (typeof LOOKS)[number] = { scheme: "light", width: 1280 },
): Promise<Shown> {
  const page = await browser.newPage({
    colorScheme: look.scheme,
    viewport: { width: look.width, height: 900 },
  });
  const faults: string[] = [];
  const hosts = new Set<string>();
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:") hosts.add(host);
  });
  await page.goto(`${service.url}${path}`, { waitUntil: "networkidle" });
  return { page, faults, hosts };
}

describe.each(Object.entries(PAGES))("the page %s", (name, path) => {
  test.each(LOOKS)("fits $width px in $scheme, and asks for nothing from elsewhere", async (look) => {
    const { page, faults, hosts } = await open(path, look);
    try {
      await page.screenshot({ path: `${PICTURES}${name}-${look.scheme}-${look.width}.png` });
      expect(faults).toEqual([]);
      expect([...hosts]).toEqual([new URL(service.url).host]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(look.width);
    } finally {
      await page.close();
    }
  });
});

test.each(Object.entries(PAGES))("the page %s is dark for a reader who wants that", async (_name, path) => {
  const background = async (scheme: "light" | "dark") => {
    const { page } = await open(path, { scheme, width: 1280 });
    // The page's own, or the canvas of the browser where the page leaves it to `color-scheme`.
    const picture = await page.screenshot({ clip: { x: 0, y: 0, width: 1, height: 1 } });
    await page.close();
    return picture;
  };
  expect((await background("dark")).equals(await background("light"))).toBe(false);
});

test("every link of the index leads somewhere", async () => {
  const { page } = await open("/");
  const links: string[] = await page.locator("a").evaluateAll((links) => links.map((link) => link.href));
  expect(links.length).toBeGreaterThan(4);
  for (const link of links) expect([link, (await fetch(link)).status]).toEqual([link, 200]);
  await page.close();
});

test("a token pasted into the reference lets a reader try GET /customers out", async () => {
  await service.customer({ name: "Ada King" });
  const { page, faults, hosts } = await open("/docs");
  try {
    await page.getByRole("button", { name: "Authorize" }).first().click();
    await page.locator(".auth-container input").fill(await service.token());
    await page.locator(".auth-container").getByRole("button", { name: "Apply credentials" }).click();
    await page.screenshot({ path: `${PICTURES}reference-authorized.png` });
    await page.getByRole("button", { name: "Close" }).click();

    const operation = page.locator("#operations-Customers-listCustomers");
    await operation.locator(".opblock-summary-control").first().click();
    await operation.getByRole("button", { name: "Try it out" }).click();
    await operation.getByRole("button", { name: "Execute" }).click();
    const answer = operation.locator(".live-responses-table");
    await answer.waitFor();
    await answer.scrollIntoViewIfNeeded();
    await page.screenshot({ path: `${PICTURES}reference-tried.png` });
    expect(await answer.locator("tbody .response-col_status").first().textContent()).toContain("200");
    expect(await answer.textContent()).toContain("Ada King");
    expect(faults).toEqual([]);
    expect([...hosts]).toEqual([new URL(service.url).host]);
  } finally {
    await page.close();
  }
});
