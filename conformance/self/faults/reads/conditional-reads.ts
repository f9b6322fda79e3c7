/** Conditions on reads (RFC 9110 13), looked at too early or in the wrong place, and the bodies of other media types. */
import type { Fault } from "../../fault.ts";
import { headerLines } from "../../service/http-socket.ts";
import { type Act, by, object, on, projectedRead, read, type When, write } from "../../turn.ts";

/** The customer was deleted; its row is still there. */
const isDeleted: When = ({ before }) => before?.removed === true;

export const sends =
  (name: string, value?: RegExp): When =>
  ({ request }) =>
    headerLines(request, name).some((line) => value === undefined || value.test(line));

/** If-None-Match holds the tag that the customer has, or had before it was deleted. */
const confirms: When = ({ request, before }) =>
  before !== undefined &&
  headerLines(request, "if-none-match").some((line) =>
    [before.tag, before.formerTags.at(-1)].includes(line.trim()),
  );

const notModified: Act = ({ before }) => ({ status: 304, headers: [["ETag", before?.tag ?? ""]] });

export const wholeCustomer: Act = ({ before, service: { deployment } }) =>
  object(
    {
      [deployment.members.id]: before?.id,
      [deployment.members.name]: before?.name,
      [deployment.members.email]: before?.email,
    },
    before?.tag,
  );

export const CONDITIONAL_READ_FAULTS: Fault[] = [
  {
    id: "confirmed-before-fields-are-read",
    rule: "FLD-03",
    does: "compares If-None-Match in a filter before the handler that looks at the field names",
    deployment: { conditionalReads: true },
    plant: on(read(400), confirms).answers(notModified),
  },
  {
    id: "modified-since-never-asked",
    rule: "ETG-16",
    does: "answers 304 wherever If-Modified-Since comes, since it keeps no time of the last change",
    deployment: { conditionalReads: true },
    plant: on(read(), sends("if-modified-since")).answers(notModified),
  },
  {
    id: "deleted-customer-confirmed",
    rule: "ORD-05",
    does: "answers If-None-Match from a table of tags from which a DELETE takes nothing",
    deployment: { conditionalReads: true },
    plant: on(read(404), isDeleted, confirms).answers(notModified),
  },
  {
    id: "deleted-customer-read-by-limited",
    rule: "ORD-05",
    does: "looks for the mark of a deleted customer in the query of the main role alone",
    plant: on(read(404), isDeleted, by("limited")).answers(({ before, service: { deployment } }) =>
      object({ [deployment.members.name]: before?.name }, before?.tag),
    ),
  },
  {
    id: "deleted-customer-read-by-capitals",
    rule: "ORD-05",
    does: "looks for the mark of a deleted customer where the id is written as it was given out",
    plant: on(read(404), isDeleted, ({ request }) =>
      /\/customers\/[^/]*[A-F][^/]*$/.test(request.path),
    ).answers(wholeCustomer),
  },
  {
    id: "limited-delete-not-applied",
    rule: "IFM-40",
    does: "answers the DELETE of a limited caller with 204, although its role deletes no row",
    plant: on(write("DELETE"), by("limited")).answers(({ before, customer, reply }) => {
      if (customer !== undefined && before !== undefined) Object.assign(customer, before);
      return reply;
    }),
  },
  {
    id: "fields-forgotten-in-xml",
    rule: "FLD-01",
    does: "writes the whole customer where another media type than JSON is accepted",
    plant: on(projectedRead, sends("accept", /xml/)).answers(wholeCustomer),
  },
  {
    id: "page-for-people-shows-all",
    rule: "FLD-01",
    does: "shows the whole customer on the page for people that Accept: text/html gets, whatever fields are asked for",
    plant: on(projectedRead, sends("accept", /text\/html/)).answers(({ before, reply }) => ({
      ...reply,
      headers: [...reply.headers.filter(([name]) => name !== "Content-Type"), ["Content-Type", "text/html"]],
      body: `<p>${before?.name} ${before?.email}</p>`,
    })),
  },
];
