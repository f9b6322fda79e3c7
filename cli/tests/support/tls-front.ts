/** TLS in front of a test server, with a certificate of a private authority that no machine trusts. */
import net, { type AddressInfo } from "node:net";
import tls from "node:tls";
import { makeCertificates } from "./certificates.ts";

export type TlsFront = {
  /** https, on localhost. */
  url: string;
  /** The authority's certificate, PEM. */
  ca: string;
  stop(): Promise<void>;
};

export async function startTlsFront(upstream: string): Promise<TlsFront> {
  const { ca, certificate, key } = makeCertificates();
  const { hostname, port, pathname } = new URL(upstream);
  const open = new Set<tls.TLSSocket>();
  // As most servers on the internet do, it would rather speak HTTP/2; the upstream does not.
  const ALPNProtocols = ["h2", "http/1.1"];
  const server = tls.createServer({ cert: certificate, key, ALPNProtocols }, (socket) => {
    open.add(socket);
    const onward = net.connect(Number(port), hostname);
    socket.on("close", () => {
      open.delete(socket);
      onward.destroy();
    });
    socket.on("error", () => onward.destroy());
    onward.on("error", () => socket.destroy());
    onward.on("close", () => socket.destroy());
    socket.pipe(onward);
    onward.pipe(socket);
  });
  server.on("tlsClientError", () => {}); // a client that does not trust us hangs up; that is the point of a test
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}${pathname === "/" ? "" : pathname}`,
    ca,
    async stop() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
