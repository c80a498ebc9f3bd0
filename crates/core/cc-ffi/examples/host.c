/*
 * A host in C: bulk data over a bottleneck with a tail-drop queue, in virtual time.
 *
 *   cargo build -p uncork-cc-ffi --release
 *   cc -I crates/core/cc-ffi/include crates/core/cc-ffi/examples/host.c target/release/libuncork_cc_ffi.a -lm -lpthread -ldl
 *   ./a.out bbr3
 *   ./a.out prague ect1
 *
 * With ect1 it sends ECT(1), and the bottleneck has a queue for L4S: it marks packets that find a few waiting.
 * Prints a line every 100 ms: time, window, bytes in flight, delivered and lost, and the controller's state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "uncork_cc.h"

#define MSS 1200u
#define MS UINT64_C(1000000)
#define SERVICE_NS (960 * UINT64_C(1000)) /* a packet at 10 Mbit/s */
#define RTT_NS (20 * MS)
#define QUEUE_PACKETS 30
#define MARK_PACKETS 2
#define TIMEOUT_NS (1000 * MS)
#define END_NS (3000 * MS)
#define REORDERING 3
#define FLIGHT 4096 /* a power of two */
#define NEVER UINT64_MAX

/* A packet in flight, in the order of transmission. */
struct packet {
    uint64_t number, sent_ns, ack_ns; /* ack_ns is NEVER for a packet that the queue dropped */
    bool marked; /* Congestion Experienced */
    uncork_token token;
};

static struct {
    uncork_cc *cc;
    uint64_t now_ns, link_free_ns, timeout_ns;
    uint64_t next_number, last_lost;
    uint64_t delivered, lost;
    uint64_t smoothed_ns, min_ns;
    struct packet flight[FLIGHT];
    uint64_t head, tail; /* of the flight */
    bool ect1;
} host = {.timeout_ns = NEVER, .last_lost = NEVER, .min_ns = NEVER};

static struct packet *at(uint64_t place) { return &host.flight[place % FLIGHT]; }

static uint64_t in_flight(void) { return (host.tail - host.head) * MSS; }

/* When the packet that enters the queue now will be acknowledged. Sets whether the queue marks it. */
static uint64_t enqueue(bool *marked) {
    uint64_t free_ns = host.link_free_ns > host.now_ns ? host.link_free_ns : host.now_ns;
    uint64_t waiting = (free_ns - host.now_ns) / SERVICE_NS;
    *marked = host.ect1 && waiting >= MARK_PACKETS;
    if (waiting >= QUEUE_PACKETS)
        return NEVER;
    host.link_free_ns = free_ns + SERVICE_NS;
    return host.link_free_ns + RTT_NS;
}

/* Sends what the window and the pacer let go; returns when the pacer lets the next packet go. */
static uint64_t send_packets(void) {
    for (;;) {
        uncork_control control;
        uint64_t release_ns;
        uncork_cc_control(host.cc, &control);
        if (in_flight() + MSS > control.cwnd || host.tail - host.head == FLIGHT) {
            uncork_pacer_end_burst(host.cc);
            return NEVER;
        }
        uncork_pacer_release(host.cc, host.now_ns, &release_ns);
        if (release_ns > host.now_ns)
            return release_ns;
        uncork_pacer_on_sent(host.cc, host.now_ns, MSS);
        struct packet *packet = at(host.tail++);
        uncork_sent_packet sent = {.bytes = MSS, .in_flight = in_flight(), .unacked = in_flight()};
        packet->number = host.next_number++;
        packet->sent_ns = host.now_ns;
        packet->ack_ns = enqueue(&packet->marked);
        uncork_cc_on_sent(host.cc, host.now_ns, &sent, false, &packet->token);
        if (host.timeout_ns == NEVER)
            host.timeout_ns = host.now_ns + TIMEOUT_NS;
    }
}

static uncork_rtt measure(uint64_t sent_ns) {
    uint64_t latest = host.now_ns - sent_ns;
    host.smoothed_ns = host.smoothed_ns ? (host.smoothed_ns * 7 + latest) / 8 : latest;
    host.min_ns = latest < host.min_ns ? latest : host.min_ns;
    return (uncork_rtt){.latest_ns = latest, .smoothed_ns = host.smoothed_ns, .min_ns = host.min_ns};
}

static uncork_lost declare_lost(const struct packet *packet) {
    bool contiguous = host.last_lost + 1 == packet->number;
    host.last_lost = packet->number;
    host.lost += MSS;
    return (uncork_lost){.token = packet->token, .bytes = MSS, .contiguous = contiguous};
}

