// A consumer that computes for as long as its message says: a number of rounds, in decimal.
#include "longshore.h"

static ls_error burn(const ls_message *m) {
  uint32_t rounds = 0, x = 1;
  for (size_t i = 0; i < m->data.size; i++) rounds = rounds * 10 + (uint32_t)(m->data.bytes[i] - '0');
  for (uint32_t i = 0; i < rounds; i++) {
    x = x * 1103515245 + 12345;
    __asm__ volatile("" : : "r"(x)); // else the compiler sees that nobody asks for it
  }
  return LS_OK;
}
LS_HANDLER(burn)
