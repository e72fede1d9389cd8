// The conformance guest with batches of deliveries: each payload says what its outcome is.
import { ack, Failure, publish, reject, retry, skip } from "longshore";

export function handleBatch(messages) {
  return messages.map((m) => {
    switch (m.text()) {
      case "error":
        throw new Failure("connection", "all again");
      case "retry":
        return retry(1500);
      case "reject":
        return reject("no");
      case "ack":
        publish("out", m, { cause: m.delivery().id });
        return ack();
    }
    return skip();
  });
}
