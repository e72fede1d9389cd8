// A consumer that imports messaging alone: it sends each message on, reversed, and refuses the empty one.
typedef unsigned char u8;
typedef unsigned int u32;
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define TYPES "wasi:messaging/types@0.2.0-draft"

IMPORT(TYPES, "[static]client.connect") void client_connect(const char *name, u32 length, u32 *ret);
IMPORT(TYPES, "[resource-drop]client") void client_drop(u32 client);
IMPORT(TYPES, "[constructor]message") u32 message_new(const u8 *data, u32 length);
IMPORT(TYPES, "[resource-drop]message") void message_drop(u32 message);
IMPORT(TYPES, "[method]message.data") void message_data(u32 message, u32 *ret);
IMPORT("wasi:messaging/producer@0.2.0-draft", "send")
void producer_send(u32 client, const char *topic, u32 length, u32 message, u32 *ret);

static u8 heap[1 << 16];
static u32 used;

__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, u32 old_size, u32 align, u32 size) {
  (void)old;
  (void)old_size;
  used = (used + align - 1) & ~(align - 1);
  void *at = heap + used;
  used += size;
  return at;
}

static u32 answer[4]; // result<_, error>

__attribute__((export_name("wasi:messaging/incoming-handler@0.2.0-draft#handle"))) u32 *handle(u32 message) {
  static const char why[] = "nothing to do";
  u32 data[2], ret[4];
  message_data(message, data);
  message_drop(message);
  if (data[1] == 0) {
    answer[0] = 1, answer[1] = 3, answer[2] = (u32)why, answer[3] = sizeof why - 1;
    return answer;
  }
  u8 *bytes = (u8 *)data[0];
  for (u32 i = 0, j = data[1] - 1; i < j; i++, j--) {
    u8 swapped = bytes[i];
    bytes[i] = bytes[j], bytes[j] = swapped;
  }
  client_connect("default", 7, ret);
  u32 client = ret[1];
  producer_send(client, "out", 3, message_new(bytes, data[1]), ret);
  client_drop(client);
  answer[0] = ret[0] & 0xff, answer[1] = ret[1], answer[2] = ret[2], answer[3] = ret[3];
  return answer;
}

__attribute__((export_name("cabi_post_wasi:messaging/incoming-handler@0.2.0-draft#handle"))) void post(u32 *result) {
  (void)result;
  used = 0;
}
