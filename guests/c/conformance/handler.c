// The conformance guest: the topic of the message says what to do. guests/conformance/README.md lists the cases.
#include "../longshore.h"

static ls_error trap_after(ls_text count) {
  uint32_t n = 0;
  for (size_t i = 0; i < count.size; i++) n = 10 * n + (count.bytes[i] - '0');
  ls_message empty = LS_ZERO;
  while (n-- > 0) {
    ls_error e = ls_send(LS("out"), &empty);
    if (e.error != LS_NO_ERROR) return e;
  }
  ls_trap(LS("forget it"));
}

// Calls one with a message for each line of the payload, the line's end included.
static size_t split(const ls_message *m, ls_message *lines, size_t most) {
  size_t count = 0;
  for (size_t at = 0; at < m->data.size && count < most; count++) {
    ls_text rest = ls_slice(m->data, at, SIZE_MAX);
    lines[count] = *m;
    lines[count].data = ls_slice(rest, 0, ls_find(rest, '\n') + 1);
    at += lines[count].data.size;
  }
  return count;
}

enum { MOST = 16 };

static size_t outgoing(const ls_message *m, ls_outgoing *batch, ls_message *lines) {
  size_t count = split(m, lines, MOST);
  for (size_t i = 0; i < count; i++) {
    ls_outgoing o = {LS("out"), &lines[i], 0};
    batch[i] = o;
  }
  return count;
}

static ls_error report(ls_text topic, const ls_buffer *text) {
  ls_message m = LS_ZERO;
  m.data = ls_text_of(text);
  return ls_send(topic, &m);
}

static ls_error batch(const ls_message *m) {
  ls_outgoing list[MOST];
  ls_message lines[MOST];
  ls_batch_result r = ls_publish_batch(list, outgoing(m, list, lines));
  ls_error e = ls_all_accepted(&r);
  if (e.error != LS_NO_ERROR) return e;
  ls_buffer ids = LS_ZERO;
  for (size_t i = 0; i < r.results.count; i++) {
    ls_add(&ids, r.results.items[i].receipt.id);
    ls_add_byte(&ids, '\n');
  }
  return report(LS("ids"), &ids);
}

static ls_error atomic(const ls_message *m) {
  ls_outgoing list[MOST];
  ls_message lines[MOST];
  size_t count = outgoing(m, list, lines);
  if (m->content_type.size > 0 && count > 0) list[count - 1].topic = m->content_type;
  ls_atomic_result r = ls_publish_atomic(list, count);
  ls_buffer text = LS_ZERO;
  if (r.refused) {
    ls_add(&text, ls_describe(&r.error));
  } else {
    for (size_t i = 0; i < r.receipts.count; i++) {
      ls_add(&text, r.receipts.items[i].id);
      ls_add_byte(&text, '\n');
    }
  }
  return report(LS("report"), &text);
}

static ls_error again(const ls_message *m) {
  ls_outgoing list[] = {{LS("out"), m, 0}, {LS("out"), m, 0}};
  ls_batch_result r = ls_publish_batch(list, 2);
  return ls_all_accepted(&r);
}

static ls_error refuse(const ls_message *m) {
  ls_outgoing list[] = {{LS("out"), m, 0}, {LS("forbidden"), m, 0}, {LS("full"), m, 0}};
  ls_batch_result r = ls_publish_batch(list, 3);
  if (r.refused) return ls_refused(&r.error);
  ls_buffer text = LS_ZERO;
  for (size_t i = 0; i < r.results.count; i++) {
    const ls_result *one = &r.results.items[i];
    ls_add(&text, one->refused ? ls_describe(&one->error) : LS("ok"));
    ls_add_byte(&text, '\n');
    if (one->refused && one->error.error <= LS_STORAGE_FULL && one->error.limit.retry_after.is_some) {
      ls_add(&text, LS("after "));
      ls_add_number(&text, one->error.limit.retry_after.value);
      ls_add_byte(&text, '\n');
    }
  }
  ls_error e = ls_send(LS("forbidden"), m);
  ls_add(&text, ls_error_case_name(e.error));
  ls_add(&text, LS(": "));
  ls_add(&text, e.text);
  return report(LS("report"), &text);
}

static ls_error each(const ls_message *m) {
  ls_message lines[MOST];
  size_t count = split(m, lines, MOST);
  for (size_t i = 0; i < count; i++) {
    ls_error e = ls_send(LS("out"), &lines[i]);
    if (e.error != LS_NO_ERROR) return e;
  }
  return LS_OK;
}

