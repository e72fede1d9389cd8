// The conformance guest with batches of deliveries, in C++: each payload says what its outcome is.
#include "../longshore.h"

static ls_error decide(const ls_message *messages, size_t count, ls_outcome *outcomes) {
  for (size_t i = 0; i < count; i++) {
    const ls_message &m = messages[i];
    if (ls_equal(m.data, LS("error"))) return ls_fail(LS_CONNECTION, LS("all again"));
    if (ls_equal(m.data, LS("retry"))) outcomes[i] = ls_retry_after(1500);
    if (ls_equal(m.data, LS("reject"))) outcomes[i] = ls_reject(LS("no"));
    if (!ls_equal(m.data, LS("ack"))) continue;
    ls_options options = LS_ZERO;
    options.cause = ls_some(ls_delivery(&m).value.id);
    outcomes[i] = ls_publish(LS("out"), &m, &options).refused ? ls_retry() : ls_ack();
  }
  return LS_OK;
}
LS_BATCH_HANDLER(decide)
