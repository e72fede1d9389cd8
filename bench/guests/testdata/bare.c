// Calls the host once for each message of so many batches, with the bytes that batch.c publishes.
#define COUNT 100

__attribute__((import_module("bench"), import_name("take"))) void take(const char *topic, unsigned topic_size,
                                                                       const char *data, unsigned size, char *id);

__attribute__((export_name("run"))) void run(unsigned batches) {
  static const char payload[1024], topic[] = "orders/paid";
  static char id[64];
  for (unsigned i = 0; i < batches * COUNT; i++) take(topic, sizeof topic - 1, payload, sizeof payload, id);
}
