import { afterEach, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { selfSignedCertificate } from "../support/http/self-signed-certificate.ts";
import { type ServeOptions, type ServerProcess, Workplace } from "../support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

/**
 * As a person starts it: the output is for reading.
 *
 * @returns the lines to paste, of which the last is like this
 */
async function startForPeople(
  isLast: RegExp,
  options: ServeOptions = {},
): Promise<{ service: ServerProcess; lines: string[] }> {
  const service = await place.start({ ...options, isForPeople: true });
  await service.stdout.line((line) => isLast.test(line));
  return { service, lines: service.stdout.text.split("\n").filter((line) => line.startsWith("curl ")) };
}
const WRITE = /^curl .*PUT/;

/** Pastes a line into a shell, in another directory than the service's. */
async function paste(line: string): Promise<{ status: string; headers: string; body: string }> {
  const shell = Bun.spawn(["sh", "-c", line], { cwd: "/", stdout: "pipe", stderr: "pipe", stdin: "ignore" });
  const [text] = await Promise.all([new Response(shell.stdout).text(), shell.exited]);
  const [headers = "", body = ""] = text.split("\r\n\r\n");
  return { status: headers.slice("HTTP/1.1 ".length, "HTTP/1.1 ".length + 3), headers, body };
}

test("the printed lines read and write a customer when pasted, the write as often as it is pasted", async () => {
  const { lines } = await startForPeople(WRITE);
  expect(lines).toHaveLength(2);
  const [read = "", write = ""] = lines;
  const before = await paste(read);
  expect(before.status).toBe("200");
  expect(Object.keys(JSON.parse(before.body) as object).sort()).toEqual(["email", "name"]);
  const tags = [/^etag: (.*)$/im.exec(before.headers)?.[1]];
  for (let time = 0; time < 2; time += 1) {
    const written = await paste(write);
    expect(written.status).toBe("204");
    tags.push(/^etag: (.*)$/im.exec(written.headers)?.[1]);
  }
  expect(new Set(tags).size).toBe(3);
  expect((await paste(read)).body).toContain('"name":"Ada King"');
});

test("the printed lines work from a directory whose name a shell would take apart", async () => {
  place.database = `${place.path}/it's $HOME "data"/customers.db`;
  const { lines } = await startForPeople(WRITE);
  for (const line of lines) expect((await paste(line)).status).toMatch(/^20[04]$/);
});

test("the printed lines are one line that lists, where there are no samples", async () => {
  const { lines } = await startForPeople(/^curl/, { args: ["--no-samples"] });
  expect(lines).toHaveLength(1);
  expect((await paste(lines[0] ?? "")).body).toBe('{"items":[],"next":null}');
});

test("the printed lines work over TLS", async () => {
  const { cert, key } = selfSignedCertificate();
  writeFileSync(`${place.path}/cert.pem`, cert);
  writeFileSync(`${place.path}/key.pem`, key);
  const env = { TLS_CERT_FILE: `${place.path}/cert.pem`, TLS_KEY_FILE: `${place.path}/key.pem` };
  const { service, lines } = await startForPeople(WRITE, { env });
  expect(service.url).toStartWith("https://127.0.0.1:");
  expect(lines).toHaveLength(2);
  for (const line of lines) expect((await paste(line)).status).toMatch(/^20[04]$/);
});
