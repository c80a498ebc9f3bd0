/* ECT(1) for the packets of some sockets (RFC 9331 §4.1). The kernel gives ECT(0) to the packets of a connection with ECN; a
 * program at the device changes it for the sockets that the controller has chosen, and for no others. */
#pragma once

#include "kernel.h"

struct ect1 {
	/* Whether packets leave as ECT(1). */
	u32 is_on;
	/* Packets that the program at the device has had, and how many at the last ACK. */
	u32 seen, seen_before;
	/* The connection's count of segments at the last ACK. */
	u32 sent_before;
	/* What left before ended here. */
	u32 from;
	/* Whether what left before has been acknowledged, and the bytes that the peer had received as ECT(0) by then. */
	u32 is_counting, ect0_bytes;
};

#ifdef WITH_ECT1
enum {
	CONTINUE = -1, /* TCX_NEXT: other programs at the device decide what happens to the packet */
	ECN_BITS = 3,
	ECN_ECT0 = 2,
	ECN_ECT1 = 1,
	/* In delivered_ecn_bytes. */
	COUNT_ECT0 = ECN_ECT0 - 1,
	ETH_P_IP = 0x0008,
	ETH_P_IPV6 = 0xdd86,
};

struct bpf_sock;

/* struct __sk_buff, as far as it is needed: include/uapi/linux/bpf.h. */
struct packet {
	u32 before[4];
	u32 protocol; /* in network byte order */
	u32 between[37];
	struct bpf_sock *sk;
};

static struct bpf_sock *(*bpf_sk_fullsock)(struct bpf_sock *sk) = (void *)95;
static long (*bpf_skb_load_bytes)(const void *skb, u32 offset, void *to, u32 length) = (void *)26;
static long (*bpf_skb_store_bytes)(void *skb, u32 offset, const void *from, u32 length, u64 flags) = (void *)9;
static long (*bpf_l3_csum_replace)(void *skb, u32 offset, u64 from, u64 to, u64 size) = (void *)10;

static always_inline void set_ect1(struct packet *packet, u32 header)
{
	u8 old[2], new[2];
	u16 from, to;

	if (bpf_skb_load_bytes(packet, header, old, sizeof(old)))
		return;
	new[0] = old[0];
	if (packet->protocol == ETH_P_IP && old[0] >> 4 == 4) {
		if ((old[1] & ECN_BITS) != ECN_ECT0)
			return;
		new[1] = (old[1] & ~ECN_BITS) | ECN_ECT1;
		__builtin_memcpy(&from, old, sizeof(from));
		__builtin_memcpy(&to, new, sizeof(to));
		if (bpf_l3_csum_replace(packet, header + 10, from, to, sizeof(to)))
			return;
	} else if (packet->protocol == ETH_P_IPV6 && old[0] >> 4 == 6) {
		if ((old[1] >> 4 & ECN_BITS) != ECN_ECT0)
			return;
		new[1] = (old[1] & ~(ECN_BITS << 4)) | ECN_ECT1 << 4;
	} else {
		return;
	}
	bpf_skb_store_bytes(packet, header + 1, &new[1], 1, 0);
}

static always_inline void start_ect1(const struct tcp_sock *tp, struct ect1 *ect1)
{
	ect1->is_on = (tp->ecn_flags & ECN_MODE_ACCECN) != 0;
	ect1->seen = ect1->seen_before = 0;
	ect1->sent_before = tp->data_segs_out;
	ect1->from = tp->snd_nxt;
	ect1->is_counting = 0;
}

/* Whether packets leave as ECT(1) and arrive so. They do not if the device has no program (it was added later, or the controller
 * is unloaded), or if the path changes the field: then the peer counts bytes with ECT(0). */
static always_inline int is_ect1_credible(const struct tcp_sock *tp, struct ect1 *ect1)
{
	u32 sent = tp->data_segs_out, ect0_bytes = tp->delivered_ecn_bytes[COUNT_ECT0];

	if (sent != ect1->sent_before && ect1->seen == ect1->seen_before)
		return 0;
	ect1->sent_before = sent;
	ect1->seen_before = ect1->seen;
	if (!ect1->is_counting) {
		ect1->is_counting = (s32)(tp->snd_una - ect1->from) >= 0;
		ect1->ect0_bytes = ect0_bytes;
	}
	return ect0_bytes == ect1->ect0_bytes;
}
#endif
