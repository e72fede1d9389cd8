/* longshore.h: message consumers for a Longshore host in C11 or C++11. This header is the whole SDK.

   It needs clang and wasm-ld, and no C library; it works beside one too. A consumer:

       #include "longshore.h"

       static ls_error shout(const ls_message *m) {
         ls_buffer out = LS_ZERO;
         for (size_t i = 0; i < m->data.size; i++) ls_add_byte(&out, (uint8_t)(m->data.bytes[i] & ~0x20));
         ls_message reply = LS_ZERO;
         reply.data = ls_text_of(&out);
         return ls_send(LS("shouts"), &reply);
       }
       LS_HANDLER(shout)

   Memory: everything that a function of this header returns, and what ls_alloc gives, is valid until the handler has
   returned; nothing is to be freed. Handlers run one at a time, each, unless the manifest says otherwise, in a module that is
   as new: keep nothing in variables.

   Texts and bytes are ls_text, a pointer and a length, without a NUL at the end. Topics, content types, metadata, options,
   and what is logged or told as an error must be UTF-8; ls_utf8 repairs what isn't, and errors and log lines are repaired
   without being asked.

   The structures are laid out as the canonical ABI wants them; the assertions below compare them with its table. */

#ifndef LONGSHORE_H
#define LONGSHORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define LS_ASSERT_ static_assert
#define LS_EXTERN_ extern "C"
#define LS_ZERO {}
#else
#define LS_ASSERT_ _Static_assert
#define LS_EXTERN_ extern
#define LS_ZERO {0} /* initializes any structure of this header: absent, empty, default */
#endif

LS_ASSERT_(sizeof(void *) == 4, "build with --target=wasm32");

/* ---- values ---- */

/* Bytes, or a text in UTF-8. */
typedef struct { const uint8_t *bytes; size_t size; } ls_text;

/* LS("literal") is an ls_text. */
#define LS(literal) ls_make_text("" literal, sizeof(literal) - 1)

static inline ls_text ls_make_text(const char *bytes, size_t size) {
  ls_text t = {(const uint8_t *)bytes, size};
  return t;
}

typedef struct { ls_text key, value; } ls_pair;
typedef struct { const ls_pair *items; size_t count; } ls_pairs;
typedef struct { const ls_text *items; size_t count; } ls_texts;

/* Values that may be absent: all zero is absent. */
typedef struct { bool is_some; uint64_t value; } ls_maybe_number;
typedef struct { bool is_some; ls_text value; } ls_maybe_text;

static inline ls_maybe_number ls_number(uint64_t n) {
  ls_maybe_number m = {true, n};
  return m;
}

static inline ls_maybe_text ls_some(ls_text t) {
  ls_maybe_text m = {true, t};
  return m;
}

/* A message that was delivered, or is to be published. Publishing reads content_type (empty = none), data and metadata. */
typedef struct {
  ls_text topic, content_type, data;
  ls_pairs metadata;
  uint32_t handle; /* the host's, of a delivered message; else 0 */
} ls_message;

/* ---- errors ---- */

/* What a handler answers: LS_OK, or an error that the host retries and finally dead-letters with the reason
   "guest-error: <case>". The text goes to the tenant's log; a timeout has none. */
typedef enum { LS_NO_ERROR, LS_TIMEOUT, LS_CONNECTION, LS_PERMISSION_DENIED, LS_OTHER } ls_error_case;
typedef struct { ls_error_case error; ls_text text; } ls_error;

static inline ls_error ls_fail(ls_error_case error, ls_text text) {
  ls_error e = {error, text};
  return e;
}

#define LS_OK ls_fail(LS_NO_ERROR, ls_make_text("", 0))

/* Why a publish was refused. The cases up to LS_STORAGE_FULL have a limit, the others but LS_PUBLISH_TIMEOUT a text. */
typedef enum {
  LS_DEPTH_EXCEEDED, LS_RATE_EXCEEDED, LS_TOO_LARGE, LS_QUOTA_EXCEEDED, LS_HOP_LIMIT, LS_STORAGE_FULL,
  LS_UNAUTHORIZED, LS_INVALID, LS_UNAVAILABLE, LS_PUBLISH_TIMEOUT, LS_PUBLISH_OTHER
} ls_publish_case;

typedef struct {
  uint64_t limit, actual;      /* in messages, messages a second, or bytes: as the case says */
  ls_maybe_number retry_after; /* milliseconds */
  ls_pairs extensions;
} ls_limit;

typedef struct {
  uint8_t error; /* an ls_publish_case */
  union { ls_limit limit; ls_text text; };
} ls_publish_error;

/* ---- publishing ---- */

typedef struct { ls_text key; uint64_t token; } ls_fence;
typedef struct { bool is_some; ls_fence value; } ls_maybe_fence;

/* How a message is published; all zero is the default. Durations are milliseconds, times are Unix milliseconds. */
typedef struct {
  ls_maybe_number delay;         /* invisible until then */
  ls_maybe_number ttl;           /* dead-lettered if undelivered so long after it became visible */
  ls_maybe_number deadline;      /* dead-lettered instead of delivered after this time */
  uint8_t priority;              /* higher is delivered first */
  ls_maybe_text idempotency_key; /* a second publish with this key stores nothing */
  ls_maybe_text ordering_key;    /* messages of one key are handled one at a time, in order */
  ls_maybe_fence fence;          /* drops a message whose token is lower than the highest seen for the key */
  ls_texts required_features;    /* what a consumer must declare to be given the message */
  ls_maybe_text target;          /* the only consumer that is given the message */
  ls_maybe_text cause;           /* in a batch handler: the id of the delivery with whose ack it is committed */
  ls_pairs extensions;
} ls_options;

typedef struct {
  ls_text id;
  bool duplicate; /* the idempotency key was used before */
  ls_pairs extensions;
} ls_receipt;
typedef struct { const ls_receipt *items; size_t count; } ls_receipts;

/* What became of one message. */
typedef struct {
  bool refused;
  union { ls_receipt receipt; ls_publish_error error; };
} ls_result;
typedef struct { const ls_result *items; size_t count; } ls_results;

