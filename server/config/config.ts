import type { Policy } from "../domain/policy.ts";
import { parseSqliteUrl } from "../storage/sqlite/sqlite-database.ts";
import { readPolicyFile } from "./policy-file.ts";
import { readTlsFiles, type TlsFiles } from "./tls-files.ts";

export type LogFormat = "json" | "text";

/** The settings of a service, read once. */
export type Config = {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly databaseUrl: string;
  /** A file, or ":memory:". */
  readonly databasePath: string;
  /** Where the policy is read again from; null for the built-in one. */
  readonly policyFile: string | null;
  /** As it was when the settings were read. */
  readonly policy: Policy;
  readonly metricsArePublic: boolean;
  readonly logLevel: string;
  readonly logFormat: LogFormat;
  readonly tls: TlsFiles | null;
  readonly corsOrigins: readonly string[];
  /** Without a slash at its end; "" for paths instead of absolute addresses. */
  readonly publicUrl: string;
  /** Whether other services may listen on the same port; the kernel spreads connections over them. */
  readonly sharesPort: boolean;
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
  | "PUBLIC_URL"
  | "REUSE_PORT";

type Setting = {
  readonly name: SettingName;
  /** The flag of the same meaning, which wins over the environment. */
  readonly flag: string;
  readonly fallback: string;
  readonly meaning: string;
};

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

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
  {
    name: "REUSE_PORT",
    flag: "--reuse-port",
    fallback: "0",
    meaning:
      "`1`: several services on this machine listen on one port, and the kernel spreads connections over them.",
  },
];

type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly faults: readonly string[] };

type Texts = Readonly<Record<string, string | undefined>>;

/**
 * Reads the settings, a flag over the environment over the default, and the files that they name.
 *
 * @param names the settings that count: a command that opens the database alone runs whatever PORT is
 * @returns the settings, or all faults at once, each a sentence that names the setting and what to do
 */
export function readConfig(
  flags: Texts,
  environment: Texts,
  names: readonly SettingName[] = SETTINGS.map(({ name }) => name),
): ConfigResult {
  const faults: string[] = [];
  const text = (name: SettingName): string => {
    const fallback = SETTINGS.find((setting) => setting.name === name)?.fallback ?? "";
    if (!names.includes(name)) return fallback;
    // An empty variable is how shells and service units say "not set".
    return flags[name] ?? (environment[name] || fallback);
  };
  const fault = (name: SettingName, what: string): void => {
    faults.push(`${name} is ${JSON.stringify(text(name))}: ${what}`);
  };
  const oneOf = <Word extends string>(name: SettingName, words: readonly Word[], fallback: Word): Word => {
    const word = words.find((candidate) => candidate === text(name));
    if (word === undefined) fault(name, `choose one of ${words.join(", ")}.`);
    return word ?? fallback;
  };

  if (text("HOST") === "") fault("HOST", "give an address, such as 127.0.0.1 or 0.0.0.0.");
  const port = /^\d{1,5}$/.test(text("PORT")) ? Number(text("PORT")) : Number.NaN;
  if (!(port <= 65_535)) fault("PORT", "give a number from 0 to 65535; 0 takes a free port.");

  const databasePath = parseSqliteUrl(text("DATABASE_URL"));
  if (databasePath === null) {
    fault("DATABASE_URL", "give sqlite:FILE, such as sqlite:./data/customers.db, or sqlite::memory:.");
  }

  const policyFile = text("POLICY_FILE") || null;
  const policy = readPolicyFile(policyFile);
  if (!policy.ok) for (const what of policy.faults) fault("POLICY_FILE", `${what}.`);

  const metricsArePublic = oneOf("METRICS_ACCESS", ["token", "public"], "token") === "public";
  const logLevel = oneOf("LOG_LEVEL", LOG_LEVELS, "info");
  const logFormat = oneOf("LOG_FORMAT", ["json", "text"], "json");

  const tls = readTlsFiles(text("TLS_CERT_FILE"), text("TLS_KEY_FILE"));
  if (!tls.ok) for (const { name, what } of tls.faults) fault(name, what);

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

  const sharesPort = oneOf("REUSE_PORT", ["0", "1"], "0") === "1";

  if (faults.length > 0 || databasePath === null || !policy.ok || !tls.ok) return { ok: false, faults };
  return {
    ok: true,
    config: {
      host: text("HOST"),
      port,
      databaseUrl: text("DATABASE_URL"),
      databasePath,
      policyFile,
      policy: policy.policy,
      metricsArePublic,
      logLevel,
      logFormat,
      tls: tls.files,
      corsOrigins,
      publicUrl,
      sharesPort,
    },
  };
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text;
}

function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  // An empty query or fragment leaves no trace in the parsed address.
  return /^https?:$/.test(protocol) && !/[?#\s]/.test(text) && username === "" && password === "";
}
