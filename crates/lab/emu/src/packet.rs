//! IP packets: the fields read by the path, and the ECN field that it changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uncork_path::Ecn;

/// The header fields used by the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketFields {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Transport protocol (`IPPROTO_TCP` and so on).
    pub(crate) protocol: u8,
    /// Source and destination port; zero for protocols without ports and for fragments, because
    /// only the first fragment has them and all must be one flow.
    pub(crate) ports: [u16; 2],
    pub(crate) ecn: Ecn,
    /// Whether there is data after the transport header. Only TCP packets may have none.
    pub(crate) has_data: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Size of an IPv6 header without extensions.
const V6_BYTES: usize = 40;
/// Maximum extension headers skipped.
const MAX_EXTENSIONS: usize = 8;

/// Parses the headers of `packet`; `None` if it is not an IP packet or is truncated.
pub(crate) fn parse(packet: &[u8]) -> Option<PacketFields> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

/// RFC 791 §3.1.
fn parse_v4(packet: &[u8]) -> Option<PacketFields> {
    let fixed: &[u8; 20] = packet.first_chunk()?;
    let header_bytes = usize::from(fixed[0] & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header_bytes < fixed.len() || total < header_bytes || total > packet.len() {
        return None;
    }
    let is_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
    let protocol = fixed[9];
    let transport = &packet[header_bytes..total];
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    Some(PacketFields {
        source: address(12).into(),
        destination: address(16).into(),
        protocol,
        ports: if is_fragment { [0; 2] } else { ports(protocol, transport) },
        ecn: ecn(fixed[1]),
        has_data: is_fragment || has_data(protocol, transport),
    })
}

/// RFC 8200 §3 and §4.
fn parse_v6(packet: &[u8]) -> Option<PacketFields> {
    let fixed: &[u8; V6_BYTES] = packet.first_chunk()?;
    let payload_bytes = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let payload = packet.get(V6_BYTES..V6_BYTES + payload_bytes)?;
    let address = |at: usize| {
        let octets: [u8; 16] = std::array::from_fn(|n| fixed[at + n]);
        Ipv6Addr::from(octets)
    };
    let (protocol, transport) = look_through_extensions(fixed[6], payload);
    Some(PacketFields {
        source: address(8).into(),
        destination: address(24).into(),
        protocol,
        ports: ports(protocol, transport),
        ecn: ecn(fixed[1] >> 4),
        has_data: has_data(protocol, transport),
    })
}

/// The transport protocol and its header; empty for fragments.
fn look_through_extensions(mut next: u8, mut rest: &[u8]) -> (u8, &[u8]) {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION_OPTIONS: u8 = 60;
    for _ in 0..MAX_EXTENSIONS {
        let Some(&[after, length]) = rest.first_chunk() else { break };
        let bytes = match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8 * (usize::from(length) + 1),
            FRAGMENT => return (after, &[]),
            _ => break,
        };
        let Some(behind) = rest.get(bytes..) else { break };
        (next, rest) = (after, behind);
    }
    (next, rest)
}

fn ports(protocol: u8, transport: &[u8]) -> [u16; 2] {
    match (protocol, transport) {
        (TCP | UDP | DCCP | SCTP | UDP_LITE, [a, b, c, d, ..]) => {
            [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])]
        }
        _ => [0; 2],
    }
}

/// Whether a transport packet has more than its header (RFC 9293 §3.1).
fn has_data(protocol: u8, transport: &[u8]) -> bool {
    match (protocol, transport.get(12)) {
        (TCP, Some(offset)) => transport.len() > usize::from(offset >> 4) * 4,
        _ => true,
    }
}

/// The two low bits of the traffic class (RFC 3168 §5).
fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// The two low bits of the traffic class (RFC 3168 §5).
fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

