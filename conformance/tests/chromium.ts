/** Headless Chromium over its DevTools protocol: enough to look at a page as a reader would. For tests. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Look = { width: number; scheme: "light" | "dark" };

export type Page = {
  /** Shows the page in this width and scheme. */
  look: (look: Look) => Promise<void>;
  /** Value of an expression in the page; it is put there by the debugger, so no script of the page runs. */
  evaluate: <T>(expression: string) => Promise<T>;
  /** PNG of the first pixels of the page, as many as a few screens hold. */
  screenshot: () => Promise<Buffer>;
  /** Addresses that the page asked for. */
  requests: string[];
  close: () => Promise<void>;
};

const SHOT_HEIGHT = 3000;
const START_MS = 60_000;

type Message = {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { message: string };
};

async function debuggerAddress(dir: string, child: Bun.Subprocess): Promise<string> {
  const file = join(dir, "DevToolsActivePort");
  const deadline = performance.now() + START_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    const [port, path] = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    if (port !== undefined && path !== undefined && path !== "") return `ws://127.0.0.1:${port}${path}`;
    await Bun.sleep(50); // between two looks for the file; nothing depends on its length
  }
  throw new Error("Chromium did not say where its debugger listens");
}

export async function openPage(url: string): Promise<Page> {
  const dir = mkdtempSync(join(tmpdir(), "conformance-chromium-"));
  const child = Bun.spawn(
    [
      ...[
        "/usr/bin/chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
      ],
      ...[
        "--disable-background-networking",
        "--hide-scrollbars",
        `--user-data-dir=${dir}`,
        "--remote-debugging-port=0",
        "about:blank",
      ],
    ],
    { stdio: ["ignore", "ignore", "ignore"] },
  );
  const socket = new WebSocket(await debuggerAddress(dir, child));
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("Chromium refused the debugger"));
  });
  const waiting = new Map<number, (message: Message) => void>();
  const requests: string[] = [];
  let loaded: () => void = () => undefined;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data)) as Message;
    if (message.id !== undefined) waiting.get(message.id)?.(message);
    if (message.method === "Network.requestWillBeSent") {
      requests.push(String((message.params?.["request"] as { url: string } | undefined)?.url));
    }
    if (message.method === "Page.loadEventFired") loaded();
  };
  let sent = 0;
  let shownWidth = 1280;
  let sessionId: unknown;
  const send = async (
    method: string,
    params: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> => {
    sent += 1;
    const id = sent;
    const answer = new Promise<Message>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
    const { result, error } = await answer;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  };
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  sessionId = (await send("Target.attachToTarget", { targetId, flatten: true }))["sessionId"];
  await send("Page.enable");
  await send("Network.enable");
  const load = new Promise<void>((resolve) => {
    loaded = resolve;
  });
  await send("Page.navigate", { url });
  await load;
  return {
    requests,
    async look({ width, scheme }) {
      shownWidth = width;
      await send("Emulation.setEmulatedMedia", {
        features: [{ name: "prefers-color-scheme", value: scheme }],
      });
      await send("Emulation.setDeviceMetricsOverride", {
        width,
        height: 900,
        deviceScaleFactor: 1,
        mobile: false,
      });
    },
    async evaluate<T>(expression: string): Promise<T> {
      const { result } = await send("Runtime.evaluate", { expression, returnByValue: true });
      return (result as { value: T }).value;
    },
    async screenshot() {
      const { data } = await send("Page.captureScreenshot", {
        captureBeyondViewport: true,
        format: "png",
        clip: { x: 0, y: 0, width: shownWidth, height: SHOT_HEIGHT, scale: 1 },
      });
      return Buffer.from(String(data), "base64");
    },
    async close() {
      socket.close();
      child.kill("SIGTERM");
      await child.exited;
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
