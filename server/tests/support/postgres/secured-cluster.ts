import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { selfSignedCertificate } from "../http/self-signed-certificate.ts";
import { PostgresCluster } from "./postgres-cluster.ts";

/** A PostgreSQL server with TLS, and two files of certificates. */
type Secured = {
  readonly cluster: PostgresCluster;
  /** Vouches for this server under the name localhost. */
  readonly caFile: string;
  /** Vouches for another server. */
  readonly otherCaFile: string;
};

/** @param directory for the files; PostgreSQL reads them as another user */
export async function startSecuredCluster(directory: string): Promise<Secured> {
  chmodSync(directory, 0o755);
  const { cert, key } = selfSignedCertificate();
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const files = { ssl_cert_file: write("server.pem", cert), ssl_key_file: write("server.key", key) };
  const cluster = await PostgresCluster.start({
    settings: { ssl: "on", listen_addresses: "127.0.0.1,127.0.0.2", ...files },
    ownFiles: Object.values(files),
  });
  return {
    cluster,
    caFile: write("ca.pem", cert),
    otherCaFile: write("other.pem", selfSignedCertificate().cert),
  };
}
