/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every instruction here that touches the program's memory stands in a short run of assembly. The run
 * changes registers and memory only, never the stack, and names a label of its function. The addresses of
 * its first and last instruction and of the label go to the section mem_faults. To the compiler a fault
 * is a jump from the run to that label, which `asm goto` declares, so the code behind the label is right
 * after a fault too.
 */
#include <stdatomic.h>
#include <string.h>

#include "mem/copy.h"

#if defined(__SANITIZE_ADDRESS__)
#define CHECKED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKED
#endif
#endif

/* A sanitizer does not see into assembly, so this reports the access to it, as memcpy would. */
#ifdef CHECKED
void __asan_loadN(void *at, long len);
void __asan_storeN(void *at, long len);

static void check(void *to, const void *from, size_t len)
{
	if (!len)
		return;
	__asan_loadN((void *)(uintptr_t)from, (long)len);
	__asan_storeN(to, (long)len);
}
#else
static inline void check(void *to, const void *from, size_t len)
{
}
#endif

#if defined(__x86_64__) || defined(__aarch64__)

/* An entry's addresses are distances from where they stand, so that nothing needs relocation. */
struct entry {
	int32_t first, end, fixup;
};

extern const struct entry __start_mem_faults[] __attribute__((visibility("hidden")));
extern const struct entry __stop_mem_faults[] __attribute__((visibility("hidden")));

static uintptr_t target(const int32_t *distance)
{
	return (uintptr_t)distance + (uintptr_t)(intptr_t)*distance;
}

bool mem_survives_faults(void)
{
	return true;
}

uintptr_t mem_fixup(uintptr_t pc)
{
	for (const struct entry *e = __start_mem_faults; e < __stop_mem_faults; e++) {
		if (pc >= target(&e->first) && pc < target(&e->end))
			return target(&e->fixup);
	}
	return 0;
}

/*
 * A run of instructions; when one of them faults, execution continues at the label `gone` of its
 * function.
 */
#define RUN(instructions)                  \
	"1:\n" instructions "2:\n"         \
	".pushsection mem_faults, \"a\"\n" \
	".balign 4\n"                      \
	".long 1b - .\n"                   \
	".long 2b - .\n"                   \
	".long %l[gone] - .\n"             \
	".popsection\n"

/* One piece; its bytes are in the name. */
#define MOVE(instructions, to, from, ...) \
	__asm__ goto(RUN(instructions) : : [t] "r"(to), [f] "r"(from) : "memory", __VA_ARGS__ : gone)

#if defined(__x86_64__)

#define MOVE_1(t, f)  MOVE("movb (%[f]), %%al\nmovb %%al, (%[t])\n", t, f, "rax")
#define MOVE_2(t, f)  MOVE("movw (%[f]), %%ax\nmovw %%ax, (%[t])\n", t, f, "rax")
#define MOVE_4(t, f)  MOVE("movl (%[f]), %%eax\nmovl %%eax, (%[t])\n", t, f, "rax")
#define MOVE_8(t, f)  MOVE("movq (%[f]), %%rax\nmovq %%rax, (%[t])\n", t, f, "rax")
#define MOVE_16(t, f) MOVE("movdqu (%[f]), %%xmm0\nmovdqu %%xmm0, (%[t])\n", t, f, "xmm0")
#define MOVE_32(t, f)                                            \
	MOVE("movdqu (%[f]), %%xmm0\nmovdqu 16(%[f]), %%xmm1\n"  \
	     "movdqu %%xmm0, (%[t])\nmovdqu %%xmm1, 16(%[t])\n", \
	     t, f, "xmm0", "xmm1")
#define MOVE_64(t, f)                                              \
	MOVE("vmovdqu (%[f]), %%ymm0\nvmovdqu 32(%[f]), %%ymm1\n"  \
	     "vmovdqu %%ymm0, (%[t])\nvmovdqu %%ymm1, 32(%[t])\n", \
	     t, f, "xmm0", "xmm1")
