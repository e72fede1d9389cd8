#!/usr/bin/env node
// longshore-build main.js -o main.wasm …: bundles consumers and makes a component of each. The second of one command takes a
// third of the time of the first.
import { componentize } from "@bytecodealliance/componentize-js";
import { build } from "esbuild";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const sdk = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const kinds = { handle: "incomingHandler", decide: "outcomeHandler", handleBatch: "batchHandler" };
const worlds = { handle: "handle", decide: "decide", handleBatch: "handle-batch" };

/** Bundles a source into one text. */
async function bundle(options) {
  const result = await build({
    bundle: true, format: "esm", write: false, metafile: true, logLevel: "error", target: "es2022",
    external: ["wasi:*", "longshore:*"], alias: { longshore: sdk }, ...options,
  });
  return result;
}

function fail(why) {
  console.error(why);
  process.exit(1);
}

/** Makes the component of one consumer. */
async function make(entry, out) {
  const { metafile } = await bundle({ entryPoints: [entry] });
  const exported = Object.values(metafile.outputs)[0].exports.filter((name) => name in kinds);
  if (exported.length !== 1) fail(`${entry}: export one of ${Object.keys(kinds).join(", ")}; it exports ${exported.length} of them`);
  const [kind] = exported;
  const contents = `import { ${kind} } from ${JSON.stringify(resolve(entry))};
import { ${kind} as lift } from ${JSON.stringify(resolve(sdk, "entry.js"))};
export const ${kinds[kind]} = lift(${kind});`;
  const source = (await bundle({ stdin: { contents, resolveDir: process.cwd() } })).outputFiles[0].text;
  const { component } = await componentize(source, { witPath: resolve(sdk, "wit"), worldName: worlds[kind] });
  await mkdir(dirname(resolve(out)), { recursive: true });
  await writeFile(out, component);
}

const args = process.argv.slice(2);
if (!args.length) args.push(""); // for which there is the usage
try {
  while (args.length) {
    const [entry, flag, out] = args.splice(0, 3);
    if (!entry || flag !== "-o" || !out) fail("usage: longshore-build main.js -o main.wasm …");
    await make(entry, out);
  }
} catch (e) {
  fail(e.errors ? "" : e.stack); // esbuild has printed its own
}
