#!/usr/bin/env node
// longshore-build main.js -o main.wasm: bundles a consumer and makes a component of it.
import { componentize } from "@bytecodealliance/componentize-js";
import { build } from "esbuild";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const sdk = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const kinds = { handle: "incomingHandler", decide: "outcomeHandler", handleBatch: "batchHandler" };
const worlds = { handle: "handle", decide: "decide", handleBatch: "handle-batch" };

const [entry, flag, out] = process.argv.slice(2);
if (!entry || flag !== "-o" || !out) fail("usage: longshore-build main.js -o main.wasm");

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

try {
  const { metafile } = await bundle({ entryPoints: [entry] });
  const exported = Object.values(metafile.outputs)[0].exports.filter((name) => name in kinds);
  if (exported.length !== 1) fail(`${entry}: export one of ${Object.keys(kinds).join(", ")}; it exports ${exported.length} of them`);
  const [kind] = exported;
  const contents = `import { ${kind} } from ${JSON.stringify(resolve(entry))};
import { ${kind} as lift } from ${JSON.stringify(resolve(sdk, "entry.js"))};
export const ${kinds[kind]} = lift(${kind});`;
  const source = (await bundle({ stdin: { contents, resolveDir: process.cwd() } })).outputFiles[0].text;
  const { component } = await componentize(source, {
    witPath: resolve(sdk, "wit"), worldName: worlds[kind], disableFeatures: ["stdio", "random", "clocks", "http", "fetch-event"],
  });
  await mkdir(dirname(resolve(out)), { recursive: true });
  await writeFile(out, component);
} catch (e) {
  fail(e.errors ? "" : e.stack); // esbuild has printed its own
}
