// A consumer that says what an image is, by its first bytes: PNG, GIF or JPEG, and how wide and high.
#include <longshore.h>

typedef struct { ls_text type; uint32_t width, height; } image;

static uint32_t big(const uint8_t *b, size_t bytes) {
  uint32_t n = 0;
  while (bytes-- > 0) n = n << 8 | *b++;
  return n;
}

static bool png(ls_text d, image *i) {
  if (d.size < 24 || !ls_starts_with(d, LS("\x89PNG\r\n\x1a\n"))) return false;
  *i = (image){LS("image/png"), big(d.bytes + 16, 4), big(d.bytes + 20, 4)};
  return true;
}

static bool gif(ls_text d, image *i) {
  if (d.size < 10 || !(ls_starts_with(d, LS("GIF87a")) || ls_starts_with(d, LS("GIF89a")))) return false;
  *i = (image){LS("image/gif"), (uint32_t)(d.bytes[6] | d.bytes[7] << 8), (uint32_t)(d.bytes[8] | d.bytes[9] << 8)};
  return true;
}

// A JPEG is a row of segments: FF, a marker, and, big-endian, the length from there on. The one that begins a frame has the
// size: markers C0 to CF, except for tables (C4), extensions (C8) and arithmetic coding (CC).
static bool jpeg(ls_text d, image *i) {
  if (!ls_starts_with(d, LS("\xFF\xD8\xFF"))) return false;
  for (size_t at = 2; at + 9 <= d.size && d.bytes[at] == 0xFF;) {
    uint8_t marker = d.bytes[at + 1];
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
      *i = (image){LS("image/jpeg"), big(d.bytes + at + 7, 2), big(d.bytes + at + 5, 2)};
      return true;
    }
    size_t length = big(d.bytes + at + 2, 2);
    if (length < 2) return false;
    at += 2 + length;
  }
  return false;
}

static ls_outcome look(const ls_message *m) {
  image i;
  if (!png(m->data, &i) && !gif(m->data, &i) && !jpeg(m->data, &i)) return ls_reject(LS("neither PNG, GIF nor JPEG"));
  ls_buffer json = LS_ZERO;
  ls_add(&json, LS("{\"id\":\""));
  ls_add(&json, ls_delivery(m).value.id);
  ls_add(&json, LS("\",\"type\":\""));
  ls_add(&json, i.type);
  ls_add(&json, LS("\",\"width\":"));
  ls_add_number(&json, i.width);
  ls_add(&json, LS(",\"height\":"));
  ls_add_number(&json, i.height);
  ls_add(&json, LS("}"));
  ls_message out = LS_ZERO;
  out.content_type = LS("application/json");
  out.data = ls_text_of(&json);
  return ls_send(LS("uploads/metadata"), &out).error == LS_NO_ERROR ? ls_ack() : ls_retry();
}
LS_OUTCOME_HANDLER(look)