static ls_error publish(const ls_message *m) {
  const ls_text features[] = {LS("gpu"), LS("eu")};
  const ls_pair extension = {LS("x"), LS("y")};
  ls_options o = LS_ZERO;
  o.delay = ls_number(1000);
  o.ttl = ls_number(2000);
  o.deadline = ls_number(1900000000000);
  o.priority = 7;
  o.idempotency_key = ls_some(LS("once"));
  o.ordering_key = ls_some(LS("in order"));
  o.fence.is_some = true;
  o.fence.value.key = LS("gate");
  o.fence.value.token = 9;
  o.required_features.items = features;
  o.required_features.count = 2;
  o.target = ls_some(LS("me"));
  if (ls_equal(m->data, LS("extension"))) {
    o.extensions.items = &extension;
    o.extensions.count = 1;
  }
  if (ls_equal(m->data, LS("none"))) o = (ls_options)LS_ZERO;
  ls_result r = ls_publish(LS("out"), m, ls_equal(m->data, LS("null")) ? 0 : &o);
  if (r.refused) return ls_refused(&r.error);
  ls_buffer text = LS_ZERO;
  ls_add(&text, r.receipt.id);
  ls_add(&text, r.receipt.duplicate ? LS(" duplicate") : LS(" new"));
  return report(LS("report"), &text);
}

static void field(ls_buffer *b, ls_text name, ls_text value) {
  ls_add(b, name);
  ls_add_byte(b, '=');
  ls_add(b, value);
  ls_add_byte(b, '\n');
}

static void number(ls_buffer *b, ls_text name, uint64_t value) {
  ls_buffer n = LS_ZERO;
  ls_add_number(&n, value);
  field(b, name, ls_text_of(&n));
}

static void maybe_text(ls_buffer *b, ls_text name, ls_maybe_text t) {
  if (t.is_some) field(b, name, t.value);
}

static void maybe_number(ls_buffer *b, ls_text name, ls_maybe_number n) {
  if (n.is_some) number(b, name, n.value);
}

static void pairs(ls_buffer *b, ls_text name, ls_pairs list) {
  for (size_t i = 0; i < list.count; i++)
    field(b, ls_concat(name, list.items[i].key), list.items[i].value);
}

static ls_error info(const ls_message *m) {
  ls_maybe_delivery_info got = ls_delivery(m);
  if (!got.is_some) return ls_fail(LS_OTHER, LS("no delivery info"));
  const ls_delivery_info *d = &got.value;
  ls_buffer b = LS_ZERO;
  field(&b, LS("id"), d->id);
  field(&b, LS("topic"), d->topic);
  number(&b, LS("attempt"), d->attempt);
  number(&b, LS("max-attempts"), d->max_attempts);
  maybe_text(&b, LS("previous-reason"), d->previous_reason);
  maybe_text(&b, LS("group"), d->group);
  number(&b, LS("published-at"), d->published_at);
  maybe_number(&b, LS("expires-at"), d->expires_at);
  maybe_number(&b, LS("deadline"), d->deadline);
  number(&b, LS("priority"), d->priority);
  maybe_text(&b, LS("idempotency-key"), d->idempotency_key);
  maybe_text(&b, LS("ordering-key"), d->ordering_key);
  if (d->fence.is_some) number(&b, ls_concat(LS("fence."), d->fence.value.key), d->fence.value.token);
  maybe_text(&b, LS("parent"), d->parent);
  number(&b, LS("hops"), d->hops);
  if (d->claims.is_some) {
    const ls_claims *c = &d->claims.value;
    field(&b, LS("tenant"), c->tenant);
    field(&b, LS("subject"), c->subject);
    field(&b, LS("issuer"), c->issuer);
    field(&b, LS("token-id"), c->token_id);
    number(&b, LS("issued-at"), c->issued_at);
    pairs(&b, LS("extra."), c->extra);
  }
  pairs(&b, LS("trace."), d->trace);
  field(&b, LS("time-left"), ls_time_left() > 0 ? LS("some") : LS("none"));
  field(&b, LS("draining"), ls_draining() ? LS("yes") : LS("no"));
  ls_message own = LS_ZERO;
  field(&b, LS("own"), ls_delivery(&own).is_some ? LS("some") : LS("none"));
  return report(LS("report"), &b);
}

static ls_error fail(ls_text name, ls_text text) {
  for (int c = LS_TIMEOUT; c <= LS_OTHER; c++)
    if (ls_equal(name, ls_error_case_name((ls_error_case)c))) return ls_fail((ls_error_case)c, text);
  return ls_fail(LS_OTHER, LS("no such case"));
}

static ls_error log_line(const ls_message *m) {
  ls_log(LS_WARN, m->data);
  return LS_OK;
}

// Returns the next word of a text, and takes it off.
static ls_text next_word(ls_text *rest) {
  size_t end = ls_find(*rest, ' ');
  ls_text word = ls_slice(*rest, 0, end);
  *rest = ls_slice(*rest, end + 1, SIZE_MAX);
  return word;
}

static void add_value(ls_buffer *b, ls_text key, ls_maybe_text value, bool exists) {
  ls_add(b, key);
  ls_add(b, value.is_some ? LS(" true") : LS(" false"));
  ls_add(b, exists ? LS(" true \"") : LS(" false \""));
  ls_add(b, value.value);
  ls_add(b, LS("\"\n"));
}

