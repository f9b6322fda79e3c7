/** Starts the sound service, or a faulty one, on a free loopback port. */

import { listen } from "./http-socket.ts";
import type { Customer } from "./seams.ts";
import { type Faulty, Service } from "./service.ts";
import type { Deployment } from "./sound-options.ts";

export type SoundServer = {
  /** Base URL: what stands before `/customers`. */
  url: string;
  metricsUrls: string[];
  /** Ids of the customers that were there from the start. */
  seeded: string[];
  /** Customers of either tenant that exist now. */
  customers: () => Customer[];
  close: () => Promise<void>;
};

export async function startSoundServer(deployment: Deployment, faulty?: Faulty): Promise<SoundServer> {
  const service = new Service(deployment, faulty);
  const seeded = Array.from({ length: deployment.seeded }, (_, n) =>
    service.add("main", { name: `Given ${n}`, email: `given-${n}@example.org` }),
  );
  const { port, close } = await listen((request) => service.handle(request));
  const origin = `http://127.0.0.1:${port}`;
  const { metrics } = deployment;
  const metricsPaths =
    metrics === "absent"
      ? []
      : metrics.replicas === 1
        ? ["/metrics"]
        : service.replicas.map((_, n) => `/metrics/${n}`);
  return {
    url: origin + deployment.basePath,
    metricsUrls: metricsPaths.map((path) => origin + path),
    seeded: seeded.map((customer) => customer.id),
    customers: () => [...service.customers.values()].filter((customer) => !customer.removed),
    close,
  };
}
