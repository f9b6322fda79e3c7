/** Thrown where the proxy refuses the tunnel: nothing reached the server. */
export class ProxyRefusal extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the proxy answered ${status}`);
    this.status = status;
  }
}
