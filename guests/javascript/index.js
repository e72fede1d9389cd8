// Message consumers for a Longshore host. A consumer:
//
//   import { send } from "longshore";
//
//   export function handle(message) {
//     send("shouts", message.text().toUpperCase());
//   }
//
// The entry file exports one of handle(message), decide(message) and handleBatch(messages): it says which kind of handler
// the module has. What a handler publishes is committed when it has returned, together with the acknowledgement; one that throws
// has published nothing. Each message meets the module as it was after its top level ran, unless the manifest says
// otherwise: keep nothing in variables.
import { get as configured } from "wasi:config/store@0.2.0-draft";
import { open } from "wasi:keyvalue/store@0.2.0-draft";
import { log as hostLog } from "wasi:logging/logging@0.1.0-draft";
import { send as hostSend } from "wasi:messaging/producer@0.2.0-draft";
import { reply as hostReply, request as hostRequest, RequestOptions } from "wasi:messaging/request-reply@0.2.0-draft";
import { Client, Message as HostMessage } from "wasi:messaging/types@0.2.0-draft";
import * as host from "longshore:messaging/delivery@0.1.0";
import * as publisher from "longshore:messaging/publisher@0.1.0";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A message that was delivered or is to be published. Publishing ignores the topic. */
export class Message {
  /**
   * @param {string | Uint8Array} data
   * @param {{topic?: string, contentType?: string, metadata?: [string, string][]}} fields
   */
  constructor(data = "", { topic = "", contentType = "", metadata = [] } = {}) {
    this.data = typeof data === "string" ? encoder.encode(data) : data;
    this.topic = topic; // where a delivered message came from
    this.contentType = contentType; // a media type, or empty
    this.metadata = metadata; // the applications' own
  }

  /** A message that holds a value as JSON. */
  static json(value, fields = {}) {
    return new Message(JSON.stringify(value), { contentType: "application/json", ...fields });
  }

  /** The payload as text; bytes that aren't UTF-8 become U+FFFD. */
  text() {
    return decoder.decode(this.data);
  }

  /** The payload as a value. */
  json() {
    return JSON.parse(this.text());
  }

  /** What a message doesn't say of its delivery; undefined for one that the handler made itself. */
  delivery() {
    const handle = delivered.get(this);
    return handle && host.info(handle);
  }
}

/** The host's messages, by the delivered messages that were read from them. */
const delivered = new Map();
let client;

/** Begins a delivery: reads a message from the host. */
export function begin(handle) {
  const m = new Message(handle.data(), {
    topic: handle.topic() ?? "", contentType: handle.contentType() ?? "", metadata: handle.metadata() ?? [],
  });
  delivered.set(m, handle);
  return m;
}

/** Ends all deliveries: the host takes their handles back. */
export function end() {
  delivered.clear();
  client = undefined;
}

/** An error with a case that the host understands: timeout, connection, permission-denied or other. send throws it, and a handler can. */
export class Failure extends Error {
  constructor(tag, text = "") {
    super(text ? `${tag}: ${text}` : tag);
    this.tag = tag;
    this.text = text;
  }
}

/** Why a publish was refused. The cases with a limit have limit, actual and perhaps retryAfter, which are BigInts. */
export class PublishError extends Error {
  constructor({ tag, val }) {
    const text = typeof val === "string" ? val : val && `${val.actual} is over the limit of ${val.limit}`;
    super(text ? `${tag}: ${text}` : tag);
    this.tag = tag;
    this.limit = val?.limit;
    this.actual = val?.actual;
    this.retryAfter = val?.retryAfter;
  }
}

/** What a handler threw, as the host's error. */
export function failureOf(thrown) {
  if (thrown instanceof Failure) return { tag: thrown.tag, val: thrown.tag === "timeout" ? undefined : thrown.text };
  const nearest = { unauthorized: "permission-denied", timeout: "timeout", unavailable: "connection" };
  const tag = (thrown instanceof PublishError && nearest[thrown.tag]) || "other";
  const text = String(thrown instanceof Error && thrown.message ? thrown.message : thrown);
  return { tag, val: tag === "timeout" ? undefined : text };
}

/** Calls the host; what it throws goes through wrap. */
function caught(wrap, call) {
  try {
    return call();
  } catch (e) {
    throw wrap(e.payload ?? e);
  }
}

/** Calls the host with the delivery's client, which the first such call opens. */
function called(wrap, call) {
  return caught(wrap, () => {
    client ??= Client.connect("default");
    return call();
  });
}

const failure = (e) => (e.tag ? new Failure(e.tag, e.val) : e);
const refusal = (e) => (e.tag ? new PublishError(e) : e);

/** Makes a message of the host's. */
function lower(message) {
  const m = message instanceof Message ? message : new Message(message);
  const handle = new HostMessage(m.data);
  if (m.contentType) handle.setContentType(m.contentType);
  if (m.metadata.length) handle.setMetadata(m.metadata);
  return handle;
}

