// The consumer in C that takes many orders in a call, and publishes the answers together.
#include "longshore.h"

#include "order.h"

static ls_error answer(const ls_message *messages, size_t count, ls_outcome *outcomes) {
  ls_outgoing *batch = ls_alloc(count * sizeof(ls_outgoing));
  for (size_t i = 0; i < count; i++) {
    uint8_t *out = ls_alloc(ANSWER_BYTES);
    size_t size = price(messages[i].data.bytes, messages[i].data.size, out);
    if (size == 0) return ls_fail(LS_OTHER, LS("not an order"));
    ls_message *reply = ls_alloc(sizeof(ls_message));
    *reply = (ls_message)LS_ZERO;
    reply->content_type = LS("application/json");
    reply->data = (ls_text){out, size};
    batch[i] = (ls_outgoing){LS("priced"), reply, 0};
    outcomes[i] = ls_ack();
  }
  ls_batch_result result = ls_publish_batch(batch, count);
  return ls_all_accepted(&result);
}
LS_BATCH_HANDLER(answer)