/* What became of a batch: if it was refused as a whole, none was accepted; else there is a result for each message. */
typedef struct {
  bool refused;
  union { ls_results results; ls_publish_error error; };
} ls_batch_result;

/* What became of a batch that is published all or nothing. */
typedef struct {
  bool refused;
  union { ls_receipts receipts; ls_publish_error error; };
} ls_atomic_result;

/* One message of a batch. options may be NULL. The delivered message itself may be published, and one message twice. */
typedef struct { ls_text topic; const ls_message *message; const ls_options *options; } ls_outgoing;

/* ---- deliveries ---- */

/* Who published a message: its signed context, which the host has verified. */
typedef struct {
  ls_text tenant, subject, issuer, token_id;
  uint64_t issued_at; /* Unix milliseconds */
  ls_pairs extra, extensions;
} ls_claims;
typedef struct { bool is_some; ls_claims value; } ls_maybe_claims;

/* What a message doesn't say of its delivery. Times are Unix milliseconds. */
typedef struct {
  ls_text id, topic;
  uint32_t attempt; /* from 1 */
  uint32_t max_attempts;
  ls_maybe_text previous_reason; /* why the previous attempt failed */
  ls_maybe_text group;
  uint64_t published_at;
  ls_maybe_number expires_at, deadline;
  uint8_t priority;
  ls_maybe_text idempotency_key, ordering_key;
  ls_maybe_fence fence;
  ls_maybe_text parent; /* the message whose handling published this one */
  uint32_t hops;        /* how long the chain of parents is */
  ls_maybe_claims claims;
  ls_pairs trace; /* traceparent and tracestate */
  ls_pairs extensions;
} ls_delivery_info;
typedef struct { bool is_some; ls_delivery_info value; } ls_maybe_delivery_info;

/* ---- requests ---- */

/* How long a request waits, and for how many replies; all zero is for one, as long as the call has time. */
typedef struct { uint32_t timeout_ms, replies; } ls_request_options;

/* The replies to a request, or why there are none. */
typedef struct { ls_error error; const ls_message *items; size_t count; } ls_replies;

/* ---- values ---- */

/* Why a bucket didn't do what it was asked; LS_VALUE_OTHER has a text. */
typedef enum { LS_NO_SUCH_STORE, LS_ACCESS_DENIED, LS_VALUE_OTHER } ls_value_case;
typedef struct {
  uint8_t error; /* an ls_value_case */
  ls_text text;
} ls_value_error;

typedef struct { bool failed; ls_value_error error; } ls_stored;
typedef struct { bool failed; union { uint32_t bucket; ls_value_error error; }; } ls_opened;
typedef struct { bool failed; union { ls_maybe_text value; ls_value_error error; }; } ls_value;
typedef struct { bool failed; union { bool exists; ls_value_error error; }; } ls_existence;
typedef struct { bool failed; union { ls_texts keys; ls_value_error error; }; } ls_keys_result;

/* ---- outcomes ---- */

/* What an outcome handler or a batch handler decides for a message. */
typedef enum { LS_ACK, LS_RETRY, LS_REJECT, LS_SKIP } ls_outcome_case;
typedef struct {
  uint8_t outcome; /* an ls_outcome_case */
  union { ls_maybe_number delay; ls_text text; };
} ls_outcome;

/* Levels of log lines. */
typedef enum { LS_TRACE, LS_DEBUG, LS_INFO, LS_WARN, LS_ERROR, LS_CRITICAL } ls_level;

/* ---- the layouts of the canonical ABI ---- */

