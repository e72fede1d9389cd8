// What the module exports: the handler of the consumer, under the name of its kind.
import { begin, end, failureOf, Trap } from "./index.js";

/** Runs a handler; what it throws becomes the host's error. */
function run(handles, call) {
  try {
    return call(handles.map(begin));
  } catch (e) {
    // A case that there isn't can't be told to the host: it ends the module.
    throw e instanceof Trap ? { tag: "trap" } : failureOf(e);
  } finally {
    end();
  }
}

export const handle = (h) => ({
  handle: (m) => run([m], ([message]) => void h(message)),
});

export const decide = (h) => ({
  handle: (m) => run([m], ([message]) => h(message)),
});

export const handleBatch = (h) => ({
  handleBatch: (list) => run(list, h),
});
