// The conformance guest with explicit outcomes: the payload says which.
import { Message, onOutcome, Outcome, send } from "longshore";

onOutcome((m: Message): Outcome => {
  const text = m.text();
  if (text == "retry") return Outcome.retry();
  if (text == "retry later") return Outcome.retryAfter(1500);
  if (text == "skip") return Outcome.skip();
  if (text.startsWith("reject ")) return Outcome.reject(text.substring(7));
  const failure = send("out", m);
  return failure ? Outcome.reject(failure.toString()) : Outcome.ack();
});
