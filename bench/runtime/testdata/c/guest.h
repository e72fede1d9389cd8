// What the guests in C share: types, and the part of the messaging ABI that they need.
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

// A message is three numbers: what to do, how much of it, and what must come out.
struct command {
	u32 workload, amount, want;
};

struct list {
	const struct command *data;
	u32 bytes;
};

IMPORT("wasi:messaging/types@0.2.0-draft", "[method]message.data") void messageData(u32 message, struct list *result);

// run does the work. The plain engines call it by itself, so it stays a function of its own.
EXPORT("run") __attribute__((noinline)) u32 run(u32 workload, u32 amount);

static u8 arena[4096] __attribute__((aligned(16)));

// cabi_realloc gives all of the arena to whatever the host has to say: one message.
EXPORT("cabi_realloc") void *cabi_realloc(void *old, u32 oldBytes, u32 align, u32 bytes)
{
	(void)old, (void)oldBytes, (void)align;
	if (bytes > sizeof arena)
		__builtin_trap();
	return arena;
}

static u32 answer[4]; // ok

EXPORT("wasi:messaging/incoming-handler@0.2.0-draft#handle") u32 *handle(u32 message)
{
	struct list list;
	messageData(message, &list);
	const struct command command = *list.data;
	if (run(command.workload, command.amount) != command.want)
		__builtin_trap();
	return answer;
}
