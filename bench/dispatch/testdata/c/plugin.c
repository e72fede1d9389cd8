// The same work as a plugin of Extism: the order is its input, the answer its output. What it imports is Extism's kernel;
// input and output go eight bytes at a time, as they do in Extism's own header for C.
#include "order.h"

#define KERNEL(name) __attribute__((import_module("extism:host/env"), import_name(name)))
extern uint64_t input_length(void) KERNEL("input_length");
extern uint64_t input_load_u64(uint64_t offset) KERNEL("input_load_u64");
extern uint32_t input_load_u8(uint64_t offset) KERNEL("input_load_u8");
extern uint64_t alloc(uint64_t size) KERNEL("alloc");
extern void store_u64(uint64_t offset, uint64_t value) KERNEL("store_u64");
extern void store_u8(uint64_t offset, uint32_t value) KERNEL("store_u8");
extern void output_set(uint64_t offset, uint64_t size) KERNEL("output_set");

#define INPUT_BYTES 65536
static uint8_t input[INPUT_BYTES] __attribute__((aligned(8)));
static uint8_t output[ANSWER_BYTES] __attribute__((aligned(8)));

__attribute__((export_name("price"))) int32_t plugin_price(void) {
  uint64_t size = input_length(), i = 0;
  if (size > INPUT_BYTES) return 1;
  for (; i + 8 <= size; i += 8) *(uint64_t *)(input + i) = input_load_u64(i);
  for (; i < size; i++) input[i] = (uint8_t)input_load_u8(i);
  size_t answered = price(input, (size_t)size, output);
  if (answered == 0) return 1;
  uint64_t out = alloc(answered);
  for (i = 0; i + 8 <= answered; i += 8) store_u64(out + i, *(uint64_t *)(output + i));
  for (; i < answered; i++) store_u8(out + i, output[i]);
  output_set(out, answered);
  return 0;
}
