/** A thread that opens each database that it is sent, and answers what came of it. */
import { openDatabase } from "../../../storage/sqlite/files/sqlite-database.ts";

declare const self: Worker;

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  try {
    openDatabase(path).close();
    self.postMessage("opened");
  } catch (error) {
    self.postMessage(String(error));
  }
};
self.postMessage("ready");