/* The flight has shrunk by what `acked` and `lost` hold: report it to the controller. */
static void report(const uncork_acked *acked, uint32_t marks, const uncork_lost *lost, size_t lost_count,
                   uncork_rtt rtt) {
    bool empty = host.head == host.tail;
    bool classic;
    uncork_feedback feedback = {
        .acked = acked,
        .acked_count = acked != NULL,
        .lost = lost,
        .lost_count = lost_count,
        .rtt = rtt,
        .ce_packets = marks,
        .una_advanced = acked != NULL,
        .in_flight = in_flight(),
        .unacked = in_flight() + lost_count * MSS,
        .oldest_sent_ns = empty ? NEVER : at(host.head)->sent_ns,
    };
    uncork_cc_on_feedback(host.cc, host.now_ns, &feedback);
    host.timeout_ns = empty ? NEVER : host.now_ns + TIMEOUT_NS;
    /* A real host sends ECT(0) from here on. */
    uncork_cc_found_classic_queue(host.cc, &classic);
    host.ect1 = host.ect1 && !classic;
}

/* The ACK of the packet at `place` arrives. Packets that left before it and have no ACK are lost. */
static void on_ack(uint64_t place) {
    static uncork_lost lost[FLIGHT];
    struct packet packet = *at(place);
    size_t lost_count = 0;
    uint64_t kept = 0;
    /* Keep what is too young to be declared lost, directly before the packets after `place`. */
    for (uint64_t older = host.head; older < place; older++)
        if (at(older)->number + REORDERING <= packet.number)
            lost[lost_count++] = declare_lost(at(older));
    for (uint64_t older = place; older-- > host.head;)
        if (at(older)->number + REORDERING > packet.number)
            *at(place - kept++) = *at(older);
    host.head = place + 1 - kept;
    host.delivered += MSS;
    uncork_acked acked = {.token = packet.token, .bytes = MSS};
    report(&acked, packet.marked, lost, lost_count, measure(packet.sent_ns));
}

/* Nothing was acknowledged for long: all that is in flight is lost. */
static void on_timeout(void) {
    static uncork_lost lost[FLIGHT];
    size_t lost_count = 0;
    uncork_cc_on_timeout(host.cc, host.now_ns, UNCORK_TIMEOUT_RETRANSMISSION);
    for (; host.head < host.tail; host.head++)
        lost[lost_count++] = declare_lost(at(host.head));
    report(NULL, 0, lost, lost_count, (uncork_rtt){0});
}

/* The place of the next packet to be acknowledged; the end of the flight if there is none. */
static uint64_t next_ack(void) {
    uint64_t place = host.head;
    while (place < host.tail && at(place)->ack_ns == NEVER)
        place++;
    return place;
}

static uint64_t ack_time(uint64_t place) { return place < host.tail ? at(place)->ack_ns : NEVER; }

static void print_line(uint64_t time_ns) {
    uncork_control control;
    uncork_snapshot snapshot;
    uncork_cc_control(host.cc, &control);
    uncork_cc_snapshot(host.cc, &snapshot);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", time_ns / MS, control.cwnd,
           in_flight(), host.delivered, host.lost, snapshot.state);
}

static void run(void) {
    for (uint64_t line_ns = 100 * MS; line_ns <= END_NS;) {
        uint64_t release_ns = ack_time(next_ack()) > host.now_ns ? send_packets() : NEVER;
        uint64_t place = next_ack();
        uint64_t ack_ns = ack_time(place);
        uint64_t next_ns = ack_ns < host.timeout_ns ? ack_ns : host.timeout_ns;
        next_ns = release_ns < next_ns ? release_ns : next_ns;
        for (; line_ns < next_ns && line_ns <= END_NS; line_ns += 100 * MS)
            print_line(line_ns);
        host.now_ns = next_ns;
        if (next_ns == ack_ns)
            on_ack(place);
        else if (next_ns == host.timeout_ns)
            on_timeout();
    }
}

int main(int argc, char **argv) {
    char message[200];
    const char *spec = argc > 1 ? argv[1] : "bbr3";
    host.ect1 = argc > 2 && strcmp(argv[2], "ect1") == 0;
    uncork_settings settings = {.mss = MSS, .scalable_marks = host.ect1, .seed = 1};
    uncork_status status = uncork_cc_new(spec, &settings, &host.cc, message, sizeof message);
    if (status != UNCORK_STATUS_OK) {
        fprintf(stderr, "%s (%s)\n", message, uncork_status_text(status));
        return 2;
    }
    run();
    uncork_cc_free(host.cc);
    return 0;
}
