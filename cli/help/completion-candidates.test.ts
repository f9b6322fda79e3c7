import { expect, test } from "bun:test";
import { Argument, Command, Option } from "@commander-js/extra-typings";
import { complete } from "./completion-candidates.ts";

function program(): Command {
  const root = new Command("customers")
    .option("--url <url>", "base URL")
    .option("--token-file <path>", "token")
    .option("--profile <name>", "profile")
    .addOption(new Option("-o, --output <format>", "format").choices(["table", "json", "csv"]))
    .addOption(new Option("--token <token>").hideHelp())
    .option("-q, --quiet", "quiet")
    .helpCommand(false);
  root.command("get <id>").description("print one customer").option("--fields <names>", "fields");
  root.command("import <file>").description("rows in").option("--dry-run", "nothing is written");
  root.command("secret", { hidden: true });
  root.addCommand(new Command("completion").addArgument(new Argument("<shell>").choices(["bash", "zsh"])));
  const profile = root.command("profile").description("profiles").helpCommand(false);
  profile.command("use <name>").description("use it");
  profile.command("list").description("list them");
  return root;
}

const KNOWN = {
  "--fields": () => ["id", "name", "email"],
  "--profile": () => ["prod", "test"],
  name: () => ["prod", "test"],
};

test.each([
  ["the commands, but no hidden one", [""], ["get", "import", "completion", "profile"]],
  ["a begun command", ["im"], ["import"]],
  ["a command after options and their values", ["--url", "get", "-q", "pro"], ["profile"]],
  ["commands below a command", ["profile", ""], ["use", "list"]],
  ["options of the command and of the program", ["get", "--f"], ["--fields"]],
  ["the program's options after a command", ["get", "7", "--ou"], ["--output"]],
  ["each option once", ["get", "--h"], ["--help"]],
  ["no hidden option", ["--tok"], ["--token-file"]],
  ["choices of an option", ["get", "--output", ""], ["table", "json", "csv"]],
  ["choices by the short name", ["-o", "j"], ["json"]],
  ["choices after =", ["--output=j"], ["--output=json"]],
  ["choices after = as bash splits it", ["get", "--output", "=", "j"], ["json"]],
  ["all choices after = as bash splits it", ["get", "--output", "="], ["table", "json", "csv"]],
  ["the next element of a list", ["get", "--fields", "name,e"], ["name,email"]],
  ["profile names for the option", ["--profile", "p"], ["prod"]],
  ["profile names for the argument", ["profile", "use", ""], ["prod", "test"]],
  ["choices of an argument", ["completion", ""], ["bash", "zsh"]],
  ["nothing for an id", ["get", ""], []],
  ["nothing for a value nobody knows", ["--url", ""], []],
  ["nothing past the last argument", ["completion", "bash", ""], []],
  ["what an option's value can't be mistaken for", ["--url", "profile", "g"], ["get"]],
])("offers %s", (_, typed, expected) => {
  const completion = complete(program(), typed, KNOWN);
  expect(completion.kind === "words" && completion.candidates.map(({ value }) => value)).toEqual(expected);
});

test.each([[["import", ""]], [["--token-file", ""]], [["import", "--token-file", "x", "y"]]])(
  "leaves paths to the shell: %p",
  (typed) => {
    expect(complete(program(), typed, KNOWN)).toEqual({ kind: "files" });
  },
);

test("a candidate carries its description", () => {
  expect(complete(program(), ["ge"])).toEqual({
    kind: "words",
    candidates: [{ value: "get", description: "print one customer" }],
  });
});
