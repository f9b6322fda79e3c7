/** `import TEXT from "….md" with { type: "text" }`: the text is in the compiled program. */
declare module "*.md" {
  const text: string;
  export default text;
}
