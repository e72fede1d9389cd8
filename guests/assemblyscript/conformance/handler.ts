// The conformance guest: the topic of the message says what to do. guests/conformance/README.md lists the cases.
import {
  Bucket, config, draining, Failure, FailureCase, Fence, Level, log, Message, onMessage, Options, Outgoing, Pair, publish, publishAtomic,
  publishBatch, PublishCase, reply, request, send, Some, some, timeLeft, utf8,
} from "longshore";

onMessage(handle);

function handle(m: Message): Failure | null {
  const slash = m.topic.indexOf("/");
  const what = slash < 0 ? m.topic : m.topic.substring(0, slash);
  const detail = slash < 0 ? "" : m.topic.substring(slash + 1);
  if (what == "echo") return send("out", m);
  if (what == "batch") return batch(m);
  if (what == "atomic") return atomic(m);
  if (what == "again") return publishBatch([new Outgoing("out", m), new Outgoing("out", m)]).failure();
  if (what == "refuse") return refuse(m);
  if (what == "each") return each(m);
  if (what == "publish") return publishWithOptions(m);
  if (what == "info") return info(m);
  if (what == "values") return values(m);
  if (what == "config") return settings(m);
  if (what == "request") return requestFrom(detail, m);
  if (what == "reply") return replyTwice(m);
  if (what == "log") return logLine(m);
  if (what == "error") return fail(detail, m.text());
  if (what == "trap") return trap(m.text());
  if (what == "forget") return forget(<i32>parseInt(detail));
  return Failure.other("no such case: " + m.topic);
}

/** A message for each line of the payload, the line's end included. */
function lines(m: Message): Message[] {
  const lines: Message[] = [];
  let begin = 0;
  while (begin < m.data.length) {
    const end = m.data.indexOf(10, begin);
    const next = end < 0 ? m.data.length : end + 1;
    const line = new Message(m.data.slice(begin, next));
    line.contentType = m.contentType;
    line.metadata = m.metadata;
    lines.push(line);
    begin = next;
  }
  return lines;
}

function outgoing(lines: Message[]): Outgoing[] {
  const list: Outgoing[] = [];
  for (let i = 0; i < lines.length; i++) list.push(new Outgoing("out", lines[i]));
  return list;
}

function batch(m: Message): Failure | null {
  const r = publishBatch(outgoing(lines(m)));
  const failure = r.failure();
  if (failure) return failure;
  let ids = "";
  for (let i = 0; i < r.results.length; i++) ids += r.results[i].receipt!.id + "\n";
  return send("ids", Message.of(ids));
}

function atomic(m: Message): Failure | null {
  const list = outgoing(lines(m));
  if (m.contentType.length > 0 && list.length > 0) list[list.length - 1].topic = m.contentType;
  const r = publishAtomic(list);
  if (r.error) return send("report", Message.of(r.error!.toString()));
  let ids = "";
  for (let i = 0; i < r.receipts.length; i++) ids += r.receipts[i].id + "\n";
  return send("report", Message.of(ids));
}

function refuse(m: Message): Failure | null {
  const r = publishBatch([new Outgoing("out", m), new Outgoing("forbidden", m), new Outgoing("full", m)]);
  if (r.error) return r.error!.toFailure();
  let report = "";
  for (let i = 0; i < r.results.length; i++) {
    const e = r.results[i].error;
    report += e ? e.toString() + "\n" : "ok\n";
    if (e && e.kind <= PublishCase.StorageFull && e.retryAfter) report += "after " + e.retryAfter!.value.toString() + "\n";
  }
  const failure = send("forbidden", m);
  if (failure) report += failure.toString();
  return send("report", Message.of(report));
}

function each(m: Message): Failure | null {
  __collect();
  const all = lines(m);
  for (let i = 0; i < all.length; i++) {
    const failure = send("out", all[i]);
    if (failure) return failure;
    __collect();
  }
  return null;
}

function publishWithOptions(m: Message): Failure | null {
  let o: Options | null = new Options();
  const text = m.text();
  if (text == "null") o = null;
  if (o && text != "none") {
    o.delay = some(1000);
    o.ttl = some(2000);
    o.deadline = some(1900000000000);
    o.priority = 7;
    o.idempotencyKey = "once";
    o.orderingKey = "in order";
    o.fence = new Fence("gate", 9);
    o.requiredFeatures = ["gpu", "eu"];
    o.target = "me";
    if (text == "extension") o.extensions = [new Pair("x", "y")];
  }
  const r = publish("out", m, o);
  if (r.error) return r.error!.toFailure();
  return send("report", Message.of(r.receipt!.id + (r.receipt!.duplicate ? " duplicate" : " new")));
}

