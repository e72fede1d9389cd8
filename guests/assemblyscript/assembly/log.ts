import * as abi from "./abi";
import { lend, putText } from "./memory";

/** How much a line of the log matters. */
export enum Level { Trace, Debug, Info, Warn, Error, Critical }

/** Writes a line to the tenant's log. */
export function log(level: Level, text: string): void {
  const line = lend(abi.TEXT);
  putText(line, text);
  abi.log(level, 0, 0, load<usize>(line), load<usize>(line, 4));
}

/** What abort and failed assertions call: logs why, and ends the handler as a trap. */
// @ts-ignore: decorator
@global export function longshore_abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const what = message ? message : "no message", where = file ? file : "?";
  log(Level.Critical, "abort: " + what + " at " + where + ":" + line.toString() + ":" + column.toString());
  unreachable();
}

/** What Math.random begins with. */
// @ts-ignore: decorator
@global export function longshore_seed(): f64 {
  const bytes = lend(8);
  abi.random(bytes, 8);
  return reinterpret<f64>(load<u64>(bytes));
}
