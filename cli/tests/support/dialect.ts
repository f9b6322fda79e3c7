/**
 * What deployments of the specification may do differently (its "not shown" places), as one value.
 * A test server speaks one dialect; the client must cope with every one.
 */
export type Dialect = {
  /** In front of `/customers`, without a slash at the end. */
  basePath: string;
  /** Member names of a representation and of a request body. */
  names: { id: string; name: string; email: string; status: string };
  /** The header that carries the credentials, and its value for the test server's one caller. */
  credentials: { header: string; value: string };
  /** Formats the entity-tag of the version with this number. */
  tag: (version: number) => string;
  /** What the server stores of an address. */
  storedEmail: (email: string) => string;
  /** What a PUT or PATCH answers when it was not asked for a representation. */
  writeStatus: 200 | 204;
  patch: boolean;
  /** Lists, searches and creates as ours does; the specification shows none of these. */
  collection: boolean;
  idempotencyKeys: boolean;
  /** Shows who changed a customer; an addition of this project's service. */
  history: boolean;
  problemDetails: boolean;
  /** What a reading shows where no `fields` are named (4.1, rule 3), besides extraMembers. */
  defaultFields: ("id" | "name" | "email" | "status")[];
  /** Members that every full representation carries besides the four, as JSON text; "" for none. */
  extraMembers: string;
};

export const TOKEN = "cst_TestTokenTestTokenTestTokenTestTokenTest";

export const OURS: Dialect = {
  basePath: "",
  names: { id: "id", name: "name", email: "email", status: "status" },
  credentials: { header: "authorization", value: `Bearer ${TOKEN}` },
  tag: (version) => `"${Buffer.from(`version-${String(version).padStart(4, "0")}`).toString("base64url")}"`,
  storedEmail: (email) => email,
  writeStatus: 204,
  patch: true,
  collection: true,
  idempotencyKeys: true,
  history: true,
  problemDetails: true,
  defaultFields: ["id", "name", "email"],
  extraMembers: "",
};

/** As unlike ours as the specification allows. */
export const UNLIKE_OURS: Dialect = {
  basePath: "/crm/api/v3",
  names: { id: "Id", name: "Name", email: "Email", status: "Status" },
  credentials: { header: "x-api-key", value: "key-of-another-deployment" },
  tag: (version) => `"rev,${version}/AAA, b+c=="`,
  storedEmail: (email) => email,
  writeStatus: 200,
  patch: false,
  collection: true,
  idempotencyKeys: false,
  history: false,
  problemDetails: false,
  defaultFields: ["id", "name", "email", "status"],
  extraMembers: '"Balance":9007199254740993,"Rate":1.10,"10":"ten","2":[1E5,-0,{"__proto__":null}]',
};