function field(name: string, value: string | null): string {
  return value == null ? "" : name + "=" + value + "\n";
}

function maybe(name: string, n: Some | null): string {
  return n == null ? "" : field(name, n.value.toString());
}

function pairs(name: string, list: Pair[]): string {
  let text = "";
  for (let i = 0; i < list.length; i++) text += field(name + list[i].key, list[i].value);
  return text;
}

function info(m: Message): Failure | null {
  const d = m.delivery();
  if (!d) return Failure.other("no delivery info");
  let text = field("id", d.id) + field("topic", d.topic);
  text += field("attempt", d.attempt.toString()) + field("max-attempts", d.maxAttempts.toString());
  text += field("previous-reason", d.previousReason) + field("group", d.group);
  text += field("published-at", d.publishedAt.toString());
  text += maybe("expires-at", d.expiresAt) + maybe("deadline", d.deadline);
  text += field("priority", d.priority.toString());
  text += field("idempotency-key", d.idempotencyKey) + field("ordering-key", d.orderingKey);
  if (d.fence) text += field("fence." + d.fence!.key, d.fence!.token.toString());
  text += field("parent", d.parent) + field("hops", d.hops.toString());
  const c = d.claims;
  if (c) {
    text += field("tenant", c.tenant) + field("subject", c.subject) + field("issuer", c.issuer);
    text += field("token-id", c.tokenId) + field("issued-at", c.issuedAt.toString()) + pairs("extra.", c.extra);
  }
  text += pairs("trace.", d.trace);
  text += field("time-left", timeLeft() > 0 ? "some" : "none") + field("draining", draining() ? "yes" : "no");
  text += field("own", new Message().delivery() ? "some" : "none");
  return send("report", Message.of(text));
}

/** Keeps the payload's words under their numbers, and reports what it finds. */
function values(m: Message): Failure | null {
  const denied = new Bucket("secrets").error;
  const bucket = new Bucket("stock");
  const words = m.text().split(" ");
  for (let i = 0; i < words.length; i++) bucket.set("key" + i.toString(), Message.of(words[i]).data);
  bucket.set("empty", new Uint8Array(0));
  bucket.delete("key0");
  const keys = bucket.keys();
  if (bucket.error) return Failure.other(bucket.error!.toString());
  let report = (denied ? denied.toString() : "") + "\n" + keys.length.toString() + " " + keys.join(" ") + "\n";
  const asked: string[] = ["key0", "key1", "empty", "before"];
  for (let i = 0; i < asked.length; i++) {
    const value = bucket.get(asked[i]);
    report += asked[i] + (value ? " true " : " false ") + (bucket.exists(asked[i]) ? "true" : "false");
    report += ' "' + (value ? utf8(value) : "") + '"\n';
  }
  bucket.set("", new Uint8Array(0));
  const refused = bucket.error;
  return send("out", Message.of(report + (refused ? refused.toString() : "")));
}

function settings(m: Message): Failure | null {
  const keys = m.text().split(" ");
  let report = "";
  for (let i = 0; i < keys.length; i++) {
    const value = config(keys[i]);
    report += keys[i] + ": " + (value == null ? "nothing" : value) + "\n";
  }
  return send("report", Message.of(report));
}

/** Requests the message of a topic, and sends the replies to out, as they came. */
function requestFrom(topic: string, m: Message): Failure | null {
  const replies = m.data.length > 0 ? request(topic, m, 1500, 3) : request(topic, m);
  const failure = replies.failure;
  if (failure) return send("report", Message.of(failure.toString()));
  for (let i = 0; i < replies.messages.length; i++) {
    const refused = send("out", replies.messages[i]);
    if (refused) return refused;
  }
  const d = replies.messages[0].delivery();
  return d ? send("report", Message.of(d.id + " of " + d.claims!.subject)) : null;
}

/** Replies to the message with itself, twice, and says what the host said. */
function replyTwice(m: Message): Failure | null {
  for (let i = 0; i < 2; i++) {
    const refused = reply(m, m);
    if (refused) return send("report", Message.of(refused.toString()));
  }
  return null;
}

function logLine(m: Message): Failure | null {
  log(Level.Warn, m.text());
  return null;
}

function fail(name: string, text: string): Failure | null {
  if (name == "timeout") return Failure.timeout();
  if (name == "connection") return Failure.connection(text);
  if (name == "permission-denied") return Failure.permissionDenied(text);
  return new Failure(FailureCase.Other, text);
}

function trap(why: string): Failure | null {
  throw new Error(why);
}

function forget(count: i32): Failure | null {
  for (let i = 0; i < count; i++) {
    const failure = send("out", new Message());
    if (failure) return failure;
  }
  throw new Error("forget it");
}
