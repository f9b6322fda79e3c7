/** Where a database is, and how the way there is protected. */
export type PostgresAddress = {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  /** Null: none in the URL. */
  readonly password: string | null;
  /** Whether the server must prove with its certificate that it is this host. */
  readonly isVerified: boolean;
};

type UrlReading =
  | { readonly ok: true; readonly address: PostgresAddress }
  /** Completes the sentence "DATABASE_URL …". */
  | { readonly ok: false; readonly fault: string };

const DEFAULT_PORT = 5432;

export function isPostgresUrl(databaseUrl: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(databaseUrl);
}

/**
 * Reads `postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?sslmode=…]`. Of libpq's modes only two are known:
 * `disable` and `verify-full`. The others encrypt without knowing to whom, so they protect from nobody who
 * can answer for the host. Without a mode another machine must be verified, and this one need not be.
 */
export function parsePostgresUrl(databaseUrl: string): UrlReading {
  const refuse = (fault: string): UrlReading => ({ ok: false, fault });
  if (!isPostgresUrl(databaseUrl) || !URL.canParse(databaseUrl)) {
    return refuse("is no URL such as postgres://USER@HOST:PORT/DATABASE");
  }
  const url = new URL(databaseUrl);
  const database = decoded(url.pathname.slice(1));
  const username = decoded(url.username);
  const password = decoded(url.password);
  if (database === null || username === null || password === null) {
    return refuse("has a % that begins no escape; write a literal one as %25");
  }
  if (url.hostname === "") return refuse("names no host");
  if (url.hostname.includes(","))
    return refuse("names several hosts; name the one address that leads to the primary");
  if (database === "" || database.includes("/")) return refuse("names no database");
  if (username === "") return refuse("names no user");
  const unknown = [...url.searchParams.keys()].find((name) => name !== "sslmode");
  if (unknown !== undefined) return refuse(`has the parameter ${unknown}; only sslmode is known`);
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && mode !== "disable" && mode !== "verify-full") {
    return refuse(`has sslmode=${mode}, which does not verify the server; use verify-full or disable`);
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return {
    ok: true,
    address: {
      host,
      port: url.port === "" ? DEFAULT_PORT : Number(url.port),
      database,
      username,
      password: password === "" ? null : password,
      isVerified: mode === null ? !isLoopback(host) : mode === "verify-full",
    },
  };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
