/** ATM: check and update are one step. */
import type { RuleText } from "./legacy.ts";

export const atm = [
  {
    id: "ATM-01",
    title: "Of concurrent PUTs with one tag exactly one is accepted",
    level: "MUST",
    section: "4.2, 1.3",
    rule: "Check and update are atomic: the accepted writes form a line from tag to tag, without fork, without a tag twice, and the final state is the last winner's.",
    impact: "Lost updates: two people save, both see success, one change is gone.",
    needs: ["write"],
  },
  {
    id: "ATM-02",
    title: "The losers of a race are answered 412",
    level: "MUST",
    section: "4.2, 7 rule 1",
    rule: "A write that lost is a stale write: 412 with the token of now, never 409, never the token that it sent itself, and never left without an answer. A 502, 503 or 504 now and then is a warning.",
    impact: "Clients cannot tell a conflict from a failure, and do not retry or retry with a dead token.",
    needs: ["write"],
  },
  {
    id: "ATM-03",
    title: "Of concurrent PATCHes of different fields, and of PATCH and PUT, exactly one is accepted",
    level: "MUST",
    section: "4.2, 4.3",
    rule: "PATCH is not exempt because it is partial: with one tag, one winner, and only what the winner named is changed; the losers are told 412.",
    impact: "Two partial updates merge into a customer that nobody has seen or approved.",
    needs: ["write", "patch"],
  },
  {
    id: "ATM-04",
    title: "Of a PUT and a DELETE with one tag at most one is accepted",
    level: "MUST",
    section: "4.2, 4.3",
    rule: "Both carry the same token; after the first accepted one the other is refused as stale or as missing, and the final state is the winner's.",
    impact: "A customer that somebody has just saved vanishes, or a deleted one comes back.",
    needs: ["write", "create", "delete"],
  },
  {
    id: "ATM-05",
    title: "A slow body does not outlive its precondition",
    level: "MUST",
    section: "4.2",
    rule: "A PUT whose headers came before, and whose body came after, another accepted write is stale: the update applies only where the stored version still equals the compared one.",
    impact: "Each client on a slow line overwrites what others saved meanwhile.",
    needs: ["write"],
  },
  {
    id: "ATM-06",
    title: "Tag and representation of a read belong together",
    level: "MUST",
    section: "2.4.1, 1.2",
    rule: "While others write, a read never shows the tag of one version with the fields of another.",
    impact:
      "A client merges on old values with a new tag, and its write is accepted: a lost update with all rules kept.",
    needs: ["write"],
  },
  {
    id: "ATM-07",
    title: "Of concurrent DELETEs with one tag exactly one is accepted",
    level: "SHOULD",
    section: "4.2, 4.3",
    rule: "The first accepted DELETE ends the token; the others find a missing customer or a stale token.",
    impact: "Callers that act on a successful DELETE (refunds, mails) act twice.",
    needs: ["write", "create", "delete"],
  },
] as const satisfies readonly RuleText[];