#define MOVE_128(t, f)                                               \
	MOVE("vmovdqu (%[f]), %%ymm0\nvmovdqu 32(%[f]), %%ymm1\n"    \
	     "vmovdqu 64(%[f]), %%ymm2\nvmovdqu 96(%[f]), %%ymm3\n"  \
	     "vmovdqu %%ymm0, (%[t])\nvmovdqu %%ymm1, 32(%[t])\n"    \
	     "vmovdqu %%ymm2, 64(%[t])\nvmovdqu %%ymm3, 96(%[t])\n", \
	     t, f, "xmm0", "xmm1", "xmm2", "xmm3")
#define MOVE_256(t, f)                                                 \
	MOVE("vmovdqu (%[f]), %%ymm0\nvmovdqu 32(%[f]), %%ymm1\n"      \
	     "vmovdqu 64(%[f]), %%ymm2\nvmovdqu 96(%[f]), %%ymm3\n"    \
	     "vmovdqu 128(%[f]), %%ymm4\nvmovdqu 160(%[f]), %%ymm5\n"  \
	     "vmovdqu 192(%[f]), %%ymm6\nvmovdqu 224(%[f]), %%ymm7\n"  \
	     "vmovdqu %%ymm0, (%[t])\nvmovdqu %%ymm1, 32(%[t])\n"      \
	     "vmovdqu %%ymm2, 64(%[t])\nvmovdqu %%ymm3, 96(%[t])\n"    \
	     "vmovdqu %%ymm4, 128(%[t])\nvmovdqu %%ymm5, 160(%[t])\n"  \
	     "vmovdqu %%ymm6, 192(%[t])\nvmovdqu %%ymm7, 224(%[t])\n", \
	     t, f, "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7")

/* Stores are seen in the order of the program (TSO). */
#define STORES_IN_ORDER()

/* Whether the processor has the instructions for pieces of 64 bytes and more. */
static inline bool has_wide_moves(void)
{
	return __builtin_cpu_supports("avx");
}

/* Without it, later instructions that use the registers' lower halves only would be slow. */
static inline void end_wide_moves(void)
{
	__asm__ volatile("vzeroupper");
}

bool mem_fetch_add(uint64_t *word, uint64_t add, uint64_t *found)
{
	check(word, word, sizeof(*word));
	__asm__ goto(RUN("movq %[add], %%rax\n"
			 "lock xaddq %%rax, (%[word])\n"
			 "movq %%rax, (%[found])\n")
		     :
		     : [word] "r"(word), [add] "r"(add), [found] "r"(found)
		     : "memory", "cc", "rax"
		     : gone);
	return true;
gone:
	return false;
}

bool mem_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *found)
{
	check(word, word, sizeof(*word));
	__asm__ goto(RUN("movq %[compare], %%rax\n"
			 "lock cmpxchgq %[swap], (%[word])\n"
			 "movq %%rax, (%[found])\n")
		     :
		     : [word] "r"(word), [compare] "r"(compare), [swap] "r"(swap), [found] "r"(found)
		     : "memory", "cc", "rax"
		     : gone);
	return true;
gone:
	return false;
}

bool mem_store(uint64_t *word, uint64_t value)
{
	check(word, word, sizeof(*word));
	__asm__ goto(RUN("movq %[value], (%[word])\n") : : [word] "r"(word), [value] "r"(value) : "memory" : gone);
	return true;
gone:
	return false;
}

#else /* __aarch64__ */

#define MOVE_1(t, f)  MOVE("ldrb w9, [%[f]]\nstrb w9, [%[t]]\n", t, f, "x9")
#define MOVE_2(t, f)  MOVE("ldrh w9, [%[f]]\nstrh w9, [%[t]]\n", t, f, "x9")
#define MOVE_4(t, f)  MOVE("ldr w9, [%[f]]\nstr w9, [%[t]]\n", t, f, "x9")
#define MOVE_8(t, f)  MOVE("ldr x9, [%[f]]\nstr x9, [%[t]]\n", t, f, "x9")
#define MOVE_16(t, f) MOVE("ldr q0, [%[f]]\nstr q0, [%[t]]\n", t, f, "v0")
#define MOVE_32(t, f) MOVE("ldp q0, q1, [%[f]]\nstp q0, q1, [%[t]]\n", t, f, "v0", "v1")
#define MOVE_64(t, f)                                        \
	MOVE("ldp q0, q1, [%[f]]\nldp q2, q3, [%[f], 32]\n"  \
	     "stp q0, q1, [%[t]]\nstp q2, q3, [%[t], 32]\n", \
	     t, f, "v0", "v1", "v2", "v3")
