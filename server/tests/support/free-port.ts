/**
 * Below the ports that Linux gives for 0 and to clients (from 32768), so that none
 * of those is this one; the kit's tests draw theirs from above these.
 */
const [FIRST, COUNT] = [10_000, 18_000];

/** A port that nobody listens on, and that no other test of this machine is given: proxies and databases take no 0. */
export function freePort(): number {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (isOurs(port) && isFree(port)) return port;
  }
}

/** Takes a name that all processes of the machine see, until this one ends. */
function isOurs(port: number): boolean {
  try {
    Bun.listen({ unix: `\0customers-test-port-${port}`, socket: { data: () => {} } }).unref();
    return true;
  } catch {
    return false;
  }
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data: () => {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}
