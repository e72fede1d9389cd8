// The conformance guest with explicit outcomes: the payload says which.
import { ack, reject, retry, send, skip } from "longshore";

export function decide(message) {
  const text = message.text();
  if (text === "retry") return retry();
  if (text === "retry later") return retry(1500);
  if (text === "skip") return skip();
  if (text.startsWith("reject ")) return reject(text.slice(7));
  send("out", message);
  return ack();
}
