// The consumer in C: it answers one order a call.
#include "longshore.h"

#include "order.h"

static ls_error answer(const ls_message *m) {
  uint8_t *out = ls_alloc(ANSWER_BYTES);
  size_t size = price(m->data.bytes, m->data.size, out);
  if (size == 0) return ls_fail(LS_OTHER, LS("not an order"));
  ls_message reply = LS_ZERO;
  reply.content_type = LS("application/json");
  reply.data = (ls_text){out, size};
  return ls_send(LS("priced"), &reply);
}
LS_HANDLER(answer)
