// A transform of the AssemblyScript compiler: it adds the file with the module's exports to the consumer's, and gives them the
// names that a Longshore host looks for, which aren't identifiers. The compiler sets the fields of the class.

const handlers = {
  onMessage: "wasi:messaging/incoming-handler@0.2.0-draft#handle",
  onOutcome: "longshore:messaging/outcome-handler@0.1.0#handle",
  onBatch: "longshore:messaging/batch-handler@0.1.0#handle-batch",
};

export default class {
  afterParse(parser) {
    parser.parseFile('export * from "~lib/longshore/assembly/exports";', "longshore-exports.ts", true);
  }

  afterCompile(module) {
    const used = Object.keys(handlers).filter((h) => module.getFunction(`~lib/longshore/assembly/handler/${h}`));
    if (used.length !== 1) {
      throw new Error(`call one of ${Object.keys(handlers).join(", ")}, once, at the top level; this module calls ${used.length}`);
    }
    for (const h of Object.keys(handlers)) {
      if (h === used[0]) this.rename(module, `longshore_${h}`, handlers[h]);
      else module.removeExport(`longshore_${h}`);
    }
    this.rename(module, "longshore_post", `cabi_post_${handlers[used[0]]}`);
  }

  rename(module, from, to) {
    const { value } = this.binaryen.getExportInfo(module.getExport(from));
    module.addFunctionExport(value, to);
    module.removeExport(from);
  }
}
