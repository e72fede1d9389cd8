import * as abi from "./abi";
import { lend, putText, takeBytes, takeOptionNumber, takeOptionText, takeText } from "./memory";
import { Some } from "./message";

/** The cases of a value's error, numbered as in the WIT. */
export enum ValueCase { NoSuchStore, AccessDenied, Other }

/** Why a bucket didn't do what it was asked. */
export class ValueError {
  constructor(public kind: ValueCase, public text: string) {}

  toString(): string {
    if (this.kind == ValueCase.NoSuchStore) return "no-such-store";
    return this.kind == ValueCase.AccessDenied ? "access-denied" : "other: " + this.text;
  }
}

/** Takes the error at an address. */
function takeValueError(at: usize): ValueError {
  const kind = load<u8>(at);
  return new ValueError(kind, kind == ValueCase.Other ? takeText(at + 4) : "");
}

/** Writes a text for the host, and returns where its address and length are. */
function lendText(text: string): usize {
  const at = lend(abi.TEXT);
  putText(at, text);
  return at;
}

/**
 * A bucket of values, which belong to the consumer's tenant. A handler is one transaction: it reads what it wrote, and what it wrote
 * is stored when it has answered well, with what it published, or not at all. After each operation error says what was wrong, or is
 * null.
 */
export class Bucket {
  error: ValueError | null = null;
  private handle: u32 = 0;

  /** Opens a bucket that the manifest grants, until the handler returns. */
  constructor(name: string) {
    const ret = lend(16), at = lendText(name);
    abi.openBucket(load<usize>(at), load<usize>(at, 4), ret);
    if (load<u8>(ret)) this.error = takeValueError(ret + abi.RESULT_ERROR);
    else this.handle = load<u32>(ret + abi.RESULT_ERROR);
  }

  /** The value under a key; null if there is none. */
  get(key: string): Uint8Array | null {
    const ret = lend(16), at = lendText(key);
    abi.getValue(this.handle, load<usize>(at), load<usize>(at, 4), ret);
    if (this.failed(ret, abi.RESULT_ERROR) || !load<u8>(ret + abi.RESULT_ERROR)) return null;
    return takeBytes(ret + abi.RESULT_ERROR + abi.OPTION_TEXT);
  }

  /** Sets the value under a key of 1 to 256 bytes. Says whether it did. */
  set(key: string, value: Uint8Array): bool {
    const ret = lend(16), at = lendText(key);
    abi.setValue(this.handle, load<usize>(at), load<usize>(at, 4), value.dataStart, value.length, ret);
    return !this.failed(ret, abi.RESULT_ERROR);
  }

  /** Deletes the value under a key, if there is one. Says whether there is none now. */
  delete(key: string): bool {
    const ret = lend(16), at = lendText(key);
    abi.deleteValue(this.handle, load<usize>(at), load<usize>(at, 4), ret);
    return !this.failed(ret, abi.RESULT_ERROR);
  }

  /** Whether there is a value under a key. */
  exists(key: string): bool {
    const ret = lend(16), at = lendText(key);
    abi.existsValue(this.handle, load<usize>(at), load<usize>(at, 4), ret);
    return !this.failed(ret, abi.RESULT_ERROR) && load<u8>(ret + abi.RESULT_ERROR) != 0;
  }

  /** All keys, in the order of their bytes. The host gives a few hundred at a time. */
  keys(): string[] {
    const keys: string[] = [];
    const ret = lend(abi.KEYS), page = ret + abi.KEYS_PAYLOAD;
    let cursor: Some | null = null;
    do {
      abi.listKeys(this.handle, cursor ? 1 : 0, cursor ? cursor.value : 0, ret);
      if (this.failed(ret, abi.KEYS_PAYLOAD)) return [];
      const list = load<usize>(page), count = load<usize>(page, 4);
      for (let i: usize = 0; i < count; i++) keys.push(takeText(list + i * abi.TEXT));
      if (count > 0) heap.free(list);
      cursor = takeOptionNumber(page + abi.PAGE_CURSOR);
    } while (cursor);
    return keys;
  }

  /** Takes the error of a result, if it is one. */
  private failed(ret: usize, payload: usize): bool {
    this.error = load<u8>(ret) ? takeValueError(ret + payload) : null;
    return this.error != null;
  }
}

/** What the manifest says for a key under config; null if nothing. */
export function config(key: string): string | null {
  const ret = lend(16), at = lendText(key);
  abi.getConfig(load<usize>(at), load<usize>(at, 4), ret);
  return load<u8>(ret) ? null : takeOptionText(ret + abi.RESULT_ERROR);
}