#define LS_LAYOUT_(type, size, field, offset) \
  LS_ASSERT_(sizeof(type) == (size) && offsetof(type, field) == (offset), "the canonical ABI's layout of " #type)

LS_LAYOUT_(ls_text, 8, size, 4);
LS_LAYOUT_(ls_pair, 16, value, 8);
LS_LAYOUT_(ls_maybe_text, 12, value, 4);
LS_LAYOUT_(ls_maybe_number, 16, value, 8);
LS_LAYOUT_(ls_limit, 40, extensions, 32);
LS_LAYOUT_(ls_publish_error, 48, limit, 8);
LS_LAYOUT_(ls_fence, 16, token, 8);
LS_LAYOUT_(ls_options, 144, priority, 48);
LS_LAYOUT_(ls_options, 144, fence, 80);
LS_LAYOUT_(ls_options, 144, cause, 124);
LS_LAYOUT_(ls_options, 144, extensions, 136);
LS_LAYOUT_(ls_receipt, 20, extensions, 12);
LS_LAYOUT_(ls_result, 56, receipt, 8);
LS_LAYOUT_(ls_batch_result, 56, results, 8);
LS_LAYOUT_(ls_atomic_result, 56, receipts, 8);
LS_LAYOUT_(ls_claims, 56, extensions, 48);
LS_LAYOUT_(ls_delivery_info, 240, group, 36);
LS_LAYOUT_(ls_delivery_info, 240, fence, 120);
LS_LAYOUT_(ls_delivery_info, 240, claims, 160);
LS_LAYOUT_(ls_delivery_info, 240, extensions, 232);
LS_LAYOUT_(ls_maybe_delivery_info, 248, value, 8);
LS_LAYOUT_(ls_outcome, 24, delay, 8);

typedef struct { uint8_t error; ls_text text; } ls_abi_error_;
typedef struct { bool is_error; union { uint32_t client; ls_abi_error_ error; }; } ls_abi_client_;
typedef struct { bool is_error; ls_abi_error_ error; } ls_abi_unit_;
typedef struct { bool is_some; ls_pairs value; } ls_abi_maybe_pairs_;
typedef struct { bool is_some; ls_options value; } ls_abi_maybe_options_;
typedef struct { ls_text topic; uint32_t message; ls_abi_maybe_options_ options; } ls_abi_outgoing_;
typedef struct { uint32_t client; ls_text topic; uint32_t message; ls_abi_maybe_options_ options; } ls_abi_publish_;
typedef struct { const ls_outcome *items; size_t count; } ls_abi_list_;
typedef struct { bool is_error; union { ls_abi_list_ outcomes; ls_abi_error_ error; }; } ls_abi_outcomes_;
typedef struct { const uint32_t *items; size_t count; } ls_abi_handles_;
typedef struct { bool is_error; union { ls_abi_handles_ replies; ls_abi_error_ error; }; } ls_abi_replies_;
typedef struct { ls_texts keys; ls_maybe_number cursor; } ls_abi_page_;
typedef struct { bool failed; union { ls_abi_page_ page; ls_value_error error; }; } ls_abi_keys_;

LS_LAYOUT_(ls_abi_client_, 16, client, 4);
LS_LAYOUT_(ls_abi_unit_, 16, error, 4);
LS_LAYOUT_(ls_abi_maybe_options_, 152, value, 8);
LS_LAYOUT_(ls_abi_outgoing_, 168, options, 16);
LS_LAYOUT_(ls_abi_publish_, 168, options, 16);
LS_LAYOUT_(ls_abi_outcomes_, 16, outcomes, 4);
LS_LAYOUT_(ls_abi_replies_, 16, replies, 4);
LS_LAYOUT_(ls_stored, 16, error, 4);
LS_LAYOUT_(ls_opened, 16, bucket, 4);
LS_LAYOUT_(ls_value, 16, value, 4);
LS_LAYOUT_(ls_existence, 16, exists, 4);
LS_LAYOUT_(ls_abi_keys_, 32, page, 8);

/* ---- imports ---- */

#define LS_IMPORT_(module, name) __attribute__((import_module(module), import_name(name)))
#define LS_EXPORT_(name) __attribute__((export_name(name)))
#define LS_TYPES_ "wasi:messaging/types@0.2.0-draft"
#define LS_PUBLISHER_ "longshore:messaging/publisher@0.1.0"
#define LS_DELIVERY_ "longshore:messaging/delivery@0.1.0"
#define LS_REQUEST_REPLY_ "wasi:messaging/request-reply@0.2.0-draft"
#define LS_STORE_ "wasi:keyvalue/store@0.2.0-draft"

LS_EXTERN_ void ls_abi_connect_(const char *, size_t, ls_abi_client_ *) LS_IMPORT_(LS_TYPES_, "[static]client.connect");
LS_EXTERN_ void ls_abi_drop_client_(uint32_t) LS_IMPORT_(LS_TYPES_, "[resource-drop]client");
LS_EXTERN_ uint32_t ls_abi_new_message_(const uint8_t *, size_t) LS_IMPORT_(LS_TYPES_, "[constructor]message");
LS_EXTERN_ void ls_abi_drop_message_(uint32_t) LS_IMPORT_(LS_TYPES_, "[resource-drop]message");
LS_EXTERN_ void ls_abi_topic_(uint32_t, ls_maybe_text *) LS_IMPORT_(LS_TYPES_, "[method]message.topic");
LS_EXTERN_ void ls_abi_type_(uint32_t, ls_maybe_text *) LS_IMPORT_(LS_TYPES_, "[method]message.content-type");
LS_EXTERN_ void ls_abi_data_(uint32_t, ls_text *) LS_IMPORT_(LS_TYPES_, "[method]message.data");
LS_EXTERN_ void ls_abi_metadata_(uint32_t, ls_abi_maybe_pairs_ *) LS_IMPORT_(LS_TYPES_, "[method]message.metadata");
LS_EXTERN_ void ls_abi_set_type_(uint32_t, const uint8_t *, size_t)
    LS_IMPORT_(LS_TYPES_, "[method]message.set-content-type");
LS_EXTERN_ void ls_abi_set_metadata_(uint32_t, const ls_pair *, size_t)
    LS_IMPORT_(LS_TYPES_, "[method]message.set-metadata");
LS_EXTERN_ void ls_abi_send_(uint32_t, const uint8_t *, size_t, uint32_t, ls_abi_unit_ *)
    LS_IMPORT_("wasi:messaging/producer@0.2.0-draft", "send");
LS_EXTERN_ void ls_abi_publish_one_(const ls_abi_publish_ *, ls_result *) LS_IMPORT_(LS_PUBLISHER_, "publish");
LS_EXTERN_ void ls_abi_publish_batch_(uint32_t, const ls_abi_outgoing_ *, size_t, ls_batch_result *)
    LS_IMPORT_(LS_PUBLISHER_, "publish-batch");
LS_EXTERN_ void ls_abi_publish_atomic_(uint32_t, const ls_abi_outgoing_ *, size_t, ls_atomic_result *)
    LS_IMPORT_(LS_PUBLISHER_, "publish-atomic");
LS_EXTERN_ void ls_abi_info_(uint32_t, ls_maybe_delivery_info *) LS_IMPORT_(LS_DELIVERY_, "info");
LS_EXTERN_ uint64_t ls_abi_time_left_(void) LS_IMPORT_(LS_DELIVERY_, "time-left");
LS_EXTERN_ uint32_t ls_abi_draining_(void) LS_IMPORT_(LS_DELIVERY_, "draining");
LS_EXTERN_ void ls_abi_log_(uint32_t, const uint8_t *, size_t, const uint8_t *, size_t)
    LS_IMPORT_("wasi:logging/logging@0.1.0-draft", "log");
LS_EXTERN_ uint32_t ls_abi_new_options_(void) LS_IMPORT_(LS_REQUEST_REPLY_, "[constructor]request-options");
LS_EXTERN_ void ls_abi_set_timeout_(uint32_t, uint32_t)
    LS_IMPORT_(LS_REQUEST_REPLY_, "[method]request-options.set-timeout-ms");
LS_EXTERN_ void ls_abi_set_replies_(uint32_t, uint32_t)
    LS_IMPORT_(LS_REQUEST_REPLY_, "[method]request-options.set-expected-replies");
LS_EXTERN_ void ls_abi_request_(uint32_t, const uint8_t *, size_t, uint32_t, uint32_t, uint32_t, ls_abi_replies_ *)
    LS_IMPORT_(LS_REQUEST_REPLY_, "request");
LS_EXTERN_ void ls_abi_reply_(uint32_t, uint32_t, ls_abi_unit_ *) LS_IMPORT_(LS_REQUEST_REPLY_, "reply");
LS_EXTERN_ void ls_abi_open_(const uint8_t *, size_t, ls_opened *) LS_IMPORT_(LS_STORE_, "open");
LS_EXTERN_ void ls_abi_get_(uint32_t, const uint8_t *, size_t, ls_value *) LS_IMPORT_(LS_STORE_, "[method]bucket.get");
LS_EXTERN_ void ls_abi_set_(uint32_t, const uint8_t *, size_t, const uint8_t *, size_t, ls_stored *)
    LS_IMPORT_(LS_STORE_, "[method]bucket.set");
LS_EXTERN_ void ls_abi_delete_(uint32_t, const uint8_t *, size_t, ls_stored *)
    LS_IMPORT_(LS_STORE_, "[method]bucket.delete");
LS_EXTERN_ void ls_abi_exists_(uint32_t, const uint8_t *, size_t, ls_existence *)
    LS_IMPORT_(LS_STORE_, "[method]bucket.exists");
LS_EXTERN_ void ls_abi_list_keys_(uint32_t, uint32_t, uint64_t, ls_abi_keys_ *)
    LS_IMPORT_(LS_STORE_, "[method]bucket.list-keys");
LS_EXTERN_ void ls_abi_config_(const uint8_t *, size_t, ls_value *) LS_IMPORT_("wasi:config/store@0.2.0-draft", "get");

/* ---- memory ---- */

/* The first bytes come from the module's own memory, so that small messages don't make it grow. */
#define LS_FIRST_BYTES_ 16384
#define LS_PAGE_BYTES_ 65536

/* A block that memory was grown by; blocks are kept and used again. */
typedef struct ls_block_ { struct ls_block_ *next; uintptr_t end; } ls_block_;

typedef struct {
  uint8_t first[LS_FIRST_BYTES_] __attribute__((aligned(8)));
  ls_block_ *blocks, *block;
  uintptr_t at, end; /* what is free; 0 before the first call */
  uint32_t client;   /* the delivery's, or 0 */
  uint32_t kept;     /* messages that were published and whose handles are left to the host, */
  size_t kept_bytes; /* and their payloads */
  union { ls_abi_unit_ unit; ls_outcome outcome; ls_abi_outcomes_ outcomes; } answer;
} ls_state_;

/* One for the whole module, whichever of its files define it. */
__attribute__((weak)) ls_state_ ls_state;

static inline void ls_copy_(void *to, const void *from, size_t size) {
  if (size > 0) __builtin_memcpy(to, from, size);
}

/* Makes the next block that has room for so many bytes the current one. */
static inline void ls_more_(size_t size) {
  ls_block_ **next = ls_state.block ? &ls_state.block->next : &ls_state.blocks;
  while (*next && (*next)->end - (uintptr_t)(*next + 1) < size) next = &(*next)->next;
  if (!*next) {
    size_t pages = size / LS_PAGE_BYTES_ + 1 + (size % LS_PAGE_BYTES_ + sizeof(ls_block_) > LS_PAGE_BYTES_);
    size_t old = __builtin_wasm_memory_grow(0, pages);
    if (old == SIZE_MAX) __builtin_trap();
    *next = (ls_block_ *)(old * LS_PAGE_BYTES_);
    (*next)->next = 0;
    (*next)->end = (uintptr_t)*next + (pages * LS_PAGE_BYTES_ - 1); /* the last byte of memory stays unused: no overflow */
  }
  ls_state.block = *next;
  ls_state.at = (uintptr_t)(*next + 1);
  ls_state.end = (*next)->end;
}

/* Returns so many bytes, aligned to 8, that are valid until the handler has returned. Traps if memory is refused. */
static inline void *ls_alloc(size_t size) {
  if (ls_state.end == 0) {
    ls_state.at = (uintptr_t)ls_state.first;
    ls_state.end = ls_state.at + LS_FIRST_BYTES_;
  }
  uintptr_t at = (ls_state.at + 7) & ~(uintptr_t)7;
  if (at > ls_state.end || ls_state.end - at < size) {
    ls_more_(size);
    at = ls_state.at;
  }
  ls_state.at = at + size;
  return (void *)at;
}

static inline void *ls_realloc_(void *old, size_t old_size, size_t align, size_t size) {
  if (size == 0) return (void *)align;
  void *to = ls_alloc(size);
  ls_copy_(to, old, old_size < size ? old_size : size);
  return to;
}

/* The host has read the answer: all memory is free again. */
static inline void ls_release_(void) {
  ls_state.block = 0;
  ls_state.end = 0;
}

/* ---- text ---- */

static inline bool ls_equal(ls_text a, ls_text b) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; i++)
    if (a.bytes[i] != b.bytes[i]) return false;
  return true;
}

