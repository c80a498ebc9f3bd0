/* What `steer_at_scale.py look-up` runs: look-ups of addresses in the table of networks of an active policy, by
 * the same function, and the same without the look-ups. */

#include "bpf/steer.bpf.c"

#define TIMES 256

static long (*bpf_loop)(u32 times, void *body, void *context, u64 flags) = (void *)181;

/* The upper halves of addresses, as `row_of` has them. */
struct {
	NUMBER(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, u64);
	NUMBER(max_entries, 1 << 20);
	NUMBER(map_flags, 1024); /* BPF_F_MMAPABLE */
} addresses SECTION(".maps");

/* The packet: the addresses to look up, and the number done. It stays from one run to the next. */
struct work {
	u32 first, count, at; /* of the addresses */
	u32 family, looks_up;
	u32 waits, zero; /* whether each look-up begins when the one before is done */
	u32 row, found; /* of the last address; addresses that have a network */
};

/* One address. A function, so that the verifier looks at it once and not for each address. */
static long one(__attribute__((unused)) u32 number, struct work *work)
{
	u32 key = 0, index = work->first + work->at;
	const struct head *head = lookup(&heads, &key);
	const u64 *address;

	if (work->waits)
		index += work->row & work->zero;
	address = lookup(&addresses, &index);
	if (!head || !address)
		return 1;
	work->row = work->looks_up ? row_of(head->roots[work->family & 1], *address, 0) : *address >> 40;
	work->found += work->row != 0;
	if (++work->at >= work->count)
		work->at = 0;
	return 0;
}

SECTION("xdp") int look_up(struct xdp_md *packet)
{
	u8 *from = (u8 *)(long)packet->data, *to = (u8 *)(long)packet->data_end;
	struct work work;

	if (from + sizeof(work) > to)
		return XDP_PASS;
	work = *(struct work *)from;
	bpf_loop(TIMES, one, &work, 0);
	*(struct work *)from = work;
	return XDP_PASS;
}
