/** MET: the two counters. */
import type { RuleText } from "./legacy.ts";

const blind = "The rollout of the precondition is steered by numbers that are wrong.";

export const met = [
  {
    id: "MET-01",
    title: "http_precondition_required_total counts every 428 on PUT",
    level: "MUST",
    section: "7 rule 4",
    rule: "The counter exists and rises by one for each PUT answered 428, header absent or blank.",
    impact: blind,
    needs: ["metrics", "write"],
  },
  {
    id: "MET-02",
    title: "http_precondition_failed_total counts every 412 on PUT",
    level: "MUST",
    section: "7 rule 4",
    rule: "The counter exists and rises by one for each PUT answered 412, stale or malformed.",
    impact: blind,
    needs: ["metrics", "write"],
  },
  {
    id: "MET-03",
    title: "428 does not move the counter of 412",
    level: "MUST",
    section: "7 rule 4",
    rule: "http_precondition_failed_total counts 412 responses and nothing else.",
    impact: blind,
    needs: ["metrics", "write"],
  },
  {
    id: "MET-04",
    title: "412 does not move the counter of 428",
    level: "MUST",
    section: "7 rule 4",
    rule: "http_precondition_required_total counts 428 responses and nothing else.",
    impact: blind,
    needs: ["metrics", "write"],
  },
  {
    id: "MET-05",
    title: "Reads, accepted writes and 404 move neither counter",
    level: "MUST",
    section: "7 rule 4",
    rule: "Only the refusals 428 and 412 are counted.",
    impact: blind,
    needs: ["metrics", "write"],
  },
  {
    id: "MET-06",
    title: "The refusals of PATCH are counted",
    level: "MUST",
    section: "7 rule 4, 4.3",
    rule: "The counters count 428 and 412 responses, whatever the method.",
    impact: blind,
    needs: ["metrics", "write", "patch"],
  },
  {
    id: "MET-07",
    title: "The refusals of DELETE are counted",
    level: "MUST",
    section: "7 rule 4, 4.3",
    rule: "The counters count 428 and 412 responses, whatever the method.",
    impact: blind,
    needs: ["metrics", "write", "create", "delete"],
  },
  {
    id: "MET-08",
    title: "The counters are counters and never fall",
    level: "MUST",
    section: "7 rule 4",
    rule: "Declared as a counter where a type is declared; over the run no series falls or vanishes.",
    impact: "Rates and alerts over them go wrong.",
    needs: ["metrics", "write"],
  },
] as const satisfies readonly RuleText[];
