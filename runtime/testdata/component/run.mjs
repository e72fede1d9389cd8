// Makes component.wasm of a core module, runs it under Node with a host written here, and prints a line for each message that is sent and for each answer. Arguments: the core module, the WIT file, messages.
import { componentEmbed, componentNew, transpile } from '@bytecodealliance/jco';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , core, wit, ...messages] = process.argv;
const embedded = await componentEmbed({
  binary: new Uint8Array(readFileSync(core)), witSource: readFileSync(wit, 'utf8'), world: 'guest', stringEncoding: 'utf8',
});
const component = await componentNew(embedded, []);
writeFileSync('component.wasm', component);

const { files } = await transpile(component, { name: 'guest', instantiation: 'async' });
const all = Array.isArray(files) ? files : Object.entries(files);
for (const [name, bytes] of all) {
  mkdirSync(dirname(join('out', name)), { recursive: true });
  writeFileSync(join('out', name), bytes);
}
writeFileSync(join('out', 'package.json'), '{"type":"module"}');

const text = (bytes) => new TextDecoder().decode(bytes);
class Client { static connect() { return new Client(); } disconnect() {} }
class Message {
  #data;
  constructor(data) { this.#data = data; }
  topic() { return 'in'; }
  contentType() { return undefined; }
  setContentType() {}
  data() { return this.#data; }
  setData(data) { this.#data = data; }
  metadata() { return undefined; }
  addMetadata() {}
  setMetadata() {}
  removeMetadata() {}
}
const { instantiate } = await import(pathToFileURL(resolve('out', 'guest.js')));
const guest = await instantiate((name) => WebAssembly.compile(readFileSync(join('out', name))), {
  'wasi:messaging/types': { Client, Message },
  'wasi:messaging/producer': { send: (_, topic, m) => console.log(`send ${topic} ${text(m.data())}`) },
});
for (const m of messages) {
  try {
    guest.incomingHandler.handle(new Message(new TextEncoder().encode(m)));
    console.log('ok');
  } catch (e) {
    console.log(`error ${e.payload?.tag ?? e} ${e.payload?.val ?? ''}`);
  }
}
