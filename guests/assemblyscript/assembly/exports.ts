// What the module exports. transform.mjs adds this file to the consumer's, and keeps the handler that is in use.
import { callBatch, callMessage, callOutcome } from "./handler";
import { realloc, release } from "./memory";

export function cabi_realloc(old: usize, oldSize: usize, align: usize, size: usize): usize {
  return realloc(old, oldSize, align, size);
}

export function longshore_onMessage(message: u32): usize {
  return callMessage(message);
}

export function longshore_onOutcome(message: u32): usize {
  return callOutcome(message);
}

export function longshore_onBatch(messages: usize, count: usize): usize {
  return callBatch(messages, count);
}

export function longshore_post(answer: usize): void {
  release();
}
