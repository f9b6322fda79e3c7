/** IFM: how the header is read before anything is compared, and methods that compare otherwise than PUT (4.2 rules, 4.3). */
import { accepting, type Fault, instead, type Plant, requesting } from "../../fault.ts";
import { isWrite, trimBlanks } from "../../service/seams.ts";
import { bare, members } from "./comparison.ts";

/** Compares one of several header lines. */
const oneLine = (of: (lines: string[]) => string | undefined): Plant =>
  instead("ifMatch", (sound, lines) => (lines.length > 1 ? trimBlanks(of(lines) ?? "") : sound));

/** Compares with the blanks around it. */
const untrimmed = (applies: (method: string) => boolean): Plant =>
  instead("ifMatch", (sound, lines, { method }) =>
    applies(method) && lines.length === 1 && sound !== "" && /^ {2}|^ ?\t|[ \t]$/.test(lines[0] ?? "")
      ? lines[0]
      : sound,
  );

export const HEADER_READING_FAULTS: Fault[] = [
  {
    id: "tabs-are-not-blank",
    rule: "IFM-06",
    does: "cuts spaces but not tabs, so that an If-Match of tabs counts as present",
    plant: instead("ifMatch", (sound, lines) =>
      /\t/.test(lines.join("")) ? lines.map((line) => line.replace(/^ +| +$/g, "")).join(", ") : sound,
    ),
  },
  {
    id: "does-not-trim",
    rule: "IFM-08",
    does: "compares the header with the blanks around it",
    plant: untrimmed(() => true),
  },
  {
    id: "takes-first-header-line",
    rule: "IFM-14",
    does: "compares the first of two If-Match lines",
    plant: oneLine(([first]) => first),
  },
  {
    id: "takes-last-header-line",
    rule: "IFM-14",
    does: "compares the last of two If-Match lines",
    plant: oneLine((lines) => lines.at(-1)),
  },
  {
    id: "takes-equal-header-lines",
    rule: "IFM-14",
    does: "takes two equal If-Match lines for one that was sent twice",
    plant: oneLine((lines) => (new Set(lines.map(trimBlanks)).size === 1 ? lines[0] : lines.join())),
  },
  {
    id: "header-name-case-sensitive",
    rule: "IFM-01",
    does: "knows the header as If-Match alone, not as if-match",
    plant: requesting(
      (request) =>
        isWrite(request) &&
        request.headers.some(([name]) => name.toLowerCase() === "if-match" && name !== "If-Match"),
      (request) => ({
        ...request,
        headers: request.headers.filter(([name]) => name === "If-Match" || name.toLowerCase() !== "if-match"),
      }),
    ),
  },
  ...(["PATCH", "DELETE"] as const).flatMap((method): Fault[] =>
    (
      [
        ["star", (sent) => sent === "*"],
        ["weak", (sent, { tag }) => sent === `W/${tag}`],
        ["unquoted", (sent, { tag }) => sent === bare(tag)],
        ["list", (sent, { tag }) => sent.includes(",") && members(sent).includes(tag)],
        ["any-case", (sent, { tag }) => sent.toLowerCase() === tag.toLowerCase()],
        [
          "longer",
          (sent, { tag }) =>
            !sent.includes(",") && sent.length > tag.length && sent.startsWith(tag.slice(0, -1)),
        ],
      ] as [string, Parameters<typeof accepting>[0]][]
    ).map(([what, wrongly]) => ({
      id: `${method.toLowerCase()}-takes-${what}`,
      ...(what === "unquoted" ? { mode: "full" as const } : {}),
      rule: method === "PATCH" ? "IFM-35" : "IFM-45",
      does: `compares rightly on PUT, but on ${method} takes the current tag spelled otherwise (${what})`,
      plant: accepting(
        (sent, customer, request, service) =>
          request.method === method && wrongly(sent, customer, request, service),
      ),
    })),
  ),
  ...(["PATCH", "DELETE"] as const).map(
    (method): Fault => ({
      id: `${method.toLowerCase()}-does-not-trim`,
      rule: method === "PATCH" ? "IFM-35" : "IFM-45",
      does: `compares the header of ${method} with the blanks around it`,
      plant: untrimmed((each) => each === method),
    }),
  ),
];