static inline bool ls_starts_with(ls_text t, ls_text prefix) {
  ls_text start = {t.bytes, prefix.size};
  return t.size >= prefix.size && ls_equal(start, prefix);
}

/* Returns what is from byte `from` on, `to` excluded; both are cut to the size. */
static inline ls_text ls_slice(ls_text t, size_t from, size_t to) {
  if (to > t.size) to = t.size;
  if (from > to) from = to;
  ls_text part = {t.bytes + from, to - from};
  return part;
}

/* Returns where a byte is first, or the size if it isn't there. */
static inline size_t ls_find(ls_text t, uint8_t byte) {
  size_t i = 0;
  while (i < t.size && t.bytes[i] != byte) i++;
  return i;
}

/* Bytes that grow; all zero is empty. */
typedef struct { uint8_t *bytes; size_t size, capacity; } ls_buffer;

static inline void ls_reserve_(ls_buffer *b, size_t more) {
  if (b->capacity - b->size >= more) return;
  size_t capacity = b->size + more;
  if (capacity < more || capacity > SIZE_MAX / 2) __builtin_trap();
  if (capacity < 2 * b->capacity) capacity = 2 * b->capacity;
  uint8_t *bytes = (uint8_t *)ls_alloc(capacity);
  ls_copy_(bytes, b->bytes, b->size);
  b->bytes = bytes;
  b->capacity = capacity;
}

