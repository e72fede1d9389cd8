import * as abi from "./abi";
import { lend, putPairs, putText, takeBytes, takeOptionNumber, takeOptionText, takePairs, takeText, utf8 } from "./memory";

/** An entry of metadata. */
export class Pair {
  constructor(public key: string, public value: string) {}
}

/** A number that might have been absent. */
export class Some {
  constructor(public value: u64) {}
}

/** A number where there might be none. */
export function some(value: u64): Some {
  return new Some(value);
}

/** Drops a message whose token is lower than the highest one seen for the same key. */
export class Fence {
  constructor(public key: string, public token: u64) {}
}

/** A message that was delivered or is to be published. Publishing ignores the topic. */
export class Message {
  /** Where a delivered message came from. */
  topic: string = "";
  /** A media type, or empty. */
  contentType: string = "";
  /** The applications' own. */
  metadata: Pair[] = [];
  /** The host's, of a delivered message; else 0. */
  handle: u32 = 0;

  constructor(public data: Uint8Array = new Uint8Array(0)) {}

  /** A message with a text. */
  static of(text: string, contentType: string = ""): Message {
    const m = new Message(Uint8Array.wrap(String.UTF8.encode(text)));
    m.contentType = contentType;
    return m;
  }

  /** The payload as text; each byte that isn't UTF-8 becomes U+FFFD. */
  text(): string {
    return utf8(this.data);
  }

  /** The details of the delivery; null for a message that the handler made itself. */
  delivery(): Delivery | null {
    if (this.handle == 0) return null;
    const ret = lend(abi.INFO);
    abi.info(this.handle, ret);
    return load<u8>(ret) ? takeDelivery(ret + 8) : null;
  }
}

/** Reads a delivered message from the host. */
export function takeMessage(handle: u32): Message {
  const ret = lend(16);
  abi.data(handle, ret);
  const m = new Message(takeBytes(ret));
  m.handle = handle;
  abi.topic(handle, ret);
  const topic = takeOptionText(ret);
  if (topic != null) m.topic = topic;
  abi.contentType(handle, ret);
  const contentType = takeOptionText(ret);
  if (contentType != null) m.contentType = contentType;
  abi.metadata(handle, ret);
  if (load<u8>(ret)) m.metadata = takePairs(ret + 4);
  return m;
}

/** Makes a message of the host's, and returns its handle. */
export function putMessage(m: Message): u32 {
  const handle = abi.newMessage(m.data.dataStart, m.data.length);
  const list = lend(abi.TEXT);
  if (m.contentType.length > 0) {
    putText(list, m.contentType);
    abi.setContentType(handle, load<usize>(list), load<usize>(list, 4));
  }
  if (m.metadata.length > 0) {
    putPairs(list, m.metadata);
    abi.setMetadata(handle, load<usize>(list), load<usize>(list, 4));
  }
  return handle;
}

/** Who published a message: its signed context, which the host has verified. */
export class Claims {
  tenant: string = "";
  subject: string = "";
  issuer: string = "";
  tokenId: string = "";
  /** Unix milliseconds. */
  issuedAt: u64 = 0;
  extra: Pair[] = [];
  extensions: Pair[] = [];
}

/** What a message doesn't say of its delivery. Times are Unix milliseconds. */
export class Delivery {
  id: string = "";
  topic: string = "";
  /** 1 for the first. */
  attempt: u32 = 0;
  maxAttempts: u32 = 0;
  /** Why the previous attempt failed. */
  previousReason: string | null = null;
  group: string | null = null;
  publishedAt: u64 = 0;
  expiresAt: Some | null = null;
  deadline: Some | null = null;
  priority: u8 = 0;
  idempotencyKey: string | null = null;
  orderingKey: string | null = null;
  fence: Fence | null = null;
  /** The message whose handling published this one. */
  parent: string | null = null;
  /** How long the chain of parents is. */
  hops: u32 = 0;
  claims: Claims | null = null;
  /** traceparent and tracestate. */
  trace: Pair[] = [];
  extensions: Pair[] = [];
}

function takeDelivery(at: usize): Delivery {
  const d = new Delivery();
  d.id = takeText(at + abi.INFO_ID);
  d.topic = takeText(at + abi.INFO_TOPIC);
  d.attempt = load<u32>(at + abi.INFO_ATTEMPT);
  d.maxAttempts = load<u32>(at + abi.INFO_MAX_ATTEMPTS);
  d.previousReason = takeOptionText(at + abi.INFO_PREVIOUS_REASON);
  d.group = takeOptionText(at + abi.INFO_GROUP);
  d.publishedAt = load<u64>(at + abi.INFO_PUBLISHED_AT);
  d.expiresAt = takeOptionNumber(at + abi.INFO_EXPIRES_AT);
  d.deadline = takeOptionNumber(at + abi.INFO_DEADLINE);
  d.priority = load<u8>(at + abi.INFO_PRIORITY);
  d.idempotencyKey = takeOptionText(at + abi.INFO_IDEMPOTENCY_KEY);
  d.orderingKey = takeOptionText(at + abi.INFO_ORDERING_KEY);
  if (load<u8>(at + abi.INFO_FENCE)) {
    const fence = at + abi.INFO_FENCE + 8;
    d.fence = new Fence(takeText(fence), load<u64>(fence, 8));
  }
  d.parent = takeOptionText(at + abi.INFO_PARENT);
  d.hops = load<u32>(at + abi.INFO_HOPS);
  if (load<u8>(at + abi.INFO_CLAIMS)) d.claims = takeClaims(at + abi.INFO_CLAIMS + 8);
  d.trace = takePairs(at + abi.INFO_TRACE);
  d.extensions = takePairs(at + abi.INFO_EXTENSIONS);
  return d;
}

function takeClaims(at: usize): Claims {
  const c = new Claims();
  c.tenant = takeText(at + abi.CLAIMS_TENANT);
  c.subject = takeText(at + abi.CLAIMS_SUBJECT);
  c.issuer = takeText(at + abi.CLAIMS_ISSUER);
  c.tokenId = takeText(at + abi.CLAIMS_TOKEN_ID);
  c.issuedAt = load<u64>(at + abi.CLAIMS_ISSUED_AT);
  c.extra = takePairs(at + abi.CLAIMS_EXTRA);
  c.extensions = takePairs(at + abi.CLAIMS_EXTENSIONS);
  return c;
}

/** How many milliseconds are left for this call. */
export function timeLeft(): u64 {
  return abi.timeLeft();
}

/** Whether the host is stopping: finish what is begun, skip the rest. */
export function draining(): bool {
  return abi.draining() != 0;
}
