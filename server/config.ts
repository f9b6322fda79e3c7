import { MEMORY } from "./storage/sqlite-database.ts";

export type LogFormat = "json" | "text";

/** The settings of a service, read once. */
export type Config = {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** A file, or ":memory:". */
  readonly databasePath: string;
  /** Null: the built-in policy. */
  readonly policyFile: string | null;
  readonly metricsArePublic: boolean;
  readonly logLevel: string;
  readonly logFormat: LogFormat;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly corsOrigins: readonly string[];
  /** Without a slash at its end; "" for paths instead of absolute addresses. */
  readonly publicUrl: string;
};

export type SettingName =
  | "HOST"
  | "PORT"
  | "DATABASE_URL"
  | "POLICY_FILE"
  | "METRICS_ACCESS"
  | "LOG_LEVEL"
  | "LOG_FORMAT"
  | "TLS_CERT_FILE"
  | "TLS_KEY_FILE"
  | "CORS_ORIGINS"
  | "PUBLIC_URL";

export type Setting = {
  readonly name: SettingName;
  /** The flag of the same meaning, which wins over the environment. */
  readonly flag: string;
  readonly fallback: string;
  readonly meaning: string;
};

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

export const SETTINGS: readonly Setting[] = [
  { name: "HOST", flag: "--host", fallback: "127.0.0.1", meaning: "Address to listen on." },
  { name: "PORT", flag: "--port", fallback: "8080", meaning: "Port to listen on; 0 takes a free one." },
  {
    name: "DATABASE_URL",
    flag: "--database-url",
    fallback: "sqlite:./data/customers.db",
    meaning: "`sqlite:FILE`, or `sqlite::memory:` for one that is gone at the end.",
  },
  {
    name: "POLICY_FILE",
    flag: "--policy-file",
    fallback: "",
    meaning: "Roles, rights and enforcement (TOML). Empty: the built-in policy.",
  },
  {
    name: "METRICS_ACCESS",
    flag: "--metrics-access",
    fallback: "token",
    meaning: "`token`: for tokens with the operation metrics; `public`: for anyone, without caller labels.",
  },
  { name: "LOG_LEVEL", flag: "--log-level", fallback: "info", meaning: `One of ${LOG_LEVELS.join(", ")}.` },
  { name: "LOG_FORMAT", flag: "--log-format", fallback: "json", meaning: "`json`, or `text` for people." },
  {
    name: "TLS_CERT_FILE",
    flag: "--tls-cert-file",
    fallback: "",
    meaning: "Certificate chain (PEM); with the key: HTTPS.",
  },
  {
    name: "TLS_KEY_FILE",
    flag: "--tls-key-file",
    fallback: "",
    meaning: "Private key of the certificate (PEM).",
  },
  {
    name: "CORS_ORIGINS",
    flag: "--cors-origins",
    fallback: "",
    meaning: "Origins of browser pages that may call, separated by commas; `*` for any. Empty: none.",
  },
  {
    name: "PUBLIC_URL",
    flag: "--public-url",
    fallback: "",
    meaning:
      "Address under which clients reach the service, for Location, Link and problem types. Empty: paths.",
  },
];

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

/**
 * Reads every setting, a flag over the environment over the default.
 *
 * @returns the settings, or all faults at once, each a sentence that names the setting and what to do
 */
export function readConfig(
  flags: Readonly<Record<string, string | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
): ConfigResult {
  const faults: string[] = [];
  const text = (name: SettingName): string => {
    const fallback = SETTINGS.find((setting) => setting.name === name)?.fallback ?? "";
    // An empty variable is how shells and service units say "not set".
    return flags[name] ?? (environment[name] || fallback);
  };
  const fault = (name: SettingName, what: string): void => {
    faults.push(`${name} is ${JSON.stringify(text(name))}: ${what}`);
  };
  const oneOf = (name: SettingName, words: readonly string[]): string => {
    if (!words.includes(text(name))) fault(name, `choose one of ${words.join(", ")}.`);
    return text(name);
  };

  if (text("HOST") === "") fault("HOST", "give an address, such as 127.0.0.1 or 0.0.0.0.");
  const port = /^\d{1,5}$/.test(text("PORT")) ? Number(text("PORT")) : Number.NaN;
  if (!(port <= 65_535)) fault("PORT", "give a number from 0 to 65535; 0 takes a free port.");

  const databasePath = readDatabaseUrl(text("DATABASE_URL"));
  if (databasePath === null) {
    fault("DATABASE_URL", "give sqlite:FILE, such as sqlite:./data/customers.db, or sqlite::memory:.");
  }

  const tls = { certFile: text("TLS_CERT_FILE"), keyFile: text("TLS_KEY_FILE") };
  const isTls = tls.certFile !== "" || tls.keyFile !== "";
  if (isTls && tls.certFile === "")
    fault("TLS_CERT_FILE", "TLS_KEY_FILE is set, so name the certificate too.");
  if (isTls && tls.keyFile === "") fault("TLS_KEY_FILE", "TLS_CERT_FILE is set, so name its key too.");

  const corsOrigins = text("CORS_ORIGINS")
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  const wrongOrigins = corsOrigins.filter((origin) => origin !== "*" && !isOrigin(origin));
  if (wrongOrigins.length > 0) {
    fault("CORS_ORIGINS", `${wrongOrigins.join(", ")}: an origin is scheme://host[:port], without a path.`);
  }

  const publicUrl = text("PUBLIC_URL").replace(/\/+$/, "");
  if (publicUrl !== "" && !isBaseUrl(publicUrl)) {
    fault("PUBLIC_URL", "give an http or https address without query, such as https://api.example.com/crm.");
  }

  const config: Config = {
    host: text("HOST"),
    port,
    databasePath: databasePath ?? "",
    policyFile: text("POLICY_FILE") || null,
    metricsArePublic: oneOf("METRICS_ACCESS", ["token", "public"]) === "public",
    logLevel: oneOf("LOG_LEVEL", LOG_LEVELS),
    logFormat: oneOf("LOG_FORMAT", ["json", "text"]) as LogFormat,
    tls: isTls ? tls : null,
    corsOrigins,
    publicUrl,
  };
  return faults.length === 0 ? { ok: true, config } : { ok: false, faults };
}

/** @returns the path of `sqlite:PATH` (also `sqlite://PATH`), ":memory:", or null */
function readDatabaseUrl(url: string): string | null {
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  if (path === undefined || path.includes("?") || path.endsWith("/")) return null;
  return path === MEMORY || !path.startsWith(":") ? path : null;
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text;
}

function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && search === "" && hash === "" && !text.includes("?");
}
