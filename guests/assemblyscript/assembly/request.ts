import * as abi from "./abi";
import { Failure, takeFailure } from "./failure";
import { lend, putText } from "./memory";
import { Message, putMessage, takeMessage } from "./message";
import { client, connect } from "./publish";

/** The replies to a request, or why there are none. */
export class Replies {
  constructor(public messages: Message[], public failure: Failure | null) {}
}

/**
 * Publishes a message at once, and waits for replies to it: until as many came as are expected, or until the time is over, in
 * milliseconds (0: that of the call), which gives those that came. Without any it fails as a timeout. A reply's delivery() says who
 * replied. A request isn't undone if the handler fails afterwards, and made again when the message is delivered again.
 */
export function request(topic: string, message: Message, timeout: u32 = 0, expected: u32 = 1): Replies {
  const failure = connect();
  if (failure) return new Replies([], failure);
  const ret = lend(16), name = lend(abi.TEXT);
  putText(name, topic);
  const options = abi.newRequestOptions();
  if (timeout > 0) abi.setTimeout(options, timeout);
  abi.setExpectedReplies(options, expected);
  const handle = putMessage(message);
  abi.request(client, load<usize>(name), load<usize>(name, 4), handle, 1, options, ret);
  abi.dropMessage(handle);
  if (load<u8>(ret)) return new Replies([], takeFailure(ret + abi.RESULT_ERROR));
  const handles = load<usize>(ret + abi.RESULT_ERROR), count = load<usize>(ret + abi.RESULT_ERROR, 4);
  const messages: Message[] = [];
  for (let i: usize = 0; i < count; i++) messages.push(takeMessage(load<u32>(handles + 4 * i)));
  if (count > 0) heap.free(handles);
  return new Replies(messages, null);
}

/** Publishes an answer to a delivered message, for whoever waits for it, when the handler has answered well. */
export function reply(to: Message, message: Message): Failure | null {
  if (to.handle == 0) return Failure.other("only a message that is being handled can be replied to");
  const ret = lend(16);
  abi.reply(to.handle, putMessage(message), ret);
  return load<u8>(ret) ? takeFailure(ret + abi.RESULT_ERROR) : null;
}
