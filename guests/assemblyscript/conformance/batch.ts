// The conformance guest with batches of deliveries: each payload says what its outcome is.
import { BatchAnswer, Failure, Message, onBatch, Options, Outcome, publish } from "longshore";

onBatch((messages: Message[]): BatchAnswer => {
  const outcomes: Outcome[] = [];
  for (let i = 0; i < messages.length; i++) {
    if (messages[i].text() == "error") return new BatchAnswer([], Failure.connection("all again"));
    outcomes.push(decide(messages[i]));
  }
  return new BatchAnswer(outcomes);
});

function decide(m: Message): Outcome {
  const text = m.text();
  if (text == "retry") return Outcome.retryAfter(1500);
  if (text == "reject") return Outcome.reject("no");
  if (text != "ack") return Outcome.skip();
  const options = new Options();
  options.cause = m.delivery()!.id;
  return publish("out", m, options).error ? Outcome.retry() : Outcome.ack();
}
