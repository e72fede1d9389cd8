// Imports, and where the fields of the canonical ABI's types lie, in bytes.

// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[static]client.connect")
export declare function connect(name: usize, length: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[resource-drop]client")
export declare function dropClient(client: u32): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[constructor]message")
export declare function newMessage(data: usize, length: usize): u32;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[resource-drop]message")
export declare function dropMessage(message: u32): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[method]message.topic")
export declare function topic(message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[method]message.content-type")
export declare function contentType(message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[method]message.set-content-type")
export declare function setContentType(message: u32, text: usize, length: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[method]message.data")
export declare function data(message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[method]message.metadata")
export declare function metadata(message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/types@0.2.0-draft", "[method]message.set-metadata")
export declare function setMetadata(message: u32, pairs: usize, count: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/producer@0.2.0-draft", "send")
export declare function send(client: u32, topic: usize, length: usize, message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("longshore:messaging/publisher@0.1.0", "publish")
export declare function publish(args: usize, ret: usize): void;
// @ts-ignore: decorator
@external("longshore:messaging/publisher@0.1.0", "publish-batch")
export declare function publishBatch(client: u32, batch: usize, count: usize, ret: usize): void;
// @ts-ignore: decorator
@external("longshore:messaging/publisher@0.1.0", "publish-atomic")
export declare function publishAtomic(client: u32, batch: usize, count: usize, ret: usize): void;
// @ts-ignore: decorator
@external("longshore:messaging/delivery@0.1.0", "info")
export declare function info(message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("longshore:messaging/delivery@0.1.0", "time-left")
export declare function timeLeft(): u64;
// @ts-ignore: decorator
@external("longshore:messaging/delivery@0.1.0", "draining")
export declare function draining(): u32;
// @ts-ignore: decorator
@external("wasi:logging/logging@0.1.0-draft", "log")
export declare function log(level: u32, context: usize, contextLength: usize, text: usize, length: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/request-reply@0.2.0-draft", "[constructor]request-options")
export declare function newRequestOptions(): u32;
// @ts-ignore: decorator
@external("wasi:messaging/request-reply@0.2.0-draft", "[method]request-options.set-timeout-ms")
export declare function setTimeout(options: u32, millis: u32): void;
// @ts-ignore: decorator
@external("wasi:messaging/request-reply@0.2.0-draft", "[method]request-options.set-expected-replies")
export declare function setExpectedReplies(options: u32, count: u32): void;
// @ts-ignore: decorator
@external("wasi:messaging/request-reply@0.2.0-draft", "request")
export declare function request(client: u32, topic: usize, length: usize, message: u32, some: u32, options: u32, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:messaging/request-reply@0.2.0-draft", "reply")
export declare function reply(to: u32, message: u32, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:keyvalue/store@0.2.0-draft", "open")
export declare function openBucket(name: usize, length: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:keyvalue/store@0.2.0-draft", "[method]bucket.get")
export declare function getValue(bucket: u32, key: usize, length: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:keyvalue/store@0.2.0-draft", "[method]bucket.set")
export declare function setValue(bucket: u32, key: usize, length: usize, value: usize, valueLength: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:keyvalue/store@0.2.0-draft", "[method]bucket.delete")
export declare function deleteValue(bucket: u32, key: usize, length: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:keyvalue/store@0.2.0-draft", "[method]bucket.exists")
export declare function existsValue(bucket: u32, key: usize, length: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:keyvalue/store@0.2.0-draft", "[method]bucket.list-keys")
export declare function listKeys(bucket: u32, some: u32, cursor: u64, ret: usize): void;
// @ts-ignore: decorator
@external("wasi:config/store@0.2.0-draft", "get")
export declare function getConfig(key: usize, length: usize, ret: usize): void;
// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "random_get")
export declare function random(bytes: usize, length: usize): u32;

// Every option and variant begins with one byte: whether it is there, or which case it is.

export const TEXT: usize = 8; // address @0, length @4
export const PAIR: usize = 16; // key @0, value @8
export const OPTION_TEXT: usize = 4; // offset of the text in an option
export const OPTION_U64: usize = 8; // offset of the number in an option
export const RESULT_ERROR: usize = 4; // offset of error, or of a handle, in a result; error: case @0, text @4

export const OPTIONS: usize = 144;
export const OPTIONS_DELAY: usize = 0;
export const OPTIONS_TTL: usize = 16;
export const OPTIONS_DEADLINE: usize = 32;
export const OPTIONS_PRIORITY: usize = 48;
export const OPTIONS_IDEMPOTENCY_KEY: usize = 52;
export const OPTIONS_ORDERING_KEY: usize = 64;
export const OPTIONS_FENCE: usize = 80; // option; fence @8: key @0, token @8
export const OPTIONS_REQUIRED_FEATURES: usize = 104;
export const OPTIONS_TARGET: usize = 112;
export const OPTIONS_CAUSE: usize = 124;
export const OPTIONS_EXTENSIONS: usize = 136;

export const OUTGOING: usize = 168;
export const OUTGOING_TOPIC: usize = 0;
export const OUTGOING_MESSAGE: usize = 8;
export const OUTGOING_OPTIONS: usize = 16; // option; options @8

export const PUBLISH: usize = 168;
export const PUBLISH_CLIENT: usize = 0;
export const PUBLISH_TOPIC: usize = 4;
export const PUBLISH_MESSAGE: usize = 12;
export const PUBLISH_OPTIONS: usize = 16;

export const PUBLISH_ERROR: usize = 8; // offset of the payload, a limit or a text
export const LIMIT_LIMIT: usize = 0;
export const LIMIT_ACTUAL: usize = 8;
export const LIMIT_RETRY_AFTER: usize = 16;
export const LIMIT_EXTENSIONS: usize = 32;

export const RECEIPT: usize = 20;
export const RECEIPT_ID: usize = 0;
export const RECEIPT_DUPLICATE: usize = 8;
export const RECEIPT_EXTENSIONS: usize = 12;
export const RESULT: usize = 56; // of publish; the batch results are as large
export const RESULT_PAYLOAD: usize = 8;

export const INFO: usize = 248; // an option; the record @8
export const INFO_ID: usize = 0;
export const INFO_TOPIC: usize = 8;
export const INFO_ATTEMPT: usize = 16;
export const INFO_MAX_ATTEMPTS: usize = 20;
export const INFO_PREVIOUS_REASON: usize = 24;
export const INFO_GROUP: usize = 36;
export const INFO_PUBLISHED_AT: usize = 48;
export const INFO_EXPIRES_AT: usize = 56;
export const INFO_DEADLINE: usize = 72;
export const INFO_PRIORITY: usize = 88;
export const INFO_IDEMPOTENCY_KEY: usize = 92;
export const INFO_ORDERING_KEY: usize = 104;
export const INFO_FENCE: usize = 120;
export const INFO_PARENT: usize = 144;
export const INFO_HOPS: usize = 156;
export const INFO_CLAIMS: usize = 160; // an option; the record @8
export const INFO_TRACE: usize = 224;
export const INFO_EXTENSIONS: usize = 232;

export const CLAIMS_TENANT: usize = 0;
export const CLAIMS_SUBJECT: usize = 8;
export const CLAIMS_ISSUER: usize = 16;
export const CLAIMS_TOKEN_ID: usize = 24;
export const CLAIMS_ISSUED_AT: usize = 32;
export const CLAIMS_EXTRA: usize = 40;
export const CLAIMS_EXTENSIONS: usize = 48;

export const KEYS: usize = 32; // a result; the page or the error @8
export const KEYS_PAYLOAD: usize = 8;
export const PAGE_CURSOR: usize = 8; // after the list of keys

export const OUTCOME: usize = 24;
export const OUTCOME_PAYLOAD: usize = 8;
