import { expect, test } from "bun:test";
import { Elysia } from "elysia";
import { Listener } from "../listener.ts";
import { freePort } from "./support/free-port.ts";
import { selfSignedCertificate } from "./support/http/self-signed-certificate.ts";

test("a port that another process takes while the certificate is replaced ends nothing: it is listened on once it is free", async () => {
  const takers: { stop: (closes: boolean) => void }[] = [];
  const faults: string[] = [];
  let isReplacing = false;
  const listener = new Listener({
    address: { host: "127.0.0.1", port: freePort(), portVariable: "PORT", isShared: false },
    tls: selfSignedCertificate(),
    idleTimeoutSeconds: 5,
    onFault: (sentence) => faults.push(sentence),
    createApp: () => {
      // Between the end of the old listener and the start of the new one.
      if (isReplacing && takers.length === 0) {
        takers.push(Bun.listen({ hostname: "127.0.0.1", port: listener.port, socket: { data: () => {} } }));
      }
      const app = new Elysia();
      app.get("/", () => "served");
      return app;
    },
  });
  const { cert, key } = selfSignedCertificate();
  isReplacing = true;
  listener.replaceTls({ cert, key });
  expect(faults).toEqual([expect.stringContaining(`Port ${listener.port} on 127.0.0.1 is already in use`)]);
  for (const taker of takers) taker.stop(true);
  let text = "";
  while (text === "") {
    text = await fetch(`${listener.url}/`, { tls: { ca: cert } }).then(
      (reply) => reply.text(),
      () => "",
    );
  }
  expect(text).toBe("served");
  expect(faults).toHaveLength(1);
  expect(await listener.stop(5_000)).toBe(true);
});