static inline void ls_add(ls_buffer *b, ls_text t) {
  ls_reserve_(b, t.size);
  ls_copy_(b->bytes + b->size, t.bytes, t.size);
  b->size += t.size;
}

static inline void ls_add_byte(ls_buffer *b, uint8_t byte) {
  ls_reserve_(b, 1);
  b->bytes[b->size++] = byte;
}

/* Adds a number in decimal. */
static inline void ls_add_number(ls_buffer *b, uint64_t n) {
  uint8_t digits[20];
  size_t at = sizeof digits;
  do digits[--at] = (uint8_t)('0' + n % 10);
  while ((n /= 10) != 0);
  ls_text t = {digits + at, sizeof digits - at};
  ls_add(b, t);
}

static inline ls_text ls_text_of(const ls_buffer *b) {
  ls_text t = {b->bytes, b->size};
  return t;
}

static inline ls_text ls_concat(ls_text a, ls_text b) {
  ls_buffer all = LS_ZERO;
  ls_add(&all, a);
  ls_add(&all, b);
  return ls_text_of(&all);
}

/* Returns the length of the well-formed UTF-8 character at the beginning, or 0. */
static inline size_t ls_character_(const uint8_t *b, size_t size) {
  if (size == 0) return 0;
  if (b[0] < 0x80) return 1;
  size_t n = b[0] >= 0xC2 && b[0] <= 0xDF ? 2 : (b[0] & 0xF0) == 0xE0 ? 3 : b[0] >= 0xF0 && b[0] <= 0xF4 ? 4 : 0;
  if (n == 0 || n > size) return 0;
  for (size_t i = 1; i < n; i++)
    if ((b[i] & 0xC0) != 0x80) return 0;
  bool outside = (b[0] == 0xE0 && b[1] < 0xA0) || (b[0] == 0xED && b[1] > 0x9F) || (b[0] == 0xF0 && b[1] < 0x90) ||
                 (b[0] == 0xF4 && b[1] > 0x8F); /* overlong, a surrogate, or above U+10FFFF */
  return outside ? 0 : n;
}

static inline bool ls_is_utf8(ls_text t) {
  for (size_t at = 0, n; at < t.size; at += n)
    if ((n = ls_character_(t.bytes + at, t.size - at)) == 0) return false;
  return true;
}

/* Returns the text, each byte that isn't UTF-8 replaced by U+FFFD. */
static inline ls_text ls_utf8(ls_text t) {
  if (ls_is_utf8(t)) return t;
  ls_buffer out = LS_ZERO;
  for (size_t at = 0; at < t.size;) {
    size_t n = ls_character_(t.bytes + at, t.size - at);
    ls_add(&out, n ? ls_slice(t, at, at + n) : LS("\xEF\xBF\xBD"));
    at += n ? n : 1;
  }
  return ls_text_of(&out);
}

/* ---- logging and traps ---- */

/* Writes a line to the tenant's log. */
static inline void ls_log(ls_level level, ls_text text) {
  ls_text line = ls_utf8(text);
  ls_abi_log_((uint32_t)level, 0, 0, line.bytes, line.size);
}

/* Logs why, and ends the handler: what it published is dropped, and the attempt failed with "guest-trap: unreachable". */
__attribute__((noreturn)) static inline void ls_trap(ls_text why) {
  ls_log(LS_CRITICAL, why);
  __builtin_trap();
}

/* ---- publishing ---- */

static inline ls_text ls_publish_case_name(uint8_t error) {
  switch (error) {
    case LS_DEPTH_EXCEEDED: return LS("depth-exceeded");
    case LS_RATE_EXCEEDED: return LS("rate-exceeded");
    case LS_TOO_LARGE: return LS("too-large");
    case LS_QUOTA_EXCEEDED: return LS("quota-exceeded");
    case LS_HOP_LIMIT: return LS("hop-limit");
    case LS_STORAGE_FULL: return LS("storage-full");
    case LS_UNAUTHORIZED: return LS("unauthorized");
    case LS_INVALID: return LS("invalid");
    case LS_UNAVAILABLE: return LS("unavailable");
    case LS_PUBLISH_TIMEOUT: return LS("timeout");
    default: return LS("other");
  }
}

static inline ls_text ls_error_case_name(ls_error_case error) {
  switch (error) {
    case LS_NO_ERROR: return LS("ok");
    case LS_TIMEOUT: return LS("timeout");
    case LS_CONNECTION: return LS("connection");
    case LS_PERMISSION_DENIED: return LS("permission-denied");
    default: return LS("other");
  }
}

/* Says a refusal in words: "depth-exceeded: 11 is over the limit of 10". */
static inline ls_text ls_describe(const ls_publish_error *e) {
  ls_buffer b = LS_ZERO;
  ls_add(&b, ls_publish_case_name(e->error));
  if (e->error <= LS_STORAGE_FULL) {
    ls_add(&b, LS(": "));
    ls_add_number(&b, e->limit.actual);
    ls_add(&b, LS(" is over the limit of "));
    ls_add_number(&b, e->limit.limit);
  } else if (e->error != LS_PUBLISH_TIMEOUT) {
    ls_add(&b, LS(": "));
    ls_add(&b, e->text);
  }
  return ls_text_of(&b);
}

/* Returns a refusal as a handler's error, with the case that is nearest. */
static inline ls_error ls_refused(const ls_publish_error *e) {
  ls_error_case nearest = e->error == LS_UNAUTHORIZED      ? LS_PERMISSION_DENIED
                          : e->error == LS_PUBLISH_TIMEOUT ? LS_TIMEOUT
                          : e->error == LS_UNAVAILABLE     ? LS_CONNECTION
                                                           : LS_OTHER;
  return ls_fail(nearest, ls_describe(e));
}

