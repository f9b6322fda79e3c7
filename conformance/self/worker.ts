/** One of the threads that share the matrix: takes a line, answers its verdict. */
import type { Verdict } from "./case.ts";
import { type Line, runLine } from "./matrix.ts";

declare const self: Worker;

export type Answer = { line: Line; verdict: Verdict } | { crashed: string };

self.onmessage = async ({ data }: MessageEvent<Line>) => {
  let answer: Answer;
  try {
    answer = { line: data, verdict: await runLine(data) };
  } catch (error) {
    answer = { crashed: `${data.kind} ${data.id}: ${error instanceof Error ? error.stack : String(error)}` };
  }
  postMessage(answer);
};
