// Publishes as many batches as the message has bytes, each of 100 messages of 1 KiB.
#include <longshore.h>

#define COUNT 100

static ls_error publish(const ls_message *m) {
  static const uint8_t payload[1024];
  ls_message each = LS_ZERO;
  each.data = ls_make_text(payload, sizeof payload);
  static ls_outgoing list[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    list[i].topic = LS("orders/paid");
    list[i].message = &each;
  }
  for (size_t n = 0; n < m->data.size; n++) {
    ls_batch_result result = ls_publish_batch(list, COUNT);
    ls_error e = ls_all_accepted(&result);
    if (e.error != LS_NO_ERROR) return e;
  }
  return LS_OK;
}
LS_HANDLER(publish)
