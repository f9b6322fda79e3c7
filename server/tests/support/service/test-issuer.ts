import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, exportSPKI, generateKeyPair, importJWK, SignJWT } from "jose";
import Provider from "oidc-provider";

export const AUDIENCE = "urn:customers";
/** Of the clients of the issuer. */
const SECRET = "secret";
const LIFETIME_S = 300;

type Keys = {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
};

/** A real issuer, `oidc-provider`, on a free port, which can be down, change its keys, and count who asks. */
export class TestIssuer {
  readonly url: string;
  /** Of requests, by path. */
  readonly requests = new Map<string, number>();
  /** What the tokens of each client say besides. */
  readonly claims: Record<string, object> = {};
  readonly #port: number;
  #server: Server;
  #keys: Keys;
  /** Answers instead of the issuer, where it is set. */
  answer: RequestListener | null = null;
  #answer: RequestListener;

  private constructor(server: Server, keys: Keys) {
    this.#server = server;
    this.#keys = keys;
    this.#port = (server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.#port}`;
    this.#answer = () => {};
  }

  static async start(): Promise<TestIssuer> {
    const issuer = new TestIssuer(await listening(0), await makeKeys("first"));
    await issuer.rotate("first");
    issuer.#attach();
    return issuer;
  }

  /** From now on it signs with another key, and its key set has that one alone. */
  async rotate(kid: string): Promise<void> {
    this.#keys = await makeKeys(kid);
    const jwk = { ...(await exportJWK(this.#keys.privateKey)), kid, alg: "RS256", use: "sig" };
    const provider = new Provider(this.url, {
      clients: ["billing-sync", "crm", "stranger"].map((client_id) => ({
        client_id,
        client_secret: SECRET,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      })),
      jwks: { keys: [jwk] },
      ttl: { ClientCredentials: LIFETIME_S },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, audience: string) => ({
            scope: "",
            audience,
            accessTokenFormat: "jwt",
            accessTokenTTL: LIFETIME_S,
            jwt: { sign: { alg: "RS256" } },
          }),
        },
      },
      extraTokenClaims: (_: unknown, token: { clientId: string }) => this.claims[token.clientId],
    });
    this.#answer = provider.callback();
  }

  /** A token that the issuer gives a client for its password (RFC 6749, section 4.4). */
  async token(client = "billing-sync", audience = AUDIENCE): Promise<string> {
    const reply = await fetch(`${this.url}/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa(`${client}:${SECRET}`)}` },
      body: new URLSearchParams({ grant_type: "client_credentials", resource: audience }),
    });
    const { access_token: token } = (await reply.json()) as { access_token?: string };
    if (token === undefined) throw new Error(`the issuer gave no token: ${reply.status}`);
    return token;
  }

  /** What the issuer would sign only if it were broken, by its own key. A claim or member that is undefined is left out. */
  sign(
    claims: Readonly<Record<string, unknown>>,
    header: object = {},
    key: CryptoKey | Uint8Array = this.#keys.privateKey,
  ) {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({
      ...{ iss: this.url, aud: AUDIENCE, sub: "billing-sync", client_id: "billing-sync" },
      ...{ iat: now, exp: now + LIFETIME_S, ...this.claims["billing-sync"], ...claims },
    })
      .setProtectedHeader({ alg: "RS256", typ: "at+jwt", kid: this.#keys.kid, ...header })
      .sign(key);
  }

  /** Its own key, for an algorithm that it does not sign with. */
  async keyFor(algorithm: string): Promise<CryptoKey | Uint8Array> {
    return importJWK(await exportJWK(this.#keys.privateKey), algorithm);
  }

  /** As its key set has it, in PEM. */
  publicKey(): Promise<string> {
    return exportSPKI(this.#keys.publicKey);
  }

  /** How often its keys were asked for. */
  get keyRequests(): number {
    return this.requests.get("/jwks") ?? 0;
  }

  /** Refuses connections until {@link up}. */
  async down(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }

  async up(): Promise<void> {
    this.#server = await listening(this.#port);
    this.#attach();
  }

  #attach(): void {
    this.#server.on("request", (request, response) => {
      const path = request.url ?? "";
      this.requests.set(path, (this.requests.get(path) ?? 0) + 1);
      (this.answer ?? this.#answer)(request, response);
    });
  }
}

async function makeKeys(kid: string): Promise<Keys> {
  return { kid, ...(await generateKeyPair("RS256", { extractable: true })) };
}

async function listening(port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  return server;
}