/* Returns the first refusal in a batch as a handler's error, or LS_OK. */
static inline ls_error ls_all_accepted(const ls_batch_result *batch) {
  if (batch->refused) return ls_refused(&batch->error);
  for (size_t i = 0; i < batch->results.count; i++)
    if (batch->results.items[i].refused) return ls_refused(&batch->results.items[i].error);
  return LS_OK;
}

static inline ls_error ls_lift_error_(const ls_abi_error_ *e) {
  return ls_fail((ls_error_case)(e->error + 1), e->error + 1 == LS_TIMEOUT ? ls_make_text("", 0) : e->text);
}

/* Opens the delivery's client at the first publish. */
static inline ls_error ls_connect_(void) {
  if (ls_state.client != 0) return LS_OK;
  ls_abi_client_ answer;
  ls_abi_connect_("default", sizeof "default" - 1, &answer);
  if (answer.is_error) return ls_lift_error_(&answer.error);
  ls_state.client = answer.client;
  return LS_OK;
}

/* Makes a message of the host's. */
static inline uint32_t ls_lower_(const ls_message *m) {
  uint32_t handle = ls_abi_new_message_(m->data.bytes, m->data.size);
  if (m->content_type.size > 0) ls_abi_set_type_(handle, m->content_type.bytes, m->content_type.size);
  if (m->metadata.count > 0) ls_abi_set_metadata_(handle, m->metadata.items, m->metadata.count);
  return handle;
}

/* What is left to the host until the handler has returned, when it takes all handles back: giving back each costs a call. */
#define LS_KEPT_MESSAGES_ 256
#define LS_KEPT_BYTES_ (1024 * 1024)

/* Gives back the handle of a message that was published, unless the delivery has few. */
static inline void ls_published_(uint32_t handle, const ls_message *m) {
  if (ls_state.kept < LS_KEPT_MESSAGES_ && m->data.size <= LS_KEPT_BYTES_ - ls_state.kept_bytes) {
    ls_state.kept++;
    ls_state.kept_bytes += m->data.size;
    return;
  }
  ls_abi_drop_message_(handle);
}

/* Publishes a message when the handler has answered LS_OK. The host checks it now. */
static inline ls_error ls_send(ls_text topic, const ls_message *m) {
  ls_error e = ls_connect_();
  if (e.error != LS_NO_ERROR) return e;
  ls_abi_unit_ answer;
  ls_abi_send_(ls_state.client, topic.bytes, topic.size, ls_lower_(m), &answer);
  return answer.is_error ? ls_lift_error_(&answer.error) : LS_OK;
}

static inline ls_abi_maybe_options_ ls_lower_options_(const ls_options *options) {
  ls_abi_maybe_options_ o = LS_ZERO;
  if (options) {
    o.is_some = true;
    o.value = *options;
  }
  return o;
}

static inline ls_publish_error ls_not_connected_(ls_error e) {
  ls_publish_error p = LS_ZERO;
  p.error = LS_UNAVAILABLE;
  p.text = e.text;
  return p;
}

/* Publishes a message with options, which may be NULL. It says more than ls_send: an id, or why not. */
static inline ls_result ls_publish(ls_text topic, const ls_message *m, const ls_options *options) {
  ls_result result = LS_ZERO;
  ls_error e = ls_connect_();
  if (e.error != LS_NO_ERROR) {
    result.refused = true;
    result.error = ls_not_connected_(e);
    return result;
  }
  ls_abi_publish_ arguments = {ls_state.client, topic, ls_lower_(m), ls_lower_options_(options)};
  ls_abi_publish_one_(&arguments, &result);
  ls_published_(arguments.message, m);
  return result;
}

static inline ls_abi_outgoing_ *ls_lower_batch_(const ls_outgoing *batch, size_t count) {
  if (count > SIZE_MAX / sizeof(ls_abi_outgoing_)) __builtin_trap();
  ls_abi_outgoing_ *list = (ls_abi_outgoing_ *)ls_alloc(count * sizeof(ls_abi_outgoing_));
  for (size_t i = 0; i < count; i++) {
    list[i].topic = batch[i].topic;
    list[i].message = ls_lower_(batch[i].message);
    list[i].options = ls_lower_options_(batch[i].options);
  }
  return list;
}

static inline void ls_batch_published_(const ls_abi_outgoing_ *list, const ls_outgoing *batch, size_t count) {
  for (size_t i = 0; i < count; i++) ls_published_(list[i].message, batch[i].message);
}

/* Publishes many messages in one call to the host. Some may be refused and the others accepted: see ls_all_accepted. */
static inline ls_batch_result ls_publish_batch(const ls_outgoing *batch, size_t count) {
  ls_batch_result result = LS_ZERO;
  ls_error e = ls_connect_();
  if (e.error != LS_NO_ERROR) {
    result.refused = true;
    result.error = ls_not_connected_(e);
    return result;
  }
  ls_abi_outgoing_ *list = ls_lower_batch_(batch, count);
  ls_abi_publish_batch_(ls_state.client, list, count, &result);
  ls_batch_published_(list, batch, count);
  return result;
}

/* Publishes many messages, or, if one of them is refused, none. */
static inline ls_atomic_result ls_publish_atomic(const ls_outgoing *batch, size_t count) {
  ls_atomic_result result = LS_ZERO;
  ls_error e = ls_connect_();
  if (e.error != LS_NO_ERROR) {
    result.refused = true;
    result.error = ls_not_connected_(e);
    return result;
  }
  ls_abi_outgoing_ *list = ls_lower_batch_(batch, count);
  ls_abi_publish_atomic_(ls_state.client, list, count, &result);
  ls_batch_published_(list, batch, count);
  return result;
}

/* ---- deliveries ---- */

/* Returns the delivery's details; absent for a message that the handler made itself. */
static inline ls_maybe_delivery_info ls_delivery(const ls_message *m) {
  ls_maybe_delivery_info info = LS_ZERO;
  if (m->handle != 0) ls_abi_info_(m->handle, &info);
  return info;
}

