// The conformance guest with explicit outcomes: the payload says which.
#include "../longshore.h"

static ls_outcome decide(const ls_message *m) {
  if (ls_equal(m->data, LS("retry"))) return ls_retry();
  if (ls_equal(m->data, LS("retry later"))) return ls_retry_after(1500);
  if (ls_starts_with(m->data, LS("reject "))) return ls_reject(ls_slice(m->data, 7, SIZE_MAX));
  if (ls_equal(m->data, LS("skip"))) return ls_skip();
  ls_error e = ls_send(LS("out"), m);
  return e.error == LS_NO_ERROR ? ls_ack() : ls_reject(e.text);
}
LS_OUTCOME_HANDLER(decide)