/// Sets the packet's ECN field. [`parse`] must accept the packet.
pub(crate) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let bits = bits(ecn);
    match packet {
        [first, class, ..] if *first >> 4 == 6 => *class = *class & !0x30 | bits << 4,
        [first, class, _, _, _, _, _, _, _, _, high, low, ..] => {
            // RFC 1624 §3, equation 3: HC' = ~(~HC + ~m + m'), m being the first 16 bits.
            let old = u16::from_be_bytes([*first, *class]);
            *class = *class & !3 | bits;
            let new = u16::from_be_bytes([*first, *class]);
            let checksum = u16::from_be_bytes([*high, *low]);
            let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            [*high, *low] = (!(sum as u16)).to_be_bytes();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The full checksum of RFC 1071, as reference.
    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for word in header.chunks(2) {
            sum += u32::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn v4(class: u8, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let total = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, class];
        packet.extend(total.to_be_bytes());
        packet.extend([0, 1]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    fn v6(class: u8, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60 | class >> 4, class << 4 | 0xa, 0xbc, 0xde];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend("2001:2::1".parse::<Ipv6Addr>().expect("valid").octets());
        packet.extend("2001:2:0:1::1".parse::<Ipv6Addr>().expect("valid").octets());
        packet.extend(payload);
        packet
    }

    const PORTS: [u8; 8] = [0x12, 0x34, 0, 80, 0, 8, 0, 0];

    #[test]
    fn both_ip_versions_are_parsed() {
        for packet in [v4(2, UDP, 0, &PORTS), v6(2, UDP, &PORTS)] {
            let header = parse(&packet).expect("a packet");
            assert_eq!((header.protocol, header.ports, header.ecn), (UDP, [0x1234, 80], Ecn::Ect0));
        }
        let header = parse(&v4(0xb8 | 1, TCP, 0x4000, &PORTS)).expect("a packet");
        assert_eq!((header.source, header.ecn), ("198.18.0.1".parse().expect("valid"), Ecn::Ect1));
        assert_eq!(header.ports, [0x1234, 80], "DF does not mean a fragment");
    }

    /// A header of TCP with options: 32 bytes.
    #[test]
    fn tcp_segment_has_data_or_none() {
        let header = [PORTS.as_slice(), &[0, 0, 0, 0, 0x80, 0x10], &[0; 18]].concat();
        for (data, has) in [(0, false), (1, true), (1448, true)] {
            let segment = [header.as_slice(), &vec![0; data]].concat();
            for packet in [v4(0, TCP, 0, &segment), v6(0, TCP, &segment)] {
                assert_eq!(parse(&packet).expect("a packet").has_data, has, "{data} B");
            }
        }
        assert!(parse(&v4(0, UDP, 0, &PORTS)).expect("a packet").has_data);
    }

    #[test]
    fn fragments_of_a_packet_belong_to_one_flow() {
        for fragment in [0x2000, 0x2001, 0x0001] {
            assert_eq!(parse(&v4(0, UDP, fragment, &PORTS)).expect("a packet").ports, [0, 0]);
        }
        let fragment = [&[UDP, 0, 0, 1, 0, 0, 0, 1], PORTS.as_slice()].concat();
        let header = parse(&v6(0, 44, &fragment)).expect("a packet");
        assert_eq!((header.protocol, header.ports), (UDP, [0, 0]));
    }

    #[test]
    fn extension_headers_are_skipped() {
        let options = [&[60, 0, 1, 4, 0, 0, 0, 0, UDP, 1], [0; 14].as_slice(), &PORTS].concat();
        let header = parse(&v6(0, 0, &options)).expect("a packet");
        assert_eq!((header.protocol, header.ports), (UDP, [0x1234, 80]));
    }

    #[test]
    fn invalid_packets_are_rejected() {
        let short = |mut packet: Vec<u8>| {
            packet.pop();
            packet
        };
        let mut no_header = v4(0, TCP, 0, &PORTS);
        no_header[0] = 0x44;
        for packet in [
            vec![],
            vec![0x45],
            vec![0; 60],
            vec![0xff; 60],
            short(v4(0, TCP, 0, &PORTS)),
            short(v6(0, TCP, &PORTS)),
            no_header,
        ] {
            assert_eq!(parse(&packet), None, "{packet:02x?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_packets_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for version in [0x40, 0x45, 0x60] {
                if let Some(first) = bytes.first_mut() {
                    *first = version | *first & 0xf;
                }
                parse(&bytes);
                set_ecn(&mut bytes, Ecn::Ce);
            }
        }

        /// Compared with the full checksum.
        #[test]
        fn a_mark_keeps_the_checksum_right(class: u8, fragment: u16, payload: [u8; 9]) {
            for (ecn, bits) in [(Ecn::Ce, 3), (Ecn::NotEct, 0), (Ecn::Ect0, 2), (Ecn::Ect1, 1)] {
                let mut packet = v4(class, UDP, fragment, &payload);
                set_ecn(&mut packet, ecn);
                prop_assert_eq!(packet[1], class & !3 | bits);
                prop_assert_eq!(checksum(&packet[..20]), 0);
                prop_assert_eq!(parse(&packet).map(|header| header.ecn), Some(ecn));
                let mut packet = v6(class, UDP, &payload);
                set_ecn(&mut packet, ecn);
                prop_assert_eq!(packet, v6(class & !3 | bits, UDP, &payload));
            }
        }
    }
}
