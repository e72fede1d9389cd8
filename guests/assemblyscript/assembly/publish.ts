import * as abi from "./abi";
import { Failure, PublishError, refusalOf, takeFailure, takePublishError } from "./failure";
import { lend, putList, putOptionNumber, putOptionText, putPairs, putText, takePairs, takeText } from "./memory";
import { Fence, Message, Pair, putMessage, Some } from "./message";

/** How a message is published. The default is: now, to anybody, once. Durations are milliseconds, times Unix milliseconds. */
export class Options {
  /** Invisible until then. */
  delay: Some | null = null;
  /** Dead-lettered if undelivered so long after it became visible. */
  ttl: Some | null = null;
  /** Dead-lettered instead of delivered after this time. */
  deadline: Some | null = null;
  /** Higher is delivered first. */
  priority: u8 = 0;
  /** A second publish with this key stores nothing. */
  idempotencyKey: string | null = null;
  /** Messages of one key are handled one at a time, in order. */
  orderingKey: string | null = null;
  /** Drops a message that is older than another of the key. */
  fence: Fence | null = null;
  /** What a consumer must declare to be given the message. */
  requiredFeatures: string[] = [];
  /** The only consumer that is given the message. */
  target: string | null = null;
  /** In a batch handler: the id of the delivery with whose ack the message is committed. */
  cause: string | null = null;
  extensions: Pair[] = [];
}

/** One message of a batch. It is only read: it may be in a batch twice, and may be the delivered message. */
export class Outgoing {
  constructor(public topic: string, public message: Message, public options: Options | null = null) {}
}

/** What the host gave for a message. */
export class Receipt {
  /** duplicate: the idempotency key was used before. */
  constructor(public id: string, public duplicate: bool, public extensions: Pair[]) {}
}

/** What became of a message: one of the two is null. */
export class Result {
  constructor(public receipt: Receipt | null, public error: PublishError | null) {}
}

/** What became of a batch: with an error none was accepted, else there is a result for each message. */
export class BatchResult {
  constructor(public results: Result[], public error: PublishError | null) {}

  /** The first refusal as a handler's failure, or null if all were accepted. */
  failure(): Failure | null {
    if (this.error) return this.error!.toFailure();
    for (let i = 0; i < this.results.length; i++) {
      const e = this.results[i].error;
      if (e) return e.toFailure();
    }
    return null;
  }
}

/** What became of a batch that is published all or nothing. */
export class AtomicResult {
  constructor(public receipts: Receipt[], public error: PublishError | null) {}
}

/** The delivery's client, or 0. */
export let client: u32 = 0;

/** Opens the delivery's client at the first publish. */
export function connect(): Failure | null {
  if (client != 0) return null;
  const ret = lend(16);
  const name = lend(abi.TEXT);
  putText(name, "default");
  abi.connect(load<usize>(name), load<usize>(name, 4), ret);
  if (load<u8>(ret)) return takeFailure(ret + abi.RESULT_ERROR);
  client = load<u32>(ret + abi.RESULT_ERROR);
  return null;
}

/** Closes the delivery's client. */
export function disconnect(): void {
  if (client != 0) abi.dropClient(client);
  client = 0;
}

/** Publishes a message when the handler has answered well. The host checks it now: null, or what is wrong. */
export function send(topic: string, message: Message): Failure | null {
  const failure = connect();
  if (failure) return failure;
  const ret = lend(16);
  const name = lend(abi.TEXT);
  putText(name, topic);
  abi.send(client, load<usize>(name), load<usize>(name, 4), putMessage(message), ret);
  return load<u8>(ret) ? takeFailure(ret + abi.RESULT_ERROR) : null;
}

/** Publishes a message with options. It says more than send: an id, or why not. */
export function publish(topic: string, message: Message, options: Options | null = null): Result {
  const failure = connect();
  if (failure) return new Result(null, refusalOf(failure));
  const args = lend(abi.PUBLISH), ret = lend(abi.RESULT);
  const handle = putMessage(message);
  store<u32>(args + abi.PUBLISH_CLIENT, client);
  putText(args + abi.PUBLISH_TOPIC, topic);
  store<u32>(args + abi.PUBLISH_MESSAGE, handle);
  putOptions(args + abi.PUBLISH_OPTIONS, options);
  abi.publish(args, ret);
  abi.dropMessage(handle);
  return takeResult(ret);
}