/* Returns how many milliseconds are left for this call. */
static inline uint64_t ls_time_left(void) { return ls_abi_time_left_(); }

/* Reports whether the host is stopping: finish what is begun, skip the rest. */
static inline bool ls_draining(void) { return ls_abi_draining_() != 0; }

/* Outcomes: done; again later, and this attempt counts; a dead letter now, with a text for the tenant's log; not touched:
   again later, and this attempt doesn't count. */
static inline ls_outcome ls_outcome_(ls_outcome_case outcome) {
  ls_outcome o = LS_ZERO;
  o.outcome = (uint8_t)outcome;
  return o;
}
static inline ls_outcome ls_ack(void) { return ls_outcome_(LS_ACK); }
static inline ls_outcome ls_skip(void) { return ls_outcome_(LS_SKIP); }
static inline ls_outcome ls_retry(void) { return ls_outcome_(LS_RETRY); }
static inline ls_outcome ls_retry_after(uint64_t milliseconds) {
  ls_outcome o = ls_outcome_(LS_RETRY);
  o.delay = ls_number(milliseconds);
  return o;
}
static inline ls_outcome ls_reject(ls_text why) {
  ls_outcome o = ls_outcome_(LS_REJECT);
  o.text = ls_utf8(why);
  return o;
}

static inline ls_message ls_lift_(uint32_t handle) {
  ls_message m = LS_ZERO;
  m.handle = handle;
  ls_maybe_text topic, type;
  ls_abi_maybe_pairs_ metadata;
  ls_abi_topic_(handle, &topic);
  ls_abi_type_(handle, &type);
  ls_abi_data_(handle, &m.data);
  ls_abi_metadata_(handle, &metadata);
  if (topic.is_some) m.topic = topic.value;
  if (type.is_some) m.content_type = type.value;
  if (metadata.is_some) m.metadata = metadata.value;
  return m;
}

/* ---- requests ---- */

/* Publishes a message at once, and waits for replies to it: until as many came as are expected, or until the time is over, which
   gives those that came; without any, the error is LS_TIMEOUT. options may be NULL. ls_delivery says who replied. A request isn't
   undone if the handler fails afterwards, and made again when the message is delivered again. */
static inline ls_replies ls_request(ls_text topic, const ls_message *m, const ls_request_options *options) {
  ls_replies replies = LS_ZERO;
  replies.error = ls_connect_();
  if (replies.error.error != LS_NO_ERROR) return replies;
  uint32_t handle = options ? ls_abi_new_options_() : 0;
  if (options && options->timeout_ms > 0) ls_abi_set_timeout_(handle, options->timeout_ms);
  if (options && options->replies > 0) ls_abi_set_replies_(handle, options->replies);
  uint32_t message = ls_lower_(m);
  ls_abi_replies_ answer;
  ls_abi_request_(ls_state.client, topic.bytes, topic.size, message, options != 0, handle, &answer);
  ls_published_(message, m);
  if (answer.is_error) {
    replies.error = ls_lift_error_(&answer.error);
    return replies;
  }
  ls_message *items = (ls_message *)ls_alloc(answer.replies.count * sizeof(ls_message));
  for (size_t i = 0; i < answer.replies.count; i++) items[i] = ls_lift_(answer.replies.items[i]);
  replies.items = items;
  replies.count = answer.replies.count;
  return replies;
}

/* Publishes an answer to a delivered message, for whoever waits for it, when the handler has answered LS_OK. */
static inline ls_error ls_reply(const ls_message *to, const ls_message *m) {
  if (to->handle == 0) return ls_fail(LS_OTHER, LS("only a message that is being handled can be replied to"));
  ls_abi_unit_ answer;
  ls_abi_reply_(to->handle, ls_lower_(m), &answer);
  return answer.is_error ? ls_lift_error_(&answer.error) : LS_OK;
}

/* ---- values, which belong to the consumer's tenant ---- */

/* Says in words why a bucket didn't do what it was asked. */
static inline ls_text ls_describe_value(const ls_value_error *e) {
  if (e->error == LS_NO_SUCH_STORE) return LS("no-such-store");
  return e->error == LS_ACCESS_DENIED ? LS("access-denied") : ls_concat(LS("other: "), e->text);
}

/* Opens a bucket that the manifest grants, until the handler returns. A handler is one transaction: it reads what it wrote, and
   what it wrote is stored when it has answered LS_OK, with what it published, or not at all. */
static inline ls_opened ls_open_bucket(ls_text name) {
  ls_opened opened;
  ls_abi_open_(name.bytes, name.size, &opened);
  return opened;
}

/* Returns the value under a key, which may be absent. */
static inline ls_value ls_get(uint32_t bucket, ls_text key) {
  ls_value value;
  ls_abi_get_(bucket, key.bytes, key.size, &value);
  return value;
}

/* Sets the value under a key, which is 1 to 256 bytes of UTF-8. */
static inline ls_stored ls_set(uint32_t bucket, ls_text key, ls_text value) {
  ls_stored stored;
  ls_abi_set_(bucket, key.bytes, key.size, value.bytes, value.size, &stored);
  return stored;
}

/* Deletes the value under a key, if there is one. */
static inline ls_stored ls_delete(uint32_t bucket, ls_text key) {
  ls_stored stored;
  ls_abi_delete_(bucket, key.bytes, key.size, &stored);
  return stored;
}

/* Says whether there is a value under a key. */
static inline ls_existence ls_exists(uint32_t bucket, ls_text key) {
  ls_existence existence;
  ls_abi_exists_(bucket, key.bytes, key.size, &existence);
  return existence;
}

