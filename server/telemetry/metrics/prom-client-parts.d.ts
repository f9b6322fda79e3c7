/**
 * The parts of prom-client that the service uses, each by its own file: the whole loads node:http and node:cluster, which
 * takes a tenth of the processor time of a start. They are not of its public interface, so its version is pinned.
 */
declare module "prom-client/lib/counter.js" {
  import { Counter } from "prom-client";
  export default Counter;
}

declare module "prom-client/lib/gauge.js" {
  import { Gauge } from "prom-client";
  export default Gauge;
}

declare module "prom-client/lib/histogram.js" {
  import { Histogram } from "prom-client";
  export default Histogram;
}

declare module "prom-client/lib/registry.js" {
  import { Registry } from "prom-client";
  export default Registry;
}
