/** One customer on a test server, perhaps behind a faulty proxy, and the client pointed at it. */
import { runClient } from "./client.ts";
import { type CustomerServer, startCustomerServer } from "./customer-server.ts";
import { type Dialect, OURS, TOKEN } from "./dialect.ts";
import { type Fault, type FaultyProxy, startFaultyProxy } from "./faulty-proxy.ts";

const started: (CustomerServer | FaultyProxy)[] = [];

export async function startDeployment(fault?: Fault, dialect: Dialect = OURS) {
  const server = startCustomerServer(dialect);
  started.push(server);
  const customer = server.add({ name: "Ada", email: "ada@example.com", status: "active" });
  const proxy = fault === undefined ? undefined : await startFaultyProxy(server.url, fault);
  if (proxy !== undefined) started.push(proxy);
  const { header, value } = dialect.credentials;
  const credentials = header === "authorization" ? [] : ["--header-env", `${header}: $KEY`];
  const env = { CUSTOMERS_URL: proxy?.url ?? server.url, CUSTOMERS_TOKEN: TOKEN, KEY: value };
  const run = (...args: string[]) => runClient([...credentials, ...args], { env });
  return {
    server,
    proxy,
    customer,
    run,
    update: (...args: string[]) => run("update", customer.id, ...args),
    remove: (...args: string[]) => run("delete", customer.id, "--yes", ...args),
    state: () => server.read(customer.id),
  };
}

/** For afterAll. */
export async function stopDeployments(): Promise<void> {
  for (const server of started.splice(0).reverse()) await server.stop();
}
