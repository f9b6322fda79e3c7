/** A port that nobody listened on a moment ago: proxies and databases take no 0. */
export function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  const { port } = server;
  server.stop(true);
  return port;
}
