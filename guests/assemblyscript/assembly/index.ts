// Message consumers for a Longshore host. A consumer:
//
//   import { Message, onMessage, send } from "longshore";
//
//   onMessage((m) => send("shouts", Message.of(m.text().toUpperCase())));
//
// Call one of onMessage, onOutcome and onBatch, once, at the top level of the entry file: it says which kind of handler the
// module has. What a handler publishes is committed when it has answered well, together with the acknowledgement. Each message
// meets the module as it was after its top level ran, unless the manifest says otherwise: keep nothing in variables.
//
//   message.ts   messages, and what is known of a delivery
//   publish.ts   send, publish, publishBatch, publishAtomic
//   request.ts   request, reply
//   values.ts    buckets of values, and configuration
//   failure.ts   what can go wrong, and how a handler says so
//   outcome.ts   explicit outcomes
//   handler.ts   onMessage, onOutcome, onBatch
//   log.ts       the tenant's log
//   abi.ts       imports and layouts
//   memory.ts    the memory that the host is given
//   exports.ts   what the module exports; ../transform.mjs names it as the host wants it
export { Message, Pair, Some, some, Fence, Claims, Delivery, timeLeft, draining } from "./message";
export { send, publish, publishBatch, publishAtomic, Options, Outgoing, Receipt, Result, BatchResult, AtomicResult } from "./publish";
export { request, reply, Replies } from "./request";
export { Bucket, ValueError, ValueCase, config } from "./values";
export { Failure, FailureCase, PublishError, PublishCase } from "./failure";
export { Outcome } from "./outcome";
export { onMessage, onOutcome, onBatch, BatchAnswer } from "./handler";
export { log, Level } from "./log";
export { utf8 } from "./memory";
