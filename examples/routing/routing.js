// A consumer that sends JSON events to the topics that want them: each rule that fits adds one.
import { ack, publishAtomic, PublishError, reject, retry } from "longshore";

const rules = [
  { to: "events/paid", when: (e) => e.type === "order.paid" },
  { to: "events/shipped", when: (e) => e.type === "order.shipped" },
  { to: "events/large", when: (e) => Number(e.cents) >= 100_000 },
];
const otherwise = "events/other";

export function decide(message) {
  let event;
  try {
    event = message.json();
  } catch (e) {
    return reject(`not JSON: ${e.message}`); // trying again doesn't help
  }
  if (typeof event?.type !== "string") return reject("no type");
  const topics = rules.filter((r) => r.when(event)).map((r) => r.to);
  if (topics.length === 0) topics.push(otherwise);
  try {
    publishAtomic(topics.map((topic) => ({ topic, message })));
  } catch (e) {
    if (e instanceof PublishError) return retry(1000); // a topic is full, for now
    throw e;
  }
  return ack();
}
