/** What error codes of the system, of TLS and of undici mean for the operator, and what to do about each. */
import errors from "undici/lib/core/errors.js";

type ConnectError = {
  cause: "unreachable" | "tls";
  /** Continues "could not be reached: …". */
  detail: string;
  /** Absent where the hint of the cause fits. */
  hint?: string;
};

const UNTRUSTED = "the server's certificate is signed by an authority that is not trusted here";
const TLS_VERSION = {
  detail: "the server offers no version of TLS that this client accepts (1.2 or later)",
  hint: "Those who run the server must switch TLS 1.2 or 1.3 on.",
};
const NO_CLIENT_CERTIFICATE = {
  detail: "the server does not accept the connection without a client certificate that it trusts",
  hint: "Give the certificate and its key: --cert PATH --key PATH",
};

const WORDS: Record<string, { detail: string; hint?: string }> = {
  ECONNREFUSED: { detail: "the connection was refused" },
  ENOTFOUND: { detail: "the host name is not known" },
  EAI_AGAIN: { detail: "the host name could not be looked up" },
  EHOSTUNREACH: { detail: "there is no route to the host" },
  ENETUNREACH: { detail: "there is no route to the network" },
  DEPTH_ZERO_SELF_SIGNED_CERT: { detail: "the server's certificate is self-signed" },
  SELF_SIGNED_CERT_IN_CHAIN: { detail: UNTRUSTED },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { detail: UNTRUSTED },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: { detail: UNTRUSTED },
  CERT_HAS_EXPIRED: {
    detail: "the server's certificate has expired",
    hint: "Those who run the server must renew it; a clock that is wrong here looks the same.",
  },
  CERT_NOT_YET_VALID: {
    detail: "the server's certificate is not valid yet",
    hint: "A clock that is wrong here looks like this: compare it with the server's.",
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    detail: "the server's certificate is for another host name",
    hint: "Give the server as --url by a name that its certificate has, or have the certificate made for this one.",
  },
  ERR_SSL_WRONG_VERSION_NUMBER: {
    detail: "what answers on this port does not speak TLS",
    hint: "Give the URL with http://, or with the port where the server speaks https.",
  },
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: TLS_VERSION,
  ERR_SSL_UNSUPPORTED_PROTOCOL: TLS_VERSION,
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: {
    detail: "the server speaks HTTP/2 only, and this client speaks HTTP/1.1",
    hint: "Those who run the server must allow HTTP/1.1 beside HTTP/2.",
  },
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: {
    detail: "the server refuses the TLS handshake, as one does that demands a client certificate",
    hint: NO_CLIENT_CERTIFICATE.hint,
  },
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: NO_CLIENT_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: NO_CLIENT_CERTIFICATE,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: NO_CLIENT_CERTIFICATE,
};

const TLS_CODE = /CERT|TLS|SSL|SIGNATURE|ISSUER|EPROTO/;

/** Of an error before a byte of the request left. */
export function connectError(error: unknown): ConnectError {
  const { code, message } = innermost(error);
  const cause = TLS_CODE.test(code) ? "tls" : "unreachable";
  const words = WORDS[code];
  return words === undefined
    ? { cause, detail: message || code }
    : { cause, ...words, detail: `${words.detail} (${code})` };
}

/**
 * Of an error after that. @param origin of the deployment, where no reply began: plain HTTP to a TLS port ends like this. @param named
 * a client certificate is set: without one, TLS 1.3 lets the server close only after the handshake.
 */
export function brokenConnection(
  error: unknown,
  origin: string | undefined,
  named: boolean,
): { detail: string; hint?: string } {
  if (error instanceof errors.HTTPParserError) {
    return {
      detail: "what answers does not speak HTTP/1.1",
      hint: "Check the port in the URL: another service, or a server that speaks HTTP/2 only, answers there.",
    };
  }
  const { code, message } = innermost(error);
  const detail = `the connection broke off (${code === "" ? message : code})`;
  const again = "Something on the way broke the connection: try again.";
  if (origin?.startsWith("http:"))
    return {
      detail,
      hint: `${again} A server that speaks TLS on this port does the same: then give the URL with https://.`,
    };
  if (named || origin === undefined) return { detail };
  return {
    detail,
    hint: `${again} A server that demands a client certificate does the same: then give --cert PATH --key PATH.`,
  };
}

/**
 * undici and Bun wrap errors, and Happy Eyeballs gathers them: the innermost first one says what happened.
 */
function innermost(error: unknown): { message: string; code: string } {
  let current: unknown = error;
  for (let depth = 0; depth < 8; depth += 1) {
    const next = current instanceof AggregateError ? current.errors[0] : (current as Error).cause;
    if (typeof next !== "object" || next === null) break;
    current = next;
  }
  const { message, code } = current as NodeJS.ErrnoException;
  return { message: message ?? String(error), code: String(code ?? "") };
}