/** Publishes many messages in one call to the host. Some may be refused and the others accepted: see BatchResult. */
export function publishBatch(batch: Outgoing[]): BatchResult {
  const failure = connect();
  if (failure) return new BatchResult([], refusalOf(failure));
  const list = putBatch(batch), ret = lend(abi.RESULT);
  abi.publishBatch(client, list, batch.length, ret);
  dropBatch(list, batch.length);
  if (load<u8>(ret)) return new BatchResult([], takePublishError(ret + abi.RESULT_PAYLOAD));
  const items = load<usize>(ret + abi.RESULT_PAYLOAD), count = load<usize>(ret + abi.RESULT_PAYLOAD, 4);
  const results: Result[] = [];
  for (let i: usize = 0; i < count; i++) results.push(takeResult(items + i * abi.RESULT));
  if (count > 0) heap.free(items);
  return new BatchResult(results, null);
}

/** Publishes many messages, or, if one of them is refused, none. */
export function publishAtomic(batch: Outgoing[]): AtomicResult {
  const failure = connect();
  if (failure) return new AtomicResult([], refusalOf(failure));
  const list = putBatch(batch), ret = lend(abi.RESULT);
  abi.publishAtomic(client, list, batch.length, ret);
  dropBatch(list, batch.length);
  if (load<u8>(ret)) return new AtomicResult([], takePublishError(ret + abi.RESULT_PAYLOAD));
  const items = load<usize>(ret + abi.RESULT_PAYLOAD), count = load<usize>(ret + abi.RESULT_PAYLOAD, 4);
  const receipts: Receipt[] = [];
  for (let i: usize = 0; i < count; i++) receipts.push(takeReceipt(items + i * abi.RECEIPT));
  if (count > 0) heap.free(items);
  return new AtomicResult(receipts, null);
}

function takeResult(at: usize): Result {
  const payload = at + abi.RESULT_PAYLOAD;
  return load<u8>(at) ? new Result(null, takePublishError(payload)) : new Result(takeReceipt(payload), null);
}

function takeReceipt(at: usize): Receipt {
  const id = takeText(at + abi.RECEIPT_ID), extensions = takePairs(at + abi.RECEIPT_EXTENSIONS);
  return new Receipt(id, load<u8>(at + abi.RECEIPT_DUPLICATE) != 0, extensions);
}

function putBatch(batch: Outgoing[]): usize {
  const list = lend(<usize>batch.length * abi.OUTGOING);
  for (let i = 0; i < batch.length; i++) {
    const at = list + <usize>i * abi.OUTGOING;
    putText(at + abi.OUTGOING_TOPIC, batch[i].topic);
    store<u32>(at + abi.OUTGOING_MESSAGE, putMessage(batch[i].message));
    putOptions(at + abi.OUTGOING_OPTIONS, batch[i].options);
  }
  return list;
}

function dropBatch(list: usize, count: i32): void {
  for (let i = 0; i < count; i++) abi.dropMessage(load<u32>(list + <usize>i * abi.OUTGOING + abi.OUTGOING_MESSAGE));
}

/** Writes an option of publish options. */
function putOptions(at: usize, options: Options | null): void {
  if (!options) return;
  store<u8>(at, 1);
  at += 8;
  putOptionNumber(at + abi.OPTIONS_DELAY, options.delay);
  putOptionNumber(at + abi.OPTIONS_TTL, options.ttl);
  putOptionNumber(at + abi.OPTIONS_DEADLINE, options.deadline);
  store<u8>(at + abi.OPTIONS_PRIORITY, options.priority);
  putOptionText(at + abi.OPTIONS_IDEMPOTENCY_KEY, options.idempotencyKey);
  putOptionText(at + abi.OPTIONS_ORDERING_KEY, options.orderingKey);
  const fence = options.fence;
  if (fence) {
    store<u8>(at + abi.OPTIONS_FENCE, 1);
    putText(at + abi.OPTIONS_FENCE + 8, fence.key);
    store<u64>(at + abi.OPTIONS_FENCE + 16, fence.token);
  }
  const features = options.requiredFeatures;
  const list = lend(<usize>features.length * abi.TEXT);
  for (let i = 0; i < features.length; i++) putText(list + <usize>i * abi.TEXT, features[i]);
  putList(at + abi.OPTIONS_REQUIRED_FEATURES, list, features.length);
  putOptionText(at + abi.OPTIONS_TARGET, options.target);
  putOptionText(at + abi.OPTIONS_CAUSE, options.cause);
  putPairs(at + abi.OPTIONS_EXTENSIONS, options.extensions);
}