/** Options with what is missing: undefined is the default. Durations are milliseconds, times Unix milliseconds. */
function lowerOptions(o) {
  const number = (n) => (n === undefined ? undefined : BigInt(n));
  return o && {
    delay: number(o.delay), // invisible until then
    ttl: number(o.ttl), // dead-lettered if undelivered so long after it became visible
    deadline: number(o.deadline), // dead-lettered instead of delivered after this time
    priority: o.priority ?? 0, // higher is delivered first
    idempotencyKey: o.idempotencyKey, // a second publish with this key stores nothing
    orderingKey: o.orderingKey, // messages of one key are handled one at a time, in order
    fence: o.fence && { key: o.fence.key, token: BigInt(o.fence.token) },
    requiredFeatures: o.requiredFeatures ?? [],
    target: o.target, // the only consumer that is given the message
    cause: o.cause, // in handleBatch: the id of the delivery with whose ack the message is committed
    extensions: o.extensions ?? [],
  };
}

/** Publishes a message, a text or bytes. The host checks it now; throws a Failure. */
export function send(topic, message) {
  called(failure, () => hostSend(client, topic, lower(message)));
}

/** Publishes a message with options: returns a receipt {id, duplicate}, or throws a PublishError. */
export function publish(topic, message, options) {
  return called(refusal, () => publisher.publish(client, topic, lower(message), lowerOptions(options)));
}

const lowerBatch = (batch) => batch.map((o) => ({ topic: o.topic, message: lower(o.message), options: lowerOptions(o.options) }));

/**
 * Publishes many messages {topic, message, options} in one call to the host. Returns for each a receipt or a PublishError: some
 * may be refused and the others accepted; see accepted. Throws a PublishError if none was accepted.
 */
export function publishBatch(batch) {
  const results = called(refusal, () => publisher.publishBatch(client, lowerBatch(batch)));
  return results.map((r) => (r.tag === "ok" ? r.val : new PublishError(r.val)));
}

/** Returns the receipts of a batch, or throws the first refusal. */
export function accepted(results) {
  const refused = results.find((r) => r instanceof PublishError);
  if (refused) throw refused;
  return results;
}

/** Publishes many messages, or, if one of them is refused, none. Returns receipts, or throws a PublishError. */
export function publishAtomic(batch) {
  return called(refusal, () => publisher.publishAtomic(client, lowerBatch(batch)));
}

/**
 * Publishes a message at once, and waits for replies to it: returns them, as messages, once as many came as are expected (replies,
 * 1 if undefined), or those that came when the time is over (timeout, in milliseconds; by default that of the call). Throws a
 * Failure: a timeout if there is none. It isn't undone if the handler fails afterwards.
 */
export function request(topic, message, { timeout, replies } = {}) {
  const options = new RequestOptions();
  if (timeout !== undefined) options.setTimeoutMs(timeout);
  if (replies !== undefined) options.setExpectedReplies(replies);
  return called(failure, () => hostRequest(client, topic, lower(message), options)).map(begin);
}

/** Publishes an answer to a delivered message, for whoever waits for it, when the handler has returned. Throws a Failure. */
export function reply(to, message) {
  const handle = delivered.get(to);
  if (!handle) throw new Failure("other", "only a message that is being handled can be replied to");
  caught(failure, () => hostReply(handle, lower(message)));
}

/** Why a bucket didn't do what it was asked. Tags: no-such-store, access-denied, other. */
export class ValueError extends Error {
  constructor({ tag, val }) {
    super(val === undefined ? tag : `${tag}: ${val}`);
    this.tag = tag;
  }
}

const valueError = (e) => (e.tag ? new ValueError(e) : e);

/**
 * A bucket of values, which belong to the consumer's tenant. A handler is one transaction: it reads what it wrote, and what it
 * wrote is stored when it has returned, or not at all. All methods throw a ValueError.
 */
class Bucket {
  #bucket;

  constructor(name) {
    this.#bucket = caught(valueError, () => open(name));
  }

  /** The value under a key, as bytes; undefined if there is none. */
  get(key) {
    return caught(valueError, () => this.#bucket.get(key));
  }

  /** Sets the value under a key, a text or bytes. */
  set(key, value) {
    caught(valueError, () => this.#bucket.set(key, typeof value === "string" ? encoder.encode(value) : value));
  }

  delete(key) {
    caught(valueError, () => this.#bucket.delete(key));
  }

  exists(key) {
    return caught(valueError, () => this.#bucket.exists(key));
  }

  /** All keys, in the order of their bytes. */
  keys() {
    const keys = [];
    let cursor;
    do {
      const page = caught(valueError, () => this.#bucket.listKeys(cursor));
      keys.push(...page.keys);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return keys;
  }
}

/** Opens a bucket that the manifest grants, until the handler returns. Throws a ValueError. */
export const openBucket = (name) => new Bucket(name);

/** What the manifest says for a key under config; undefined if nothing. */
export const config = (key) => configured(key);

/** How many milliseconds are left for this call. */
export const timeLeft = () => Number(host.timeLeft());

/** Whether the host is stopping: finish what is begun, skip the rest. */
export const draining = () => host.draining();

/** Outcomes, for decide and handleBatch. */
export const ack = () => ({ tag: "ack" });
export const retry = (millis) => ({ tag: "retry", val: millis === undefined ? undefined : BigInt(millis) });
export const reject = (why) => ({ tag: "reject", val: String(why) });
export const skip = () => ({ tag: "skip" });

/** Writes a line to the tenant's log. Levels: trace, debug, info, warn, error, critical. */
export function log(level, text) {
  hostLog(level, "", String(text));
}

/** Logs why, and ends the handler as a trap. */
export function trap(why) {
  log("critical", why);
  throw new Trap();
}

/** What no error of the host's is made of. */
export class Trap {}
