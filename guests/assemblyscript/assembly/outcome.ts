import * as abi from "./abi";
import { putOptionNumber, putText } from "./memory";
import { Some, some } from "./message";

enum Case { Ack, Retry, Reject, Skip }

/** What the host does with a message. */
export class Outcome {
  private constructor(private kind: Case, private delay: Some | null = null, private why: string = "") {}

  /** Done: what was published is committed. */
  static ack(): Outcome { return new Outcome(Case.Ack); }
  /** Deliver it again; this attempt counts. */
  static retry(): Outcome { return new Outcome(Case.Retry); }
  /** Deliver it again, not before so many milliseconds; this attempt counts. */
  static retryAfter(millis: u64): Outcome { return new Outcome(Case.Retry, some(millis)); }
  /** A dead letter now. The text goes to the tenant's log. */
  static reject(why: string): Outcome { return new Outcome(Case.Reject, null, why); }
  /** Not touched: deliver it again; this attempt doesn't count. */
  static skip(): Outcome { return new Outcome(Case.Skip); }

  /** Writes the outcome for the host. */
  put(at: usize): void {
    store<u8>(at, <u8>this.kind);
    if (this.kind == Case.Retry) putOptionNumber(at + abi.OUTCOME_PAYLOAD, this.delay);
    if (this.kind == Case.Reject) putText(at + abi.OUTCOME_PAYLOAD, this.why);
  }
}
