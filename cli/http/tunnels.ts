/** Connections through an HTTP proxy's CONNECT; loaded where there is one. */
import { type Dispatcher, Pool, ProxyAgent } from "undici/index.js";
import { ProxyRefusal } from "./proxy-refusal.ts";

export function openTunnels(options: ProxyAgent.Options): Dispatcher {
  return new ProxyAgent({
    ...options,
    clientFactory: (url, poolOptions) => new TunnelPool(url, { ...poolOptions }),
  });
}

/** undici reports a refused tunnel by the text of an error alone; here the status is a value. */
class TunnelPool extends Pool {
  override async connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData>;
  override async connect(
    options: Dispatcher.ConnectOptions,
    callback?: (error: Error | null, data: Dispatcher.ConnectData) => void,
  ): Promise<Dispatcher.ConnectData> {
    if (callback !== undefined) throw new Error("ProxyAgent awaits connect()");
    const data = await super.connect(options);
    if (data.statusCode === 200) return data;
    data.socket.on("error", () => {}).destroy();
    throw new ProxyRefusal(data.statusCode);
  }
}
