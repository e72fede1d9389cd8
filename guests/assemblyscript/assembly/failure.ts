import * as abi from "./abi";
import { Some } from "./message";
import { putText, takeOptionNumber, takePairs, takeText } from "./memory";

/** The cases of a failure, numbered as in the WIT. */
export enum FailureCase { Timeout, Connection, PermissionDenied, Other }

const failureNames: StaticArray<string> = ["timeout", "connection", "permission-denied", "other"];

/** What a handler answers if it fails, and send if the host refuses. The text goes to the tenant's log; a timeout has none. */
export class Failure {
  constructor(public kind: FailureCase, public text: string = "") {}

  static timeout(): Failure { return new Failure(FailureCase.Timeout); }
  static connection(text: string): Failure { return new Failure(FailureCase.Connection, text); }
  static permissionDenied(text: string): Failure { return new Failure(FailureCase.PermissionDenied, text); }
  static other(text: string): Failure { return new Failure(FailureCase.Other, text); }

  toString(): string {
    const name = failureNames[this.kind];
    return this.text.length > 0 ? name + ": " + this.text : name;
  }
}

/** Takes the error at an address. */
export function takeFailure(at: usize): Failure {
  const kind = load<u8>(at);
  return new Failure(kind, kind == FailureCase.Timeout ? "" : takeText(at + 4));
}

/** Writes an error. */
export function putFailure(at: usize, f: Failure): void {
  store<u8>(at, <u8>f.kind);
  if (f.kind != FailureCase.Timeout) putText(at + 4, f.text);
}

/** The cases of a refusal, numbered as in the WIT. Those up to StorageFull come with a limit, the others with a text. */
export enum PublishCase {
  DepthExceeded, RateExceeded, TooLarge, QuotaExceeded, HopLimit, StorageFull,
  Unauthorized, Invalid, Unavailable, Timeout, Other,
}

const publishNames: StaticArray<string> = [
  "depth-exceeded", "rate-exceeded", "too-large", "quota-exceeded", "hop-limit", "storage-full",
  "unauthorized", "invalid", "unavailable", "timeout", "other",
];

/** Why a publish was refused. */
export class PublishError {
  /** In the unit of the case: messages, messages a second, or bytes. */
  limit: u64 = 0;
  actual: u64 = 0;
  /** Milliseconds, if they are known. */
  retryAfter: Some | null = null;
  text: string = "";

  constructor(public kind: PublishCase) {}

  toString(): string {
    const name = publishNames[this.kind];
    if (this.kind <= PublishCase.StorageFull) {
      return name + ": " + this.actual.toString() + " is over the limit of " + this.limit.toString();
    }
    return this.text.length > 0 ? name + ": " + this.text : name;
  }

  /** The same as a handler's failure, with the case that is nearest. */
  toFailure(): Failure {
    switch (this.kind) {
      case PublishCase.Unauthorized: return Failure.permissionDenied(this.toString());
      case PublishCase.Timeout: return Failure.timeout();
      case PublishCase.Unavailable: return Failure.connection(this.toString());
      default: return Failure.other(this.toString());
    }
  }
}

/** Takes the publish-error at an address. */
export function takePublishError(at: usize): PublishError {
  const e = new PublishError(load<u8>(at));
  at += abi.PUBLISH_ERROR;
  if (e.kind <= PublishCase.StorageFull) {
    e.limit = load<u64>(at + abi.LIMIT_LIMIT);
    e.actual = load<u64>(at + abi.LIMIT_ACTUAL);
    e.retryAfter = takeOptionNumber(at + abi.LIMIT_RETRY_AFTER);
    takePairs(at + abi.LIMIT_EXTENSIONS);
  } else if (e.kind != PublishCase.Timeout) {
    e.text = takeText(at);
  }
  return e;
}

/** A failure to connect as a refusal. */
export function refusalOf(f: Failure): PublishError {
  const e = new PublishError(PublishCase.Unavailable);
  e.text = f.toString();
  return e;
}
