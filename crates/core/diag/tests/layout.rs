//! Field offsets of `struct tcp_info`, computed like a C compiler from the declaration in
//! `include/uapi/linux/tcp.h` of Linux 6.18.

use uncork_diag::{AccEcnInfo, Replies, TcpInfo};
use uncork_units::{Rate, TimeDelta};

/// Reads a field, in the kernel's unit.
type Read = fn(&TcpInfo) -> Option<u64>;

/// Size of each field in bytes, and its reader; `None` for fields that are not plain numbers or not read.
const DECLARED: [(usize, Option<Read>); 68] = [
    (1, None), // tcpi_state: an enumeration
    (1, None), // tcpi_ca_state: an enumeration
    (1, Some(|info| Some(info.retransmits.into()))),
    (1, Some(|info| Some(info.probes.into()))),
    (1, Some(|info| Some(info.backoff.into()))),
    (1, None), // tcpi_options: bits
    (1, None), // tcpi_snd_wscale, tcpi_rcv_wscale: bits
    (1, None), // tcpi_delivery_rate_app_limited, tcpi_fastopen_client_fail: bits
    (4, Some(|info| micros(Some(info.rto)))),
    (4, Some(|info| micros(Some(info.ato)))),
    (4, Some(|info| Some(info.snd_mss.into()))),
    (4, Some(|info| Some(info.rcv_mss.into()))),
    (4, Some(|info| Some(info.unacked.into()))),
    (4, Some(|info| Some(info.sacked.into()))),
    (4, Some(|info| Some(info.lost.into()))),
    (4, Some(|info| Some(info.retrans.into()))),
    (4, None), // tcpi_fackets: always 0 since Linux 4.15
    (4, Some(|info| millis(Some(info.last_data_sent)))),
    (4, None), // tcpi_last_ack_sent: "not remembered, sorry"
    (4, Some(|info| millis(Some(info.last_data_recv)))),
    (4, Some(|info| millis(Some(info.last_ack_recv)))),
    (4, Some(|info| Some(info.pmtu.into()))),
    (4, Some(|info| Some(info.rcv_ssthresh.into()))),
    (4, Some(|info| micros(Some(info.rtt)))),
    (4, Some(|info| micros(Some(info.rttvar)))),
    (4, Some(|info| info.snd_ssthresh.map(u64::from))),
    (4, Some(|info| Some(info.snd_cwnd.into()))),
    (4, Some(|info| Some(info.advmss.into()))),
    (4, Some(|info| Some(info.reordering.into()))),
    (4, Some(|info| micros(Some(info.rcv_rtt)))),
    (4, Some(|info| Some(info.rcv_space.into()))),
    (4, Some(|info| Some(info.total_retrans.into()))),
    (8, Some(|info| info.pacing_rate.map(Rate::bytes_per_sec))),
    (8, Some(|info| info.max_pacing_rate.map(Rate::bytes_per_sec))),
    (8, Some(|info| info.bytes_acked)),
    (8, Some(|info| info.bytes_received)),
    (4, Some(|info| info.segs_out.map(u64::from))),
    (4, Some(|info| info.segs_in.map(u64::from))),
    (4, Some(|info| info.notsent_bytes.map(u64::from))),
    (4, Some(|info| micros(info.min_rtt))),
    (4, Some(|info| info.data_segs_in.map(u64::from))),
    (4, Some(|info| info.data_segs_out.map(u64::from))),
    (8, Some(|info| info.delivery_rate.map(Rate::bytes_per_sec))),
    (8, Some(|info| micros(info.busy_time))),
    (8, Some(|info| micros(info.rwnd_limited))),
    (8, Some(|info| micros(info.sndbuf_limited))),
    (4, Some(|info| info.delivered.map(u64::from))),
    (4, Some(|info| info.delivered_ce.map(u64::from))),
    (8, Some(|info| info.bytes_sent)),
    (8, Some(|info| info.bytes_retrans)),
    (4, Some(|info| info.dsack_dups.map(u64::from))),
    (4, Some(|info| info.reord_seen.map(u64::from))),
    (4, Some(|info| info.rcv_ooopack.map(u64::from))),
    (4, Some(|info| info.snd_wnd.map(u64::from))),
    (4, Some(|info| info.rcv_wnd.map(u64::from))),
    (4, Some(|info| info.rehash.map(u64::from))),
    (2, Some(|info| info.total_rto.map(u64::from))),
    (2, Some(|info| info.total_rto_recoveries.map(u64::from))),
    (4, Some(|info| millis(info.total_rto_time))),
    (4, Some(|info| acc_ecn(info, |counts| counts.received_ce))),
    (4, Some(|info| acc_ecn(info, |counts| counts.delivered_e1_bytes))),
    (4, Some(|info| acc_ecn(info, |counts| counts.delivered_e0_bytes))),
    (4, Some(|info| acc_ecn(info, |counts| counts.delivered_ce_bytes))),
    (4, Some(|info| acc_ecn(info, |counts| counts.received_e1_bytes))),
    (4, Some(|info| acc_ecn(info, |counts| counts.received_e0_bytes))),
    (4, Some(|info| acc_ecn(info, |counts| counts.received_ce_bytes))),
    (2, None), // tcpi_accecn_fail_mode: bits from Linux 7 on
    (2, None), // tcpi_accecn_opt_seen: bits from Linux 7 on
];

fn micros(span: Option<TimeDelta>) -> Option<u64> {
    span.map(TimeDelta::as_micros)
}

fn millis(span: Option<TimeDelta>) -> Option<u64> {
    micros(span).map(|micros| micros / 1000)
}

fn acc_ecn(info: &TcpInfo, count: fn(&AccEcnInfo) -> u32) -> Option<u64> {
    info.acc_ecn.as_ref().map(|counts| count(counts).into())
}

/// Parses a structure.
fn read(structure: &[u8]) -> TcpInfo {
    let attribute = 4 + structure.len();
    let mut message = (16 + 72 + attribute as u32).to_ne_bytes().to_vec();
    message.extend(20_u16.to_ne_bytes()); // SOCK_DIAG_BY_FAMILY
    message.extend([0; 2]);
    message.extend(1_u32.to_ne_bytes());
    message.extend([0; 4]);
    message.push(2); // AF_INET
    message.extend([0; 71]);
    message.extend((attribute as u16).to_ne_bytes());
    message.extend(2_u16.to_ne_bytes()); // INET_DIAG_INFO
    message.extend(structure);
    let mut info = None;
    let result = Replies::to(1).read(&message, |connection| info = connection.info);
    assert_eq!(result, Ok(false));
    info.expect("a structure")
}

/// A non-zero field in a structure of zeros is read as that field, and as no other.
#[test]
fn every_field_is_read_from_its_place() {
    let length = 280;
    let mut offset = 0_usize;
    for (index, (size, field)) in DECLARED.iter().enumerate() {
        offset = offset.next_multiple_of(*size);
        let mut structure = vec![0; length];
        let number = 77_u64;
        let lowest = if cfg!(target_endian = "little") { offset } else { offset + size - 1 };
        structure[lowest] = number as u8;
        offset += size;
        let info = read(&structure);
        if let Some(field) = field {
            assert_eq!(field(&info), Some(number), "field {index}");
        }
        for (other, (_, field)) in DECLARED.iter().enumerate() {
            if let Some(field) = field.filter(|_| other != index) {
                assert_eq!(field(&info), Some(0), "field {other} shows field {index}");
            }
        }
    }
    assert_eq!(offset, length);
}