#define MOVE_128(t, f)                                           \
	MOVE("ldp q0, q1, [%[f]]\nldp q2, q3, [%[f], 32]\n"      \
	     "ldp q4, q5, [%[f], 64]\nldp q6, q7, [%[f], 96]\n"  \
	     "stp q0, q1, [%[t]]\nstp q2, q3, [%[t], 32]\n"      \
	     "stp q4, q5, [%[t], 64]\nstp q6, q7, [%[t], 96]\n", \
	     t, f, "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7")
#define MOVE_256(t, f)                                             \
	MOVE("ldp q0, q1, [%[f]]\nldp q2, q3, [%[f], 32]\n"        \
	     "ldp q4, q5, [%[f], 64]\nldp q6, q7, [%[f], 96]\n"    \
	     "stp q0, q1, [%[t]]\nstp q2, q3, [%[t], 32]\n"        \
	     "stp q4, q5, [%[t], 64]\nstp q6, q7, [%[t], 96]\n"    \
	     "ldp q0, q1, [%[f], 128]\nldp q2, q3, [%[f], 160]\n"  \
	     "ldp q4, q5, [%[f], 192]\nldp q6, q7, [%[f], 224]\n"  \
	     "stp q0, q1, [%[t], 128]\nstp q2, q3, [%[t], 160]\n"  \
	     "stp q4, q5, [%[t], 192]\nstp q6, q7, [%[t], 224]\n", \
	     t, f, "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7")

/* Other processors may see the stores in any order. */
#define STORES_IN_ORDER() atomic_thread_fence(memory_order_release)

static inline bool has_wide_moves(void)
{
	return true;
}

static inline void end_wide_moves(void)
{
}

bool mem_fetch_add(uint64_t *word, uint64_t add, uint64_t *found)
{
	check(word, word, sizeof(*word));
	__asm__ goto(RUN("3: ldaxr x9, [%[word]]\n"
			 "add x10, x9, %[add]\n"
			 "stlxr w11, x10, [%[word]]\n"
			 "cbnz w11, 3b\n"
			 "str x9, [%[found]]\n")
		     :
		     : [word] "r"(word), [add] "r"(add), [found] "r"(found)
		     : "memory", "x9", "x10", "x11"
		     : gone);
	return true;
gone:
	return false;
}

bool mem_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *found)
{
	check(word, word, sizeof(*word));
	/*
	 * The word is stored even if it does not change, so that memory that is only readable
	 * faults.
	 */
	__asm__ goto(RUN("3: ldaxr x9, [%[word]]\n"
			 "cmp x9, %[compare]\n"
			 "csel x10, %[swap], x9, eq\n"
			 "stlxr w11, x10, [%[word]]\n"
			 "cbnz w11, 3b\n"
			 "str x9, [%[found]]\n")
		     :
		     : [word] "r"(word), [compare] "r"(compare), [swap] "r"(swap), [found] "r"(found)
		     : "memory", "cc", "x9", "x10", "x11"
		     : gone);
	return true;
gone:
	return false;
}

/* A release: what was stored before is seen before. */
bool mem_store(uint64_t *word, uint64_t value)
{
	check(word, word, sizeof(*word));
	__asm__ goto(RUN("stlr %[value], [%[word]]\n") : : [word] "r"(word), [value] "r"(value) : "memory" : gone);
	return true;
gone:
	return false;
}

#endif

/* Two pieces that may overlap cover any length from one piece to two. */
static inline bool copy_short(uint8_t *to, const uint8_t *from, size_t len)
{
	if (len >= 32) {
		MOVE_32(to, from);
		MOVE_32(to + len - 32, from + len - 32);
	} else if (len >= 16) {
		MOVE_16(to, from);
		MOVE_16(to + len - 16, from + len - 16);
	} else if (len >= 8) {
		MOVE_8(to, from);
		MOVE_8(to + len - 8, from + len - 8);
	} else if (len >= 4) {
		MOVE_4(to, from);
		MOVE_4(to + len - 4, from + len - 4);
	} else if (len >= 2) {
		MOVE_2(to, from);
		MOVE_2(to + len - 2, from + len - 2);
	} else if (len) {
		MOVE_1(to, from);
	}
	return true;
gone:
	return false;
}

