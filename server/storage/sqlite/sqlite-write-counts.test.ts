import { afterAll } from "bun:test";
import { temporaryDirectory } from "../../tests/support/service/server-process.ts";
import { writeCountStoreContract } from "../write-counts/write-count-store.contract.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const directory = temporaryDirectory();
afterAll(directory.remove);

await writeCountStoreContract("SQLite", () =>
  SqliteStorage.open(`${directory.path}/customers.db`, { chooseWhere: () => "thread" }),
);
