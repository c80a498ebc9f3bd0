/* What every program for BPF begins with: types, attributes, maps, and what the kernel calls by number. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define NUMBER(name, n) int (*name)[n]
#define TYPE(name, type) type *name
/* The compiler must not merge this value's load with others: the verifier wants each load from the context at
 * a constant place. */
#define ALONE(value) asm volatile("" : "+r"(value))

enum {
	IPPROTO_TCP = 6,
	TCP_CONGESTION = 13,
	BPF_F_NO_PREALLOC = 1,
};

static long (*bpf_setsockopt)(void *of, int level, int name, void *value, int length) = (void *)49;
