// Guests that never end. Their numbers are those of workloads.go.
#include "guest.h"

enum { SPIN, RECURSE, CHASE, FILL, COPY };

enum { BUFFER_PAGES = 512, PAGE = 65536 };

// buffer is memory that no cache of a processor holds, and that costs the host nothing before a guest asks for it.
static u8 *buffer(void)
{
	u32 page = __builtin_wasm_memory_grow(0, BUFFER_PAGES);
	if (page == (u32)-1)
		__builtin_trap();
	return (u8 *)(page * PAGE);
}

static void spin(void)
{
	for (;;)
		__asm__ volatile("");
}

static __attribute__((noinline)) u32 recurse(u32 n)
{
	if (n == 0)
		return 1;
	u32 one = recurse(n - 1);
	__asm__ volatile(""); // the second call is not the first one again
	return one + recurse(n - 1);
}

// chase follows pointers that lie anywhere, so that each step waits for memory.
static u32 chase(void)
{
	u32 *next = (u32 *)buffer();
	const u32 n = BUFFER_PAGES * PAGE / sizeof *next;
	for (u32 i = 0; i < n; i++)
		next[i] = (i * 1664525 + 1013904223) % n; // one cycle through all, as n is a power of two
	u32 at = 0;
	for (volatile u32 go = 1; go;)
		at = next[at];
	return at;
}

static u32 fill(void)
{
	u8 *b = buffer();
	for (volatile u32 n = 1; n; n++)
		__builtin_memset(b, (int)n, BUFFER_PAGES * PAGE);
	return b[0];
}

static u32 copy(void)
{
	u8 *b = buffer();
	for (volatile u32 n = 1; n;)
		__builtin_memmove(b + 1, b, BUFFER_PAGES * PAGE - 1);
	return b[0];
}

u32 run(u32 workload, u32 amount)
{
	(void)amount;
	switch (workload) {
	case SPIN: spin();
	case RECURSE: return recurse(900);
	case CHASE: return chase();
	case FILL: return fill();
	case COPY: return copy();
	}
	__builtin_trap();
}