/* Returns all keys of a bucket, in the order of their bytes. The host gives a few hundred at a time. */
static inline ls_keys_result ls_keys(uint32_t bucket) {
  ls_keys_result result = LS_ZERO;
  ls_maybe_number cursor = LS_ZERO;
  do {
    ls_abi_keys_ page;
    ls_abi_list_keys_(bucket, cursor.is_some, cursor.value, &page);
    if (page.failed) {
      result.failed = true;
      result.error = page.error;
      return result;
    }
    ls_texts more = page.page.keys;
    ls_text *all = (ls_text *)ls_alloc((result.keys.count + more.count) * sizeof(ls_text));
    for (size_t i = 0; i < result.keys.count; i++) all[i] = result.keys.items[i];
    for (size_t i = 0; i < more.count; i++) all[result.keys.count + i] = more.items[i];
    result.keys.items = all;
    result.keys.count += more.count;
    cursor = page.page.cursor;
  } while (cursor.is_some);
  return result;
}

/* Returns what the manifest says for a key under config, which may be absent. */
static inline ls_maybe_text ls_config(ls_text key) {
  ls_value value;
  ls_maybe_text none = LS_ZERO;
  ls_abi_config_(key.bytes, key.size, &value);
  return value.failed ? none : value.value;
}

/* ---- the end of a delivery ---- */

/* Ends a delivery: its handles go. */
static inline void ls_end_(const ls_message *messages, size_t count) {
  for (size_t i = 0; i < count; i++) ls_abi_drop_message_(messages[i].handle);
  if (ls_state.client != 0) ls_abi_drop_client_(ls_state.client);
  ls_state.client = 0;
  ls_state.kept = 0;
  ls_state.kept_bytes = 0;
}

static inline ls_abi_error_ ls_lower_error_(ls_error e) {
  ls_abi_error_ abi = {(uint8_t)(e.error - 1), ls_utf8(e.text)};
  return abi;
}

static inline const ls_abi_unit_ *ls_handle_(uint32_t handle, ls_error (*handler)(const ls_message *)) {
  ls_message m = ls_lift_(handle);
  ls_error e = handler(&m);
  ls_end_(&m, 1);
  ls_state.answer.unit.is_error = e.error != LS_NO_ERROR;
  if (e.error != LS_NO_ERROR) ls_state.answer.unit.error = ls_lower_error_(e);
  return &ls_state.answer.unit;
}

static inline const ls_outcome *ls_decide_(uint32_t handle, ls_outcome (*handler)(const ls_message *)) {
  ls_message m = ls_lift_(handle);
  ls_state.answer.outcome = handler(&m);
  ls_end_(&m, 1);
  return &ls_state.answer.outcome;
}

static inline const ls_abi_outcomes_ *ls_handle_batch_(
    const uint32_t *handles, size_t count, ls_error (*handler)(const ls_message *, size_t, ls_outcome *)) {
  ls_message *messages = (ls_message *)ls_alloc(count * sizeof(ls_message));
  ls_outcome *outcomes = (ls_outcome *)ls_alloc(count * sizeof(ls_outcome));
  for (size_t i = 0; i < count; i++) {
    messages[i] = ls_lift_(handles[i]);
    outcomes[i] = ls_skip();
  }
  ls_error e = handler(messages, count, outcomes);
  ls_end_(messages, count);
  ls_abi_outcomes_ *answer = &ls_state.answer.outcomes;
  answer->is_error = e.error != LS_NO_ERROR;
  if (answer->is_error) {
    answer->error = ls_lower_error_(e);
  } else {
    answer->outcomes.items = outcomes;
    answer->outcomes.count = count;
  }
  return answer;
}

/* ---- exports: a module has one handler, of one of three kinds ---- */

#define LS_EXPORTS_(handler_export)                                                                             \
  LS_EXTERN_ LS_EXPORT_("cabi_realloc") void *ls_export_realloc(void *, size_t, size_t, size_t);                \
  void *ls_export_realloc(void *old, size_t old_size, size_t align, size_t size) {                              \
    return ls_realloc_(old, old_size, align, size);                                                             \
  }                                                                                                             \
  LS_EXTERN_ LS_EXPORT_("cabi_post_" handler_export) void ls_export_post(uint32_t);                             \
  void ls_export_post(uint32_t answer) {                                                                        \
    (void)answer;                                                                                               \
    ls_release_();                                                                                              \
  }

/* LS_HANDLER(h): ls_error h(const ls_message *m) is called with each message. */
#define LS_HANDLER(handler)                                                                                     \
  LS_EXPORTS_("wasi:messaging/incoming-handler@0.2.0-draft#handle")                                             \
  LS_EXTERN_ LS_EXPORT_("wasi:messaging/incoming-handler@0.2.0-draft#handle")                                   \
      const ls_abi_unit_ *ls_export_handle(uint32_t);                                                           \
  const ls_abi_unit_ *ls_export_handle(uint32_t message) { return ls_handle_(message, handler); }

/* LS_OUTCOME_HANDLER(h): ls_outcome h(const ls_message *m) decides what becomes of each message. */
#define LS_OUTCOME_HANDLER(handler)                                                                             \
  LS_EXPORTS_("longshore:messaging/outcome-handler@0.1.0#handle")                                               \
  LS_EXTERN_ LS_EXPORT_("longshore:messaging/outcome-handler@0.1.0#handle")                                     \
      const ls_outcome *ls_export_handle(uint32_t);                                                             \
  const ls_outcome *ls_export_handle(uint32_t message) { return ls_decide_(message, handler); }

/* LS_BATCH_HANDLER(h): ls_error h(const ls_message *messages, size_t count, ls_outcome *outcomes) is called with a batch, and
   sets an outcome for each message; they are ls_skip() before. An error retries, and charges, all. */
#define LS_BATCH_HANDLER(handler)                                                                               \
  LS_EXPORTS_("longshore:messaging/batch-handler@0.1.0#handle-batch")                                           \
  LS_EXTERN_ LS_EXPORT_("longshore:messaging/batch-handler@0.1.0#handle-batch")                                 \
      const ls_abi_outcomes_ *ls_export_handle(const uint32_t *, size_t);                                       \
  const ls_abi_outcomes_ *ls_export_handle(const uint32_t *messages, size_t count) {                            \
    return ls_handle_batch_(messages, count, handler);                                                          \
  }

#endif
