//! IP networks.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// A network in CIDR notation, such as `203.0.113.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// The part before `/` is not an address.
    #[error("not a network: write 203.0.113.0/24 or 2001:db8::/32")]
    Address,
    /// The part after `/` is not a prefix length of that family.
    #[error(
        "bad prefix length: write a number from 0 to {most}, as in 203.0.113.0/24 or 2001:db8::/32"
    )]
    Bits {
        /// The longest prefix.
        most: u8,
    },
    /// Bits after the prefix are set.
    #[error("host bits are set: write {0}")]
    HostBits(Prefix),
}

/// The mapped addresses of IPv4 (RFC 4291 §2.5.5.2): first and last.
const MAPPED: (u128, u128) = (0xffff << 32, (0xffff << 32) | 0xffff_ffff);

/// A set of networks for fast lookup: sorted, disjoint address ranges. A network of IPv6 contains no address of IPv4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes(Box<[(u128, u128)]>);

impl Prefix {
    /// The network of prefix length `bits` that contains `address`.
    pub fn of(address: IpAddr, bits: u8) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        };
        Self { address, bits }
    }

    /// The network address, with host bits zero.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The prefix length.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// The network's address with IPv4 mapped (RFC 4291 §2.5.5.2), and its prefix length, then 96 more.
    pub(crate) fn mapped(self) -> (u128, u8) {
        let more = if self.address.is_ipv4() { 96 } else { 0 };
        (number(self.address), self.bits + more)
    }

    /// Its addresses, IPv4 mapped: ranges of first and last. A network of IPv6 around all mapped addresses has a gap there.
    fn ranges(self) -> impl Iterator<Item = (u128, u128)> {
        let (first, last) = self.range();
        let holds_ipv4 = self.address.is_ipv6() && first <= MAPPED.0 && MAPPED.1 <= last;
        let end = if holds_ipv4 { MAPPED.0.checked_sub(1) } else { Some(last) };
        let low = end.filter(|end| first <= *end).map(|end| (first, end));
        let high = (holds_ipv4 && MAPPED.1 < last).then_some((MAPPED.1 + 1, last));
        low.into_iter().chain(high)
    }

    fn range(self) -> (u128, u128) {
        let first = number(self.address);
        let wide = if self.address.is_ipv4() { 32 } else { 128 };
        let free = wide - u32::from(self.bits);
        (first, first | u128::MAX.checked_shr(128 - free).unwrap_or(0))
    }
}

impl Prefixes {
    /// The union of these.
    pub fn new(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        let mut ranges: Vec<_> = prefixes.into_iter().flat_map(Prefix::ranges).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1.saturating_add(1);
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
        Self(ranges.into())
    }

    /// As few networks as have the same addresses: first address and prefix length, IPv4 mapped.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u128, u8)> {
        self.0.iter().flat_map(|(first, last)| {
            let mut next = Some(*first);
            std::iter::from_fn(move || {
                let start = next?;
                // The largest block that begins here and does not reach beyond the end.
                let free = (0..=128_u32)
                    .take_while(|free| {
                        let rest = u128::MAX.checked_shr(128 - free).unwrap_or(0);
                        start & rest == 0 && start | rest <= *last
                    })
                    .last()?;
                let end = start | u128::MAX.checked_shr(128 - free).unwrap_or(0);
                next = end.checked_add(1).filter(|after| after <= last);
                Some((start, (128 - free) as u8))
            })
        })
    }

    /// Whether it contains all addresses of `other`.
    pub(crate) fn contains_all(&self, other: &Self) -> bool {
        other.0.iter().all(|(first, last)| {
            let after = self.0.partition_point(|(begin, _)| begin <= first);
            after > 0 && *last <= self.0[after - 1].1
        })
    }

    /// Whether one of them contains `address`; IPv4-mapped addresses are IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = number(address.to_canonical());
        let after = self.0.partition_point(|(first, _)| *first <= address);
        after > 0 && address <= self.0[after - 1].1
    }
}

