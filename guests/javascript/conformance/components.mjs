// components.mjs world core.wasm component.wasm …: makes a component of each core module, of that world of the SDK's, as the
// tools of any language do it. A module that doesn't fit the world is refused.
import { componentEmbed, componentNew, preview1AdapterReactorPath } from "@bytecodealliance/jco";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const wit = join("node_modules", "longshore", "wit");
const text = (file) => readFileSync(file, "utf8");
const bytes = (file) => new Uint8Array(readFileSync(file));

// The tools see no folders. In one text, the packages beside the first have braces.
const deps = readdirSync(join(wit, "deps"), { recursive: true }).filter((name) => name.endsWith(".wit"));
const packages = deps.map((name) => text(join(wit, "deps", name)).replace(/^(package .*);$/m, "$1 {") + "}");
const witSource = [text(join(wit, "worlds.wit")), ...packages].join("\n");

const adapter = bytes(preview1AdapterReactorPath());
const args = process.argv.slice(2);
while (args.length) {
  const [world, core, out] = args.splice(0, 3);
  const embedded = await componentEmbed({ binary: bytes(core), witSource, world, stringEncoding: "utf8" });
  writeFileSync(out, await componentNew(embedded, [["wasi_snapshot_preview1", adapter]]));
}
