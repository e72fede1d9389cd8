import { OPTION_TEXT, OPTION_U64, PAIR, TEXT } from "./abi";
import { Pair, Some } from "./message";

// What the host writes lies in blocks of the heap that the garbage collector doesn't know. What is read from there is copied,
// and the block freed. What is written for the host lies in such blocks too, which are freed when the handler has returned.

const HEADER: usize = 16; // of a block that was lent to the host: the address of the one before

let lent: usize = 0; // the last such block

/** Returns so many bytes of zeros, aligned to 8, until release is called. */
export function lend(size: usize): usize {
  const block = heap.alloc(HEADER + size);
  store<usize>(block, lent);
  lent = block;
  memory.fill(block + HEADER, 0, size);
  return block + HEADER;
}

/** Frees what was lent: the host has read it. */
export function release(): void {
  while (lent != 0) {
    const before = load<usize>(lent);
    heap.free(lent);
    lent = before;
  }
}

/** cabi_realloc: memory for what the host returns. */
export function realloc(old: usize, oldSize: usize, align: usize, size: usize): usize {
  if (size == 0) return align;
  return oldSize == 0 ? heap.alloc(size) : heap.realloc(old, size);
}

function free(address: usize, size: usize): void {
  if (size > 0) heap.free(address);
}

/** Takes the list<u8> at an address. */
export function takeBytes(at: usize): Uint8Array {
  const address = load<usize>(at), length = load<usize>(at, 4);
  const bytes = new Uint8Array(<i32>length);
  memory.copy(bytes.dataStart, address, length);
  free(address, length);
  return bytes;
}

/** Takes the string at an address. */
export function takeText(at: usize): string {
  const address = load<usize>(at), length = load<usize>(at, 4);
  const text = String.UTF8.decodeUnsafe(address, length);
  free(address, length);
  return text;
}

/** Takes an option<string>. */
export function takeOptionText(at: usize): string | null {
  return load<u8>(at) ? takeText(at + OPTION_TEXT) : null;
}

/** Takes an option<u64>. */
export function takeOptionNumber(at: usize): Some | null {
  return load<u8>(at) ? new Some(load<u64>(at + OPTION_U64)) : null;
}

/** Takes the list of pairs at an address. */
export function takePairs(at: usize): Pair[] {
  const address = load<usize>(at), count = load<usize>(at, 4);
  const pairs: Pair[] = [];
  for (let i: usize = 0; i < count; i++) {
    pairs.push(new Pair(takeText(address + i * PAIR), takeText(address + i * PAIR + TEXT)));
  }
  free(address, count);
  return pairs;
}

/** Writes a string for the host, its address and length to an address. */
export function putText(at: usize, text: string): void {
  const length = <usize>String.UTF8.byteLength(text);
  const bytes = lend(length);
  String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, bytes, false, String.UTF8.ErrorMode.REPLACE);
  putList(at, bytes, length);
}

/** Writes a list's address and count to an address. */
export function putList(at: usize, address: usize, count: usize): void {
  store<usize>(at, address);
  store<usize>(at, count, 4);
}

/** Writes an option<string>. */
export function putOptionText(at: usize, text: string | null): void {
  if (text == null) return;
  store<u8>(at, 1);
  putText(at + OPTION_TEXT, text);
}

/** Writes an option<u64>. */
export function putOptionNumber(at: usize, n: Some | null): void {
  if (n == null) return;
  store<u8>(at, 1);
  store<u64>(at + OPTION_U64, n.value);
}

/** Writes a list of pairs, and its address and count to an address. */
export function putPairs(at: usize, pairs: Pair[]): void {
  const count = <usize>pairs.length;
  const list = lend(count * PAIR);
  for (let i: usize = 0; i < count; i++) {
    putText(list + i * PAIR, pairs[<i32>i].key);
    putText(list + i * PAIR + TEXT, pairs[<i32>i].value);
  }
  putList(at, list, count);
}

/** Returns the text of bytes in UTF-8; each byte that isn't becomes U+FFFD. */
export function utf8(bytes: Uint8Array): string {
  let text = "";
  let begin = 0, at = 0;
  while (at < bytes.length) {
    const n = characterLength(bytes, at);
    if (n > 0) {
      at += n;
      continue;
    }
    text += String.UTF8.decodeUnsafe(bytes.dataStart + begin, at - begin) + "\uFFFD";
    begin = ++at;
  }
  return text + String.UTF8.decodeUnsafe(bytes.dataStart + begin, at - begin);
}

/** The length of the well-formed character at an index, or 0. */
function characterLength(b: Uint8Array, at: i32): i32 {
  const first = b[at];
  if (first < 0x80) return 1;
  const n = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (n == 0 || n > b.length - at) return 0;
  for (let i = 1; i < n; i++) {
    if ((b[at + i] & 0xc0) != 0x80) return 0;
  }
  const second = b[at + 1];
  const outside = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
    (first == 0xf4 && second > 0x8f); // overlong, a surrogate, or above U+10FFFF
  return outside ? 0 : n;
}
