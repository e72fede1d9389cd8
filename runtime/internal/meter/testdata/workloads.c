// Work of several kinds to compare plain and instrumented modules with. Built by the benchmark with
// clang --target=wasm32 -O2 -nostdlib -fno-builtin.
typedef unsigned char u8;
typedef unsigned int u32;

#define EXPORT(name) __attribute__((export_name(name)))

static u8 buffer[1 << 16];

static const u32 k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 rotr(u32 x, int n) { return x >> n | x << (32 - n); }

static void block(u32 *h, const u8 *p) {
  u32 w[64];
  for (int i = 0; i < 16; i++) w[i] = p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    u32 s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    u32 s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  u32 a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], x = h[7];
  for (int i = 0; i < 64; i++) {
    u32 t1 = x + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
    u32 t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    x = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += x;
}

EXPORT("sha256") u32 sha256(u32 rounds) {
  u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (u32 r = 0; r < rounds; r++)
    for (u32 i = 0; i < sizeof buffer; i += 64) block(h, buffer + i);
  return h[0];
}

static u8 composite[1 << 20];

EXPORT("sieve") u32 sieve(u32 n) {
  u32 count = 0;
  for (u32 i = 0; i < n; i++) composite[i] = 0;
  for (u32 i = 2; i < n; i++) {
    if (composite[i]) continue;
    count++;
    for (u32 j = 2 * i; j < n; j += i) composite[j] = 1;
  }
  return count;
}

static char text[1 << 16];
static u32 text_size;

static void put(const char *s) {
  while (*s) text[text_size++] = *s++;
}

static void fill_text(void) {
  while (text_size < sizeof text - 200)
    put("{\"id\": 1234, \"name\": \"item \\\"x\\\" \\u00e4\", \"tags\": [\"a\", \"bcd\", true, null], \"price\": -12.5e3},\n");
}

static u32 string(const char *p, u32 i, u32 n) {
  for (i++; i < n && p[i] != '"'; i++)
    if (p[i] == '\\') i++;
  return i + 1;
}

static u32 number(const char *p, u32 i, u32 n) {
  while (i < n && (p[i] >= '0' && p[i] <= '9' || p[i] == '.' || p[i] == '-' || p[i] == '+' || p[i] == 'e' || p[i] == 'E')) i++;
  return i;
}

EXPORT("json") u32 json(u32 rounds) {
  u32 sum = 0;
  if (!text_size) fill_text();
  for (u32 r = 0; r < rounds; r++) {
    u32 depth = 0;
    for (u32 i = 0; i < text_size;) {
      char c = text[i];
      switch (c) {
        case '{': case '[': depth++, i++; break;
        case '}': case ']': depth--, i++; break;
        case ',': case ':': case ' ': case '\n': i++; break;
        case '"': { u32 e = string(text, i, text_size); sum += e - i; i = e; break; }
        case 't': case 'n': i += 4; sum++; break;
        case 'f': i += 5; sum++; break;
        default: { u32 e = number(text, i, text_size); sum += e - i; i = e > i ? e : i + 1; }
      }
    }
    sum += depth;
  }
  return sum;
}

EXPORT("fib") u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

#define SIDE 96
static double left[SIDE][SIDE], right[SIDE][SIDE], product[SIDE][SIDE];

EXPORT("matmul") u32 matmul(u32 rounds) {
  for (int i = 0; i < SIDE; i++)
    for (int j = 0; j < SIDE; j++) left[i][j] = i + j, right[i][j] = i - j;
  for (u32 r = 0; r < rounds; r++)
    for (int i = 0; i < SIDE; i++)
      for (int j = 0; j < SIDE; j++) {
        double s = 0;
        for (int l = 0; l < SIDE; l++) s += left[i][l] * right[l][j];
        product[i][j] = s;
      }
  return (u32)product[SIDE - 1][SIDE - 1];
}
