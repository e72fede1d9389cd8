// Workloads that compute, and two that show what a message costs. Their numbers are those of workloads.go.
#include "guest.h"

IMPORT("wasi_snapshot_preview1", "sched_yield") u32 hostCall(void);

enum { SHA256, SIEVE, JSON, FIB, MATMUL, TOUCH, CALLS };

// SHA-256 (FIPS 180-4) of a mebibyte, a number of times.

static u8 text[1 << 20];

static const u32 roundConstants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 rotate(u32 x, u32 n) { return x >> n | x << (32 - n); }

static void compress(u32 state[8], const u8 *block)
{
	u32 w[64], v[8];
	for (int i = 0; i < 16; i++, block += 4)
		w[i] = (u32)block[0] << 24 | block[1] << 16 | block[2] << 8 | block[3];
	for (int i = 16; i < 64; i++) {
		u32 a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
	for (int i = 0; i < 8; i++)
		v[i] = state[i];
	for (int i = 0; i < 64; i++) {
		u32 a = v[0], e = v[4];
		u32 one = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + roundConstants[i] + w[i];
		u32 two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		v[7] = v[6], v[6] = v[5], v[5] = e, v[4] = v[3] + one;
		v[3] = v[2], v[2] = v[1], v[1] = a, v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

static u32 sha256(u32 rounds)
{
	u32 state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	for (u32 i = 0; i < sizeof text; i++)
		text[i] = (u8)(i * 31 + 7);
	for (; rounds; rounds--)
		for (u32 at = 0; at < sizeof text; at += 64)
			compress(state, text + at);
	return state[0];
}

// The sieve of Eratosthenes: how many primes there are below n.

enum { SIEVE_MOST = 5000000 };

static u8 composite[SIEVE_MOST];

static u32 sieve(u32 n)
{
	if (n > SIEVE_MOST)
		__builtin_trap();
	u32 primes = 0;
	for (u32 i = 0; i < n; i++)
		composite[i] = 0;
	for (u32 i = 2; i < n; i++) {
		if (composite[i])
			continue;
		primes++;
		if (i < 2237) // its square is below SIEVE_MOST
			for (u32 j = i * i; j < n; j += i)
				composite[j] = 1;
	}
	return primes;
}

// A tokenizer of JSON, by recursive descent: how many values a mebibyte of it holds.

static const u8 *cursor, *limit;
static u32 values;

static u32 writeJSON(void)
{
	static const char record[] =
		"{\"order\": 48213, \"customer\": \"Ann \\\"A\\\" Lee\", \"lines\": [1, 2.5e3, -7, true, null], \"to\": {\"city\": \"Ulm\"}},\n";
	u32 n = 0;
	text[n++] = '[';
	while (n + sizeof record + 2 < sizeof text)
		for (const char *r = record; *r; r++)
			text[n++] = (u8)*r;
	text[n++] = '0';
	text[n++] = ']';
	return n;
}

static int at(u8 c) { return cursor < limit && *cursor == c; }

static void skipSpace(void)
{
	while (at(' ') || at('\n') || at('\t') || at('\r'))
		cursor++;
}

static void string(void)
{
	for (cursor++; cursor < limit && *cursor != '"'; cursor++)
		if (*cursor == '\\')
			cursor++;
	cursor++;
}

static void value(void);

static void list(u8 end, int keyed)
{
	cursor++;
	for (skipSpace(); cursor < limit && !at(end); skipSpace()) {
		if (keyed) {
			string();
			skipSpace();
			cursor++; // colon
		}
		value();
		skipSpace();
		if (at(','))
			cursor++;
	}
	cursor++;
}

static int inWord(u8 c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '+' || c == 'E'; }

static void value(void)
{
	skipSpace();
	values++;
	if (at('{'))
		list('}', 1);
	else if (at('['))
		list(']', 0);
	else if (at('"'))
		string();
	else
		while (cursor < limit && inWord(*cursor))
			cursor++;
}

static u32 json(u32 rounds)
{
	u32 n = writeJSON();
	for (values = 0; rounds; rounds--) {
		cursor = text;
		limit = text + n;
		value();
	}
	return values;
}

static __attribute__((noinline)) u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// A product of two square matrices.

enum { ORDER = 128 };

static double left[ORDER][ORDER], right[ORDER][ORDER], product[ORDER][ORDER];

static u32 matmul(u32 rounds)
{
	for (int i = 0; i < ORDER; i++)
		for (int j = 0; j < ORDER; j++)
			left[i][j] = (i + j) % 7, right[i][j] = (i * j) % 5;
	for (; rounds; rounds--)
		for (int i = 0; i < ORDER; i++)
			for (int j = 0; j < ORDER; j++) {
				double sum = 0;
				for (int k = 0; k < ORDER; k++)
					sum += left[i][k] * right[k][j];
				product[i][j] = sum + rounds;
			}
	return (u32)product[5][77];
}

// touch dirties pages, as a handler with some state does.
static u32 touch(u32 pages)
{
	for (u32 i = 0; i < pages; i++)
		composite[i * 4096 + i]++;
	return composite[0];
}

static u32 calls(u32 n)
{
	u32 sum = 0;
	for (; n; n--)
		sum += hostCall();
	return sum;
}

u32 run(u32 workload, u32 amount)
{
	switch (workload) {
	case SHA256: return sha256(amount);
	case SIEVE: return sieve(amount);
	case JSON: return json(amount);
	case FIB: return fib(amount);
	case MATMUL: return matmul(amount);
	case TOUCH: return touch(amount);
	case CALLS: return calls(amount);
	}
	__builtin_trap();
}