/* More than 64 bytes. */
static bool copy_narrow(uint8_t *to, const uint8_t *from, size_t len)
{
	const uint8_t *last = to + len - 32;

	for (; to < last; to += 32, from += 32)
		MOVE_32(to, from);
	from -= to - last;
	to -= to - last;
	MOVE_32(to, from);
	return true;
gone:
	return false;
}

static inline bool copy_wide(uint8_t *to, const uint8_t *from, size_t len)
{
	const uint8_t *end = from + len;
	uint8_t *to_end = to + len, *last = to_end - 256;
	size_t skip;

	if (len <= 128) {
		MOVE_64(to, from);
		MOVE_64(to_end - 64, end - 64);
		goto done;
	}
	if (len <= 256) {
		MOVE_128(to, from);
		MOVE_128(to_end - 128, end - 128);
		goto done;
	}
	/* Stores that cross a line of the cache cost more than loads that do. */
	MOVE_32(to, from);
	skip = 32 - ((uintptr_t)to & 31);
	to += skip;
	from += skip;
	while (to <= last) {
		MOVE_256(to, from);
		to += 256;
		from += 256;
	}
	if (to < to_end - 128)
		MOVE_128(to, from);
	if (to < to_end)
		MOVE_128(to_end - 128, end - 128);
done:
	end_wide_moves();
	return true;
gone:
	end_wide_moves();
	return false;
}

static bool copy_long(uint8_t *to, const uint8_t *from, size_t len)
{
	return has_wide_moves() ? copy_wide(to, from, len) : copy_narrow(to, from, len);
}

bool mem_copy(void *to, const void *from, size_t len)
{
	check(to, from, len);
	return len <= 64 ? copy_short(to, from, len) : copy_long(to, from, len);
}

/* The last bytes, up to 8 and not beyond a multiple of 8, in pieces that are each aligned. */
static inline bool place_end(uint8_t *to, const uint8_t *from, size_t len)
{
	STORES_IN_ORDER();
	if (len == 8) {
		MOVE_8(to, from);
		return true;
	}
	if (len & 4) {
		MOVE_4(to, from);
		STORES_IN_ORDER();
	}
	if (len & 2) {
		MOVE_2(to + (len & 4), from + (len & 4));
		STORES_IN_ORDER();
	}
	if (len & 1)
		MOVE_1(to + (len & 6), from + (len & 6));
	return true;
gone:
	return false;
}

/*
 * Another processor may see the halves of a store that crosses a cache line in any order, so the last stores
 * are aligned. The bytes after the last multiple of 8 lie in one aligned word.
 */
static bool __attribute__((noinline)) place_long(uint8_t *to, const uint8_t *from, size_t len, size_t last)
{
	return copy_long(to, from, len) && place_end(to + len, from + len, last);
}

bool mem_place(void *to, const void *from, size_t len)
{
	size_t last = ((uintptr_t)to + len - 1) & 7;
	uint8_t *t = to;
	const uint8_t *f = from;

	check(to, from, len);
	if (++last >= len) {
		STORES_IN_ORDER();
		return copy_short(t, f, len);
	}
	len -= last;
	if (len > 64)
		return place_long(t, f, len, last);
	return copy_short(t, f, len) && place_end(t + len, f + len, last);
}

#else /* another processor */

bool mem_survives_faults(void)
{
	return false;
}

uintptr_t mem_fixup(uintptr_t pc)
{
	return 0;
}

bool mem_copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return true;
}

/* memcpy promises no order, so at least the end is stored after everything before it. */
bool mem_place(void *to, const void *from, size_t len)
{
	size_t tail = len < 8 ? len : 8;

	memcpy(to, from, len - tail);
	atomic_thread_fence(memory_order_release);
	memcpy((uint8_t *)to + len - tail, (const uint8_t *)from + len - tail, tail);
	return true;
}

bool mem_fetch_add(uint64_t *word, uint64_t add, uint64_t *found)
{
	*found = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST);
	return true;
}

bool mem_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap, uint64_t *found)
{
	*found = compare;
	__atomic_compare_exchange_n(word, found, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return true;
}

bool mem_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	return true;
}

#endif