// Keeps the payload's words under their numbers, and reports what it finds.
static ls_error values(const ls_message *m) {
  ls_buffer b = LS_ZERO;
  ls_opened denied = ls_open_bucket(LS("secrets")), opened = ls_open_bucket(LS("stock"));
  if (!denied.failed || opened.failed) return ls_fail(LS_OTHER, LS("the wrong bucket was opened"));
  ls_add(&b, ls_describe_value(&denied.error));
  ls_text rest = m->data;
  for (uint64_t i = 0; rest.size > 0; i++) {
    ls_buffer key = LS_ZERO;
    ls_add(&key, LS("key"));
    ls_add_number(&key, i);
    if (ls_set(opened.bucket, ls_text_of(&key), next_word(&rest)).failed) return ls_fail(LS_OTHER, LS("set failed"));
  }
  ls_set(opened.bucket, LS("empty"), LS(""));
  ls_delete(opened.bucket, LS("key0"));
  ls_keys_result keys = ls_keys(opened.bucket);
  if (keys.failed) return ls_fail(LS_OTHER, ls_describe_value(&keys.error));
  ls_add_byte(&b, '\n');
  ls_add_number(&b, keys.keys.count);
  for (size_t i = 0; i < keys.keys.count; i++) {
    ls_add_byte(&b, ' ');
    ls_add(&b, keys.keys.items[i]);
  }
  ls_add_byte(&b, '\n');
  ls_text asked[] = {LS("key0"), LS("key1"), LS("empty"), LS("before")};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    ls_value value = ls_get(opened.bucket, asked[i]);
    add_value(&b, asked[i], value.value, ls_exists(opened.bucket, asked[i]).exists);
  }
  ls_stored refused = ls_set(opened.bucket, LS(""), LS(""));
  ls_add(&b, refused.failed ? ls_describe_value(&refused.error) : LS("stored"));
  return report(LS("out"), &b);
}

static ls_error config(const ls_message *m) {
  ls_buffer b = LS_ZERO;
  for (ls_text rest = m->data; rest.size > 0;) {
    ls_text key = next_word(&rest);
    ls_maybe_text value = ls_config(key);
    ls_add(&b, key);
    ls_add(&b, LS(": "));
    ls_add(&b, value.is_some ? value.value : LS("nothing"));
    ls_add_byte(&b, '\n');
  }
  return report(LS("report"), &b);
}

static ls_error report_error(ls_error e) {
  ls_buffer b = LS_ZERO;
  ls_add(&b, ls_error_case_name(e.error));
  if (e.text.size > 0) ls_add(&b, LS(": "));
  ls_add(&b, e.text);
  return report(LS("report"), &b);
}

// Requests the message of a topic, and sends the replies to out, as they came.
static ls_error request(ls_text topic, const ls_message *m) {
  ls_request_options options = {1500, 3};
  ls_replies replies = ls_request(topic, m, m->data.size > 0 ? &options : 0);
  if (replies.error.error != LS_NO_ERROR) return report_error(replies.error);
  for (size_t i = 0; i < replies.count; i++) {
    ls_error e = ls_send(LS("out"), &replies.items[i]);
    if (e.error != LS_NO_ERROR) return e;
  }
  ls_maybe_delivery_info d = ls_delivery(&replies.items[0]);
  if (!d.is_some) return LS_OK;
  ls_buffer b = LS_ZERO;
  ls_add(&b, d.value.id);
  ls_add(&b, LS(" of "));
  ls_add(&b, d.value.claims.value.subject);
  return report(LS("report"), &b);
}

// Replies to the message with itself, twice, and says what the host said.
static ls_error reply(const ls_message *m) {
  for (int i = 0; i < 2; i++) {
    ls_error e = ls_reply(m, m);
    if (e.error != LS_NO_ERROR) return report_error(e);
  }
  return LS_OK;
}

static ls_error handle(const ls_message *m) {
  size_t slash = ls_find(m->topic, '/');
  ls_text what = ls_slice(m->topic, 0, slash), detail = ls_slice(m->topic, slash + 1, SIZE_MAX);
  if (ls_equal(what, LS("echo"))) return ls_send(LS("out"), m);
  if (ls_equal(what, LS("batch"))) return batch(m);
  if (ls_equal(what, LS("atomic"))) return atomic(m);
  if (ls_equal(what, LS("again"))) return again(m);
  if (ls_equal(what, LS("refuse"))) return refuse(m);
  if (ls_equal(what, LS("each"))) return each(m);
  if (ls_equal(what, LS("publish"))) return publish(m);
  if (ls_equal(what, LS("info"))) return info(m);
  if (ls_equal(what, LS("values"))) return values(m);
  if (ls_equal(what, LS("config"))) return config(m);
  if (ls_equal(what, LS("request"))) return request(detail, m);
  if (ls_equal(what, LS("reply"))) return reply(m);
  if (ls_equal(what, LS("log"))) return log_line(m);
  if (ls_equal(what, LS("error"))) return fail(detail, m->data);
  if (ls_equal(what, LS("trap"))) ls_trap(m->data);
  if (ls_equal(what, LS("forget"))) return trap_after(detail);
  return ls_fail(LS_OTHER, ls_concat(LS("no such case: "), m->topic));
}
LS_HANDLER(handle)
