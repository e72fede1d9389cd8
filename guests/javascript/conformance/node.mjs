// node.mjs core.wasm world.wit component.wasm message …: makes a component of a core module that imports messaging alone, runs it
// under Node with a host written here, and prints a line for each message that is sent and for each answer.
import { componentEmbed, componentNew, transpile } from "@bytecodealliance/jco";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [, , core, wit, out, ...messages] = process.argv;
const embedded = await componentEmbed({
  binary: new Uint8Array(readFileSync(core)), witSource: readFileSync(wit, "utf8"), world: "guest", stringEncoding: "utf8",
});
const component = await componentNew(embedded, []);
writeFileSync(out, component);

const { files } = await transpile(component, { name: "guest", instantiation: "async" });
const folder = `${out}.files`;
for (const [name, bytes] of Array.isArray(files) ? files : Object.entries(files)) {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), bytes);
}
writeFileSync(join(folder, "package.json"), '{"type":"module"}');

class Client { static connect() { return new Client(); } disconnect() {} }
class Message {
  #data;
  constructor(data) { this.#data = data; }
  topic() { return "in"; }
  contentType() { return undefined; }
  setContentType() {}
  data() { return this.#data; }
  setData(data) { this.#data = data; }
  metadata() { return undefined; }
  addMetadata() {}
  setMetadata() {}
  removeMetadata() {}
}
const text = (bytes) => new TextDecoder().decode(bytes);
const { instantiate } = await import(pathToFileURL(resolve(folder, "guest.js")));
const guest = await instantiate((name) => WebAssembly.compile(readFileSync(join(folder, name))), {
  "wasi:messaging/types": { Client, Message },
  "wasi:messaging/producer": { send: (_, topic, m) => console.log(`send ${topic} ${text(m.data())}`) },
});
for (const m of messages) {
  try {
    guest.incomingHandler.handle(new Message(new TextEncoder().encode(m)));
    console.log("ok");
  } catch (e) {
    console.log(`error ${e.payload?.tag ?? e} ${e.payload?.val ?? ""}`);
  }
}
