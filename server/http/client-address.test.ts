import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rawExchange } from "../tests/support/raw-exchange.ts";
import { TestService } from "../tests/support/test-service.ts";

const FORWARDED = "for=203.0.113.7;proto=https";
let trusting: TestService;
let byDefault: TestService;
beforeAll(async () => {
  trusting = await TestService.start({ trustedProxies: ["127.0.0.1"] });
  byDefault = await TestService.start();
});
afterAll(async () => {
  await trusting.stop();
  await byDefault.stop();
});

describe("the address in the log", () => {
  const logged = async (service: TestService, ...lines: string[]) => {
    const head = ["GET /problems HTTP/1.1", "Host: a.example", "Connection: close", ...lines];
    await rawExchange(service.port, `${head.join("\r\n")}\r\n\r\n`);
    return service.logLines.at(-1)?.["address"];
  };

  test("is the connection's by default, whatever the headers say", async () => {
    expect(await logged(byDefault, `Forwarded: ${FORWARDED}`, "X-Forwarded-For: 203.0.113.7")).toBe(
      "127.0.0.1",
    );
  });

  test("is what a trusted proxy names, in whichever header", async () => {
    expect(await logged(trusting)).toBe("127.0.0.1");
    expect(await logged(trusting, `Forwarded: ${FORWARDED}`)).toBe("203.0.113.7");
    expect(await logged(trusting, "X-Forwarded-For: 1.1.1.1, 203.0.113.7")).toBe("203.0.113.7");
  });

  test("is read from all lines of a header as from one", async () => {
    const lines = ["X-Forwarded-For: 1.1.1.1", "x-forwarded-for: 203.0.113.7", "X-Forwarded-For: 127.0.0.1"];
    expect(await logged(trusting, ...lines)).toBe("203.0.113.7");
    expect(await logged(trusting, 'Forwarded: for="', "Forwarded: for=203.0.113.7")).toBe("203.0.113.7");
  });

  test("is the proxy's where the header has no address, and never a text that could forge a line", async () => {
    expect(await logged(trusting, 'X-Forwarded-For: fe80::1%","level":"fatal')).toBe("127.0.0.1");
    expect(await logged(trusting, 'Forwarded: for="_\\",\\"level\\":\\"fatal"')).toBe("127.0.0.1");
  });
});

test("the last use of a token is noted with the network of the client", async () => {
  const caller = { client: "behind-a-proxy" };
  await trusting.send("GET", "/customers", { caller, headers: { "x-forwarded-for": "203.0.113.7" } });
  let from: string | null | undefined = null;
  while (from === null) {
    const tokens = await trusting.storage.tokens.list();
    from = tokens.find(({ client }) => client === caller.client)?.lastUsedFrom;
  }
  expect(from).toBe("203.0.113.0/24");
});