/// The address as an IPv6 number; IPv4 addresses are mapped (RFC 4291 §2.5.5.2).
fn number(address: IpAddr) -> u128 {
    let v6: Ipv6Addr = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    v6.to_bits()
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let digits = |bits: &str| bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = match bits {
            None => most,
            Some(bits) => {
                let number = bits.parse().ok().filter(|n| *n <= most && digits(bits));
                number.ok_or(PrefixError::Bits { most })?
            }
        };
        // An IPv4-mapped address becomes IPv4.
        let mapped = address.is_ipv6() && address.to_canonical().is_ipv4();
        let bits = match bits.checked_sub(96) {
            Some(bits) if mapped => bits,
            None if mapped => {
                let host = Ipv6Addr::from_bits(number(address) & !(u128::MAX >> bits));
                return Err(PrefixError::HostBits(Self { address: host.into(), bits }));
            }
            _ => bits,
        };
        let network = Self::of(address, bits);
        if network.address == address.to_canonical() {
            Ok(network)
        } else {
            Err(PrefixError::HostBits(network))
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a network")
    }

    fn error(text: &str) -> String {
        text.parse::<Prefix>().expect_err("no network").to_string()
    }

    #[test]
    fn networks_are_read_and_printed() {
        for text in ["203.0.113.0/24", "0.0.0.0/0", "10.1.2.3/32", "2001:db8::/32", "::/0"] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(prefix("10.1.2.3").to_string(), "10.1.2.3/32");
        assert_eq!(prefix("::ffff:203.0.113.0/120").to_string(), "203.0.113.0/24");
    }

    #[test]
    fn errors_suggest_the_correct_form() {
        assert_eq!(error("203.0.113.7/24"), "host bits are set: write 203.0.113.0/24");
        assert_eq!(error("::ffff:0.0.0.0/80"), "host bits are set: write ::/80");
        assert_eq!(error("::ffff:0.0.0.0/95"), "host bits are set: write ::fffe:0:0/95");
        for text in ["203.0.113.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8"] {
            assert!(error(text).contains("a number from 0 to 32"), "{text}");
        }
        assert!(error("::/129").contains("a number from 0 to 128"));
        assert!(error("203.0.113/24").contains("not a network: write"));
    }

    #[test]
    fn network_includes_its_first_and_last_address() {
        let known = Prefixes::new([prefix("203.0.113.0/24"), prefix("2001:db8::/32")]);
        for text in ["203.0.113.0", "203.0.113.255", "::ffff:203.0.113.9", "2001:db8:ffff::1"] {
            assert!(known.contains(text.parse().expect("an address")), "{text}");
        }
        for text in ["203.0.112.255", "203.0.114.0", "2001:db9::", "::", "::203.0.113.9"] {
            assert!(!known.contains(text.parse().expect("an address")), "{text}");
        }
        assert!(Prefixes::new([prefix("0.0.0.0/0")]).contains("10.0.0.1".parse().expect("it")));
        assert!(!Prefixes::new([]).contains("10.0.0.1".parse().expect("an address")));
    }

    #[test]
    fn networks_of_ipv6_contain_no_client_of_ipv4() {
        let v4: [IpAddr; 3] =
            ["0.0.0.0", "10.0.0.1", "255.255.255.255"].map(|it| it.parse().expect("it"));
        let v6: [IpAddr; 4] = ["::", "::fffe:ffff:ffff", "::1:0:0:0", "2001:db8::1"]
            .map(|it| it.parse().expect("it"));
        let all = Prefixes::new([prefix("::/0")]);
        assert!(v4.iter().all(|it| !all.contains(*it)) && v6.iter().all(|it| all.contains(*it)));
        for text in ["::/1", "::/80", "::fffe:0:0/95"] {
            let some = Prefixes::new([prefix(text)]);
            assert!(v4.iter().all(|it| !some.contains(*it)), "{text}");
            assert!(some.contains(v6[1]), "{text}");
        }
        let both = Prefixes::new([prefix("::/0"), prefix("0.0.0.0/0")]);
        assert!(v4.iter().chain(&v6).all(|it| both.contains(*it)));
        let mapped = Prefixes::new([prefix("::ffff:10.0.0.0/104")]);
        assert!(mapped.contains(v4[1]) && !mapped.contains(v4[2]));
        assert!(Prefixes::new([prefix("::ffff:0.0.0.0/96")]).contains(v4[2]));
        let blocks: Vec<_> = all.blocks().collect();
        assert!(blocks.iter().all(|(first, bits)| *bits > 80 || first >> 48 != 0), "{blocks:?}");
    }

    #[test]
    fn a_set_contains_all_of_another_by_its_ranges() {
        let set = |texts: &[&str]| Prefixes::new(texts.iter().map(|text| prefix(text)));
        let outer = set(&["10.0.0.0/9", "10.128.0.0/9", "2001:db8::/32"]);
        assert!(outer.contains_all(&set(&["10.0.0.0/8"])));
        assert!(outer.contains_all(&set(&["10.1.0.0/16", "2001:db8:1::/48"])));
        assert!(!outer.contains_all(&set(&["10.1.0.0/16", "11.0.0.0/16"])));
        assert!(!set(&["::/0"]).contains_all(&set(&["10.0.0.0/8"])));
    }

    proptest! {
        /// Short prefixes, so that networks often contain the address.
        #[test]
        fn a_set_contains_what_one_of_its_networks_contains(
            networks in prop::collection::vec((any::<u32>(), 0_u8..9), 0..12),
            address: u32,
        ) {
            let networks: Vec<_> = networks
                .into_iter()
                .map(|(address, bits)| Prefix::of(IpAddr::V4(address.into()), bits))
                .collect();
            let address = IpAddr::V4(address.into());
            let expected =
                networks.iter().any(|network| Prefix::of(address, network.bits) == *network);
            prop_assert_eq!(Prefixes::new(networks).contains(address), expected);
        }
    }
}
