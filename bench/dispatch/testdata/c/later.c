// A consumer that asks for its message again, after the usual while, the first time that it sees one which says "later".
#include "longshore.h"

static ls_outcome decide(const ls_message *m) {
  if (ls_equal(m->data, LS("later")) && ls_delivery(m).value.attempt == 1) return ls_retry();
  return ls_ack();
}
LS_OUTCOME_HANDLER(decide)
