/** Headers that carry credentials: how they are written down, what they expand to, how they may be shown. */
import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import type { Secret } from "./mask.ts";
import { messageOf } from "./message.ts";

export const HeaderTable = Type.Record(
  Type.String(),
  Type.Union([
    Type.String({ description: "`$NAME` is taken from the environment." }),
    Type.Object(
      { file: Type.String(), prefix: Type.Optional(Type.String()) },
      { additionalProperties: false },
    ),
  ]),
);
export type HeaderTable = Static<typeof HeaderTable>;

/** A header as it is sent, and as it may be shown: `Bearer $TOKEN`. */
export type CallerHeader = { readonly name: string; readonly value: string; readonly shown: string };

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable that stands for a credential: `$LIMITED_AUTHORIZATION`. */
export function variableOf(name: string, prefix: string): string {
  return `$${prefix}${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
}

/** Headers whose values are common words: masking them would deface every report. */
const NO_SECRETS = new Set(["accept", "accept-language", "content-type", "prefer", "user-agent"]);

/** Reads headers from their three notations and gathers the secrets and faults found on the way. */
export class HeaderReader {
  readonly faults: string[] = [];
  readonly secrets: Secret[] = [];

  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  /** `Name: value` with the secret spelled out; it is shown as `$PREFIX_NAME`. */
  lines(lines: readonly string[], prefix: string): CallerHeader[] {
    return lines.flatMap((line) => {
      const split = this.#split(line, "header");
      if (split === undefined) return [];
      return [this.#hidden(split.name, split.value, prefix)];
    });
  }

  /** `Name: Bearer $TOKEN`. */
  expanded(lines: readonly string[]): CallerHeader[] {
    return lines.flatMap((line) => {
      const split = this.#split(line, "header-env");
      if (split === undefined) return [];
      if (!/\$/.test(split.value))
        this.faults.push(
          `header-env: the value of ${split.name} has no $VARIABLE. Write it as '${split.name}: Bearer $TOKEN', or use --header.`,
        );
      return [this.#fromEnvironment(split.name, split.value)];
    });
  }

  table(table: HeaderTable, prefix: string): CallerHeader[] {
    return Object.entries(table).map(([name, value]) => {
      if (typeof value !== "string") {
        const secret = readTextFile(value.file, name, this.faults).trim();
        return this.#hidden(name, `${value.prefix ?? ""}${secret}`, prefix);
      }
      this.#split(`${name}: ${value}`, "headers");
      return /\$/.test(value) ? this.#fromEnvironment(name, value) : this.#hidden(name, value, prefix);
    });
  }

  #split(line: string, flag: string): { name: string; value: string } | undefined {
    const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/s.exec(line);
    const [, name, value] = match ?? [];
    if (name === undefined || value === undefined || /[\r\n\0]/.test(value)) {
      // The line may hold a secret, so only its beginning up to the colon is repeated.
      this.faults.push(`${flag}: "${line.split(":")[0]}…" is not a header. Write it as 'Name: value'.`);
      return undefined;
    }
    return { name, value };
  }

  #hidden(name: string, value: string, prefix: string): CallerHeader {
    const shown = variableOf(name, prefix);
    if (NO_SECRETS.has(name.toLowerCase())) return { name, value, shown: value };
    this.secrets.push({ value, shown });
    // A service may echo the token without its scheme.
    const token = /^[A-Za-z-]+ +(\S{8,})$/.exec(value)?.[1];
    if (token !== undefined) this.secrets.push({ value: token, shown });
    return { name, value, shown };
  }

  #fromEnvironment(name: string, template: string): CallerHeader {
    const value = template.replace(/\$(?:\{(\w+)\}|(\w+))/g, (whole, braced, plain) => {
      const variable: string = braced ?? plain;
      const secret = this.#env[variable];
      if (secret === undefined || secret === "") {
        this.faults.push(`${name}: the variable ${variable} is not set. Export it first.`);
        return whole;
      }
      this.secrets.push({ value: secret, shown: `$${variable}` });
      return secret;
    });
    return { name, value, shown: template };
  }
}

/** A file that can't be read is a fault, and reads as empty. */
export function readTextFile(path: string, name: string, faults: string[]): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    faults.push(`${name}: ${path} can't be read: ${messageOf(error)}`);
    return "";
  }
}
