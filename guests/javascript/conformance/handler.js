// The conformance guest: the topic of the message says what to do. guests/conformance/README.md lists the cases.
import {
  accepted, config, draining, Failure, log, Message, openBucket, publish, publishAtomic, publishBatch, PublishError, reply, request,
  send, timeLeft, trap,
} from "longshore";

export function handle(m) {
  const [what, detail] = m.topic.split("/");
  const act = actions[what];
  if (!act) throw new Error(`no such case: ${m.topic}`);
  act(m, detail);
}

/** A message for each line of the payload, the line's end included. */
function lines(m) {
  const lines = [];
  for (let begin = 0; begin < m.data.length; ) {
    const end = m.data.indexOf(10, begin);
    const next = end < 0 ? m.data.length : end + 1;
    lines.push({ topic: "out", message: new Message(m.data.slice(begin, next), m) });
    begin = next;
  }
  return lines;
}

const ids = (receipts) => receipts.map((r) => `${r.id}\n`).join("");

const actions = {
  echo: (m) => send("out", m),
  batch: (m) => send("ids", ids(accepted(publishBatch(lines(m))))),
  again: (m) => accepted(publishBatch([{ topic: "out", message: m }, { topic: "out", message: m }])),
  each: (m) => lines(m).forEach((o) => send(o.topic, o.message)),
  log: (m) => log("warn", m.text()),
  trap: (m) => trap(m.text()),
  error: (m, name) => {
    throw new Failure(name, m.text());
  },
  forget: (_, count) => {
    for (let i = 0; i < Number(count); i++) send("out", "");
    trap("forget it");
  },
  atomic,
  refuse,
  publish: publishWithOptions,
  info,
  features,
  values,
  request: requestFrom,
  reply: replyTwice,
  config: (m) => send("report", m.text().split(" ").map((key) => `${key}: ${config(key) ?? "nothing"}\n`).join("")),
};

/** What something throws, as a text; undefined if it throws nothing. */
function thrownBy(something) {
  try {
    something();
  } catch (e) {
    return e.message;
  }
}

/** Keeps the payload's words under their numbers, and reports what it finds. */
function values(m) {
  let report = `${thrownBy(() => openBucket("secrets"))}\n`;
  const bucket = openBucket("stock");
  m.text().split(" ").forEach((word, i) => bucket.set(`key${i}`, word));
  bucket.set("empty", "");
  bucket.delete("key0");
  const keys = bucket.keys();
  report += `${keys.length} ${keys.join(" ")}\n`;
  for (const key of ["key0", "key1", "empty", "before"]) {
    const value = bucket.get(key);
    report += `${key} ${value !== undefined} ${bucket.exists(key)} "${value ? new TextDecoder().decode(value) : ""}"\n`;
  }
  send("out", report + thrownBy(() => bucket.set("", "")));
}

/** Requests the message of a topic, and sends the replies to out, as they came. */
function requestFrom(m, topic) {
  let replies;
  try {
    replies = request(topic, m, m.data.length ? { timeout: 1500, replies: 3 } : undefined);
  } catch (e) {
    return send("report", e.message);
  }
  replies.forEach((r) => send("out", r));
  const d = replies[0].delivery();
  if (d) send("report", `${d.id} of ${d.claims.subject}`);
}

/** Replies to the message with itself, twice, and says what the host said. */
function replyTwice(m) {
  const refused = thrownBy(() => [m, m].forEach((answer) => reply(m, answer)));
  if (refused) send("report", refused);
}

function atomic(m) {
  const batch = lines(m);
  if (m.contentType && batch.length) batch.at(-1).topic = m.contentType;
  let report;
  try {
    report = ids(publishAtomic(batch));
  } catch (e) {
    report = e.message;
  }
  send("report", report);
}

function refuse(m) {
  let report = "";
  for (const r of publishBatch(["out", "forbidden", "full"].map((topic) => ({ topic, message: m })))) {
    report += r instanceof PublishError ? `${r.message}\n` : "ok\n";
    if (r.retryAfter !== undefined) report += `after ${r.retryAfter}\n`;
  }
  try {
    send("forbidden", m);
  } catch (e) {
    report += e.message;
  }
  send("report", report);
}

function publishWithOptions(m) {
  let options = {
    delay: 1000, ttl: 2000, deadline: 1900000000000, priority: 7, idempotencyKey: "once", orderingKey: "in order",
    fence: { key: "gate", token: 9 }, requiredFeatures: ["gpu", "eu"], target: "me",
  };
  const text = m.text();
  if (text === "none") options = {};
  if (text === "null") options = undefined;
  if (text === "extension") options.extensions = [["x", "y"]];
  const receipt = publish("out", m, options);
  send("report", `${receipt.id} ${receipt.duplicate ? "duplicate" : "new"}`);
}

/** What the engine has beside the language, which takes clocks, random numbers and output from the host. */
function features(m) {
  console.log(m.text());
  const random = () => [...crypto.getRandomValues(new Uint8Array(8))].join();
  const now = Date.now();
  let report = now > 1_700_000_000_000 && new Date().getTime() >= now ? "the time is now\n" : `the time is ${now}\n`;
  report += Math.random() === Math.random() ? "random numbers are the same\n" : "random numbers differ\n";
  report += random() === random() ? "crypto is the same\n" : "crypto differs\n";
  send("report", report);
}

function info(m) {
  const d = m.delivery();
  if (!d) throw new Error("no delivery info");
  let text = "";
  const field = (name, value) => {
    if (value !== undefined) text += `${name}=${value}\n`;
  };
  field("id", d.id);
  field("topic", d.topic);
  field("attempt", d.attempt);
  field("max-attempts", d.maxAttempts);
  field("previous-reason", d.previousReason);
  field("group", d.group);
  field("published-at", d.publishedAt);
  field("expires-at", d.expiresAt);
  field("deadline", d.deadline);
  field("priority", d.priority);
  field("idempotency-key", d.idempotencyKey);
  field("ordering-key", d.orderingKey);
  if (d.fence) field(`fence.${d.fence.key}`, d.fence.token);
  field("parent", d.parent);
  field("hops", d.hops);
  if (d.claims) {
    field("tenant", d.claims.tenant);
    field("subject", d.claims.subject);
    field("issuer", d.claims.issuer);
    field("token-id", d.claims.tokenId);
    field("issued-at", d.claims.issuedAt);
    for (const [key, value] of d.claims.extra) field(`extra.${key}`, value);
  }
  for (const [key, value] of d.trace) field(`trace.${key}`, value);
  field("time-left", timeLeft() > 0 ? "some" : "none");
  field("draining", draining() ? "yes" : "no");
  field("own", new Message().delivery() ? "some" : "none");
  send("report", text);
}
