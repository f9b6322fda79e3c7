/** `--header 'Name: value'` and `--header-env 'Name: $VARIABLE'` (RFC 9110 §5.1, §5.5). */
import { isReservedHeader } from "../../client/wire/reserved-headers.ts";
import { UsageError } from "../../outcome/failure.ts";

export type Header = {
  name: string;
  value: string;
  /** Masked in every output. */
  secret: boolean;
};

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\s\S]*)$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Names of headers whose values are secrets. */
export const SECRET_NAME = /auth|token|key|secret|cookie|password|credential|session|signature/i;

/** @param option as the messages name it. */
export function parseHeader(text: string, option = "--header"): Header {
  const [, name, value = ""] = HEADER.exec(text) ?? [];
  if (name === undefined) {
    throw new UsageError(
      `${option} takes 'Name: value'`,
      "Quote it for the shell: --header 'X-Tenant: acme'",
    );
  }
  if (!VALUE.test(value))
    throw new UsageError(`${option} '${name}: …' has a character that a header can't carry`);
  if (isReservedHeader(name)) {
    throw new UsageError(
      `${option} '${name}: …' is not allowed: the client sets this header itself`,
      RESERVED_HINT[name.toLowerCase()],
    );
  }
  return { name, value: value.trim(), secret: SECRET_NAME.test(name) };
}

const RESERVED_HINT: Record<string, string> = {
  "if-match": "Use --if-match TAG.",
  "if-none-match": "Use --if-none-match TAG.",
  "idempotency-key": "Use --idempotency-key KEY.",
  "proxy-authorization": "Give the credentials in the proxy's URL: http://user:password@host:port",
};

/** Replaces `$NAME` and `${NAME}` in the value, so that the secret stays out of the process list. */
export function parseHeaderEnv(text: string, env: Readonly<Record<string, string | undefined>>): Header {
  const [, name, template = ""] = HEADER.exec(text) ?? [];
  if (name === undefined) {
    throw new UsageError(
      "--header-env takes 'Name: $VARIABLE'",
      "Quote it with '…', so that the shell leaves the $ alone.",
    );
  }
  const variables = template.match(/\$(?:\{\w+\}|\w+)/g) ?? [];
  if (variables.length === 0) {
    throw new UsageError(
      `--header-env '${name}: …' names no variable`,
      "Quote it with '…', so that the shell leaves the $ alone: --header-env 'X-Api-Key: $API_KEY'",
    );
  }
  const value = template.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced?: string, bare?: string) => {
    const variable = braced ?? bare ?? "";
    const content = env[variable];
    if (content === undefined || content === "") {
      throw new UsageError(`--header-env '${name}: …': the variable ${variable} is not set`);
    }
    return content;
  });
  return { ...parseHeader(`${name}: ${value}`, "--header-env"), secret: true };
}
