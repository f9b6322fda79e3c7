import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Workplace } from "../tests/support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

describe("health", () => {
  test("exits with 0 and prints the answer of a service that is ready", async () => {
    const { url } = await place.start();
    const outcome = await place.run(["health", "--port", new URL(url).port]);
    expect(outcome).toEqual({ code: 0, stdout: '{"status":"ready"}\n', stderr: "" });
  });

  test("exits with 1 where nothing listens, and says what to do", async () => {
    const service = await place.start();
    const { port } = new URL(service.url);
    await service.end();
    expect(await place.run(["health", "--port", port])).toEqual({
      code: 1,
      stdout: "",
      stderr: `http://127.0.0.1:${port}/readyz does not answer. Start the service, or correct HOST and PORT.\n`,
    });
  });

  test.each([
    ["0.0.0.0", "127.0.0.1"],
    ["::", "[::1]"],
    ["::1", "[::1]"],
    ["localhost", "localhost"],
  ])("asks a service with HOST=%s at %s", async (host, asked) => {
    const { stderr } = await place.run(["health", "--host", host, "--port", "1"]);
    expect(stderr).toStartWith(`http://${asked}:1/readyz does not answer`);
  });
});
