// The work that all guests in C do: they read an order, which is a JSON document, and say what it comes to.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_BYTES 64

typedef struct { const uint8_t *at, *end; bool broken; } cursor;

static void space(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

static bool take(cursor *c, uint8_t byte) {
  space(c);
  if (c->at == c->end || *c->at != byte) return false;
  c->at++;
  return true;
}

static void want(cursor *c, uint8_t byte) {
  if (take(c, byte)) return;
  c->broken = true;
  c->at = c->end;
}

typedef struct { const uint8_t *bytes; size_t size; } text;

// Reads a string and returns what stands between the quotes.
static text string(cursor *c) {
  want(c, '"');
  text t = {c->at, 0};
  while (c->at < c->end && *c->at != '"') c->at += *c->at == '\\' && c->end - c->at > 1 ? 2 : 1;
  t.size = (size_t)(c->at - t.bytes);
  want(c, '"');
  return t;
}

static uint64_t number(cursor *c) {
  space(c);
  uint64_t n = 0;
  const uint8_t *start = c->at;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) n = n * 10 + (uint64_t)(*c->at - '0');
  if (c->at == start) c->broken = true;
  return n;
}

static bool is(text t, const char *name) {
  size_t i = 0;
  for (; i < t.size && name[i] != 0 && t.bytes[i] == (uint8_t)name[i]; i++) {}
  return i == t.size && name[i] == 0;
}

// Passes a value of any kind.
static void skip(cursor *c) {
  space(c);
  size_t depth = 0;
  do {
    space(c);
    if (c->at == c->end) { c->broken = true; return; }
    uint8_t b = *c->at;
    if (b == '"') { string(c); continue; }
    c->at++;
    if (b == '{' || b == '[') depth++;
    if (b == '}' || b == ']') depth--;
    if (b != '{' && b != '[' && b != '}' && b != ']' && b != ',' && b != ':')
      while (c->at < c->end && *c->at != ',' && *c->at != '}' && *c->at != ']') c->at++;
  } while (depth > 0);
}

// Reads an object, and hands the key of each member to a function that reads its value.
#define MEMBERS(c, body)                      \
  do {                                        \
    want(c, '{');                             \
    if (take(c, '}')) break;                  \
    do {                                      \
      text key = string(c);                   \
      want(c, ':');                           \
      body                                    \
    } while (!(c)->broken && take(c, ','));   \
    want(c, '}');                             \
  } while (0)

static uint64_t line(cursor *c) {
  uint64_t count = 0, cents = 0;
  MEMBERS(c, {
    if (is(key, "count")) count = number(c);
    else if (is(key, "cents")) cents = number(c);
    else skip(c);
  });
  return count * cents;
}

static uint64_t lines(cursor *c) {
  uint64_t sum = 0;
  want(c, '[');
  if (take(c, ']')) return 0;
  do sum += line(c);
  while (!c->broken && take(c, ','));
  want(c, ']');
  return sum;
}

static size_t put(uint8_t *out, size_t at, const char *s) {
  while (*s) out[at++] = (uint8_t)*s++;
  return at;
}

static size_t put_number(uint8_t *out, size_t at, uint64_t n) {
  uint8_t digits[20];
  size_t i = sizeof digits;
  do digits[--i] = (uint8_t)('0' + n % 10);
  while ((n /= 10) != 0);
  while (i < sizeof digits) out[at++] = digits[i++];
  return at;
}

// Writes the answer to an order to out, of ANSWER_BYTES, and returns its size; 0 if the order can't be read.
static size_t price(const uint8_t *bytes, size_t size, uint8_t *out) {
  cursor c = {bytes, bytes + size, false};
  uint64_t id = 0, sum = 0;
  MEMBERS(&c, {
    if (is(key, "id")) id = number(&c);
    else if (is(key, "lines")) sum = lines(&c);
    else skip(&c);
  });
  if (c.broken) return 0;
  size_t at = put_number(out, put(out, 0, "{\"id\":"), id);
  at = put_number(out, put(out, at, ",\"cents\":"), sum);
  return put(out, at, "}");
}
