import * as abi from "./abi";
import { Failure, putFailure } from "./failure";
import { lend, putList } from "./memory";
import { Message, takeMessage } from "./message";
import { Outcome } from "./outcome";
import { disconnect } from "./publish";

/** What a batch handler answers. */
export class BatchAnswer {
  /** The outcomes go by index; the last ones, if they are missing, are skip. A failure retries, and charges, all. */
  constructor(public outcomes: Outcome[], public failure: Failure | null = null) {}
}

let messageHandler: ((m: Message) => Failure | null) | null = null;
let outcomeHandler: ((m: Message) => Outcome) | null = null;
let batchHandler: ((messages: Message[]) => BatchAnswer) | null = null;

/** Makes h the module's handler: it is called with each message, and answers null or why it failed. */
export function onMessage(h: (m: Message) => Failure | null): void {
  messageHandler = h;
}

/** Makes h the module's handler: it is called with each message, and answers what becomes of it. */
export function onOutcome(h: (m: Message) => Outcome): void {
  outcomeHandler = h;
}

/** Makes h the module's handler: it is called with batches of messages. */
export function onBatch(h: (messages: Message[]) => BatchAnswer): void {
  batchHandler = h;
}

/** Calls the handler; returns the address of a result<_, error>. */
export function callMessage(handle: u32): usize {
  const failure = messageHandler!(takeMessage(handle));
  abi.dropMessage(handle);
  disconnect();
  const answer = lend(16);
  if (failure) {
    store<u8>(answer, 1);
    putFailure(answer + abi.RESULT_ERROR, failure);
  }
  return answer;
}

/** Calls the handler; returns the address of an outcome. */
export function callOutcome(handle: u32): usize {
  const outcome = outcomeHandler!(takeMessage(handle));
  abi.dropMessage(handle);
  disconnect();
  const answer = lend(abi.OUTCOME);
  outcome.put(answer);
  return answer;
}

/** Calls the handler with the messages of a list of handles; returns the address of a result<list<outcome>, error>. */
export function callBatch(handles: usize, count: usize): usize {
  const messages: Message[] = [];
  for (let i: usize = 0; i < count; i++) messages.push(takeMessage(load<u32>(handles + 4 * i)));
  if (count > 0) heap.free(handles);
  const decided = batchHandler!(messages);
  for (let i = 0; i < messages.length; i++) abi.dropMessage(messages[i].handle);
  disconnect();
  const answer = lend(16);
  const failure = decided.failure;
  if (failure) {
    store<u8>(answer, 1);
    putFailure(answer + abi.RESULT_ERROR, failure);
    return answer;
  }
  const outcomes = decided.outcomes;
  const list = lend(<usize>outcomes.length * abi.OUTCOME);
  for (let i = 0; i < outcomes.length; i++) outcomes[i].put(list + <usize>i * abi.OUTCOME);
  putList(answer + abi.RESULT_ERROR, list, outcomes.length);
  return answer;
}
