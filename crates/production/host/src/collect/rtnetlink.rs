//! Interfaces, queue disciplines and routes of the calling thread's namespace, through rtnetlink(7).

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{DefaultNla, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};

use crate::facts::{Interface, LimitingRoute, Route};
use crate::netlink::Netlink;

/// `RTAX_CC_ALGO` in the bits of `RTAX_LOCK` (linux/rtnetlink.h).
const LOCKED: u32 = 1 << 16;
/// `RTAX_CWND`, likewise: without lock the kernel ignores it.
const LOCKED_CWND: u32 = 1 << 7;
/// Attributes of linux/pkt_sched.h and linux/gen_stats.h.
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_STATS_PKT64: u16 = 8;

pub(super) fn interfaces(netlink: &mut Netlink) -> io::Result<Vec<Interface>> {
    let mut disciplines = Disciplines::default();
    netlink.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()), |message| {
        if let RouteNetlinkMessage::NewQueueDiscipline(message) = message {
            disciplines.add(&message);
        }
    })?;
    let mut interfaces = Vec::new();
    netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()), |message| {
        if let RouteNetlinkMessage::NewLink(link) = message {
            interfaces.push(disciplines.interface(&link));
        }
    })?;
    Ok(interfaces)
}

/// Reads arbitrary messages, for `crates/production/host/fuzz`.
#[cfg(fuzzing)]
pub(crate) fn read_messages(messages: Vec<RouteNetlinkMessage>) {
    let mut disciplines = Disciplines::default();
    for message in messages {
        match message {
            RouteNetlinkMessage::NewQueueDiscipline(message) => disciplines.add(&message),
            RouteNetlinkMessage::NewLink(link) => drop(disciplines.interface(&link)),
            RouteNetlinkMessage::NewRoute(message) => {
                drop((route(&message), limiting_route(&message)));
            }
            _ => {}
        }
    }
}

/// The queue disciplines of each interface, by its index.
#[derive(Debug, Default)]
struct Disciplines {
    roots: BTreeMap<i32, RootQdisc>,
    leaves: BTreeMap<i32, Vec<String>>,
}

impl Disciplines {
    fn add(&mut self, message: &TcMessage) {
        let index = message.header.index;
        if message.header.parent == TcHandle::ROOT {
            self.roots.insert(index, RootQdisc::of(&message.attributes));
            return;
        }
        let kinds = message.attributes.iter().filter_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind.clone()),
            _ => None,
        });
        self.leaves.entry(index).or_default().extend(kinds);
    }

    fn interface(&mut self, link: &LinkMessage) -> Interface {
        let index = i32::try_from(link.header.index).unwrap_or(0);
        let root = self.roots.remove(&index).unwrap_or_default();
        interface(link, self.leaves.remove(&index).unwrap_or_default(), &root)
    }
}

/// What the root discipline of an interface says of itself.
#[derive(Debug, Default, PartialEq)]
struct RootQdisc {
    shaped_rate: Option<u64>,
    sent_packets: Option<u64>,
    dropped_packets: Option<u64>,
}

impl RootQdisc {
    fn of(attributes: &[TcAttribute]) -> Self {
        let mut root = Self::default();
        let mut kind = "";
        for attribute in attributes {
            match attribute {
                TcAttribute::Kind(name) => kind = name,
                TcAttribute::Options(options) => root.shaped_rate = shaped_rate(kind, options),
                TcAttribute::Stats2(all) => all.iter().for_each(|stats| root.count(stats)),
                _ => {}
            }
        }
        root
    }

    fn count(&mut self, stats: &TcStats2) {
        match stats {
            TcStats2::Basic(basic) => {
                self.sent_packets = self.sent_packets.max(Some(basic.packets.into()));
            }
            TcStats2::Queue(queue) => self.dropped_packets = Some(queue.drops.into()),
            // The kernel sends it only where 32 bits are not enough.
            TcStats2::Other(nla) if nla.kind() == TCA_STATS_PKT64 => {
                self.sent_packets = self.sent_packets.max(number(&bytes(nla), 0));
            }
            _ => {}
        }
    }
}

/// The rate of `tbf` or `cake`, in bytes per second; `None` without one.
fn shaped_rate(kind: &str, options: &[TcOption]) -> Option<u64> {
    let option = |number: u16| {
        options.iter().find_map(|option| match option {
            TcOption::Other(nla) if nla.kind() == number => Some(bytes(nla)),
            _ => None,
        })
    };
    let rate = match kind {
        "tbf" => match option(TCA_TBF_RATE64) {
            Some(rate) => number(&rate, 0)?,
            // `struct tc_tbf_qopt` begins with a `struct tc_ratespec`; its rate is its last field.
            None => {
                u64::from(u32::from_ne_bytes(option(TCA_TBF_PARMS)?.get(8..12)?.try_into().ok()?))
            }
        },
        "cake" => number(&option(TCA_CAKE_BASE_RATE64)?, 0)?,
        _ => return None,
    };
    (rate > 0).then_some(rate)
}

fn bytes(nla: &DefaultNla) -> Vec<u8> {
    let mut bytes = vec![0; nla.value_len()];
    nla.emit_value(&mut bytes);
    bytes
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The routes that set an algorithm.
pub(super) fn routes(netlink: &mut Netlink) -> io::Result<Vec<Route>> {
    let mut routes = Vec::new();
    netlink.routes(|message| routes.extend(route(&message)))?;
    Ok(routes)
}

/// The routes that set an algorithm, and the routes that limit windows or packets.
pub(super) fn all_routes(netlink: &mut Netlink) -> io::Result<(Vec<Route>, Vec<LimitingRoute>)> {
    let (mut routes, mut limiting) = (Vec::new(), Vec::new());
    netlink.routes(|message| {
        routes.extend(route(&message));
        limiting.extend(limiting_route(&message));
    })?;
    Ok((routes, limiting))
}

fn interface(link: &LinkMessage, leaves: Vec<String>, root: &RootQdisc) -> Interface {
    let flags = link.header.flags;
    let mut interface = Interface {
        name: String::new(),
        is_up: flags.contains(LinkFlags::Up),
        is_virtual: flags.contains(LinkFlags::Loopback),
        qdisc: String::new(),
        leaves,
        mtu: None,
        shaped_rate: root.shaped_rate,
        sent_packets: root.sent_packets,
        dropped_packets: root.dropped_packets,
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => interface.mtu = Some(*mtu),
            LinkAttribute::Qdisc(kind) => interface.qdisc.clone_from(kind),
            // Devices without a kind have a hardware driver.
            LinkAttribute::LinkInfo(infos) => {
                interface.is_virtual |= infos.iter().any(|info| matches!(info, LinkInfo::Kind(_)));
            }
            _ => {}
        }
    }
    interface
}

/// The prefix and the table of a route.
fn place(message: &RouteMessage) -> (String, u32) {
    let header = &message.header;
    let (mut destination, mut table) = ("default".to_owned(), u32::from(header.table));
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => {
                destination = format!("{ip}/{}", header.destination_prefix_length);
            }
            RouteAttribute::Destination(RouteAddress::Inet6(ip)) => {
                destination = format!("{ip}/{}", header.destination_prefix_length);
            }
            RouteAttribute::Table(number) => table = *number,
            _ => {}
        }
    }
    (destination, table)
}

fn metrics(message: &RouteMessage) -> impl Iterator<Item = &RouteMetric> {
    let metrics = message.attributes.iter().filter_map(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => Some(metrics),
        _ => None,
    });
    metrics.flatten()
}

/// The metrics that are locked, as bits.
fn locks(message: &RouteMessage) -> u32 {
    metrics(message)
        .find_map(|metric| match metric {
            RouteMetric::Lock(bits) => Some(*bits),
            _ => None,
        })
        .unwrap_or(0)
}

fn route(message: &RouteMessage) -> Option<Route> {
    let congctl = metrics(message).find_map(|metric| match metric {
        RouteMetric::CcAlgo(name) => Some(name.trim_end_matches('\0').to_owned()),
        _ => None,
    })?;
    let (destination, table) = place(message);
    Some(Route { destination, table, congctl, is_locked: locks(message) & LOCKED != 0 })
}

fn limiting_route(message: &RouteMessage) -> Option<LimitingRoute> {
    let (mut initcwnd, mut cwnd, mut window, mut mtu) = (None, None, None, None);
    for metric in metrics(message) {
        match metric {
            RouteMetric::InitCwnd(packets) => initcwnd = Some(*packets),
            RouteMetric::Cwnd(packets) if locks(message) & LOCKED_CWND != 0 => {
                cwnd = Some(*packets);
            }
            RouteMetric::Window(bytes) => window = Some(*bytes),
            RouteMetric::Mtu(bytes) => mtu = Some(*bytes),
            _ => {}
        }
    }
    initcwnd.or(cwnd).or(window).or(mtu)?;
    let (destination, table) = place(message);
    Some(LimitingRoute { destination, table, initcwnd, cwnd, window, mtu })
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::tc::{TcStatsBasic, TcStatsQueue};

    use super::*;

    fn other(kind: u16, bytes: &[u8]) -> DefaultNla {
        DefaultNla::new(kind, bytes.to_vec())
    }

    #[test]
    fn a_token_bucket_has_its_rate_and_what_it_dropped() {
        // 5 Mbit/s, in a `struct tc_tbf_qopt` of 36 bytes.
        let mut parms = vec![0; 36];
        parms[8..12].copy_from_slice(&625_000_u32.to_ne_bytes());
        let (mut basic, mut queue) = (TcStatsBasic::default(), TcStatsQueue::default());
        (basic.packets, queue.drops) = (4_000, 120);
        let attributes = [
            TcAttribute::Kind("tbf".to_owned()),
            TcAttribute::Options(vec![TcOption::Other(other(TCA_TBF_PARMS, &parms))]),
            TcAttribute::Stats2(vec![TcStats2::Basic(basic), TcStats2::Queue(queue)]),
        ];
        let expected = RootQdisc {
            shaped_rate: Some(625_000),
            sent_packets: Some(4_000),
            dropped_packets: Some(120),
        };
        assert_eq!(RootQdisc::of(&attributes), expected);
        let many = TcStats2::Other(other(TCA_STATS_PKT64, &5_000_000_000_u64.to_ne_bytes()));
        let root = RootQdisc::of(&[TcAttribute::Stats2(vec![TcStats2::Basic(basic), many])]);
        assert_eq!(root.sent_packets, Some(5_000_000_000));
    }

    #[test]
    fn cake_shapes_only_with_a_bandwidth() {
        let rate = |bps: u64| {
            let option = TcOption::Other(other(TCA_CAKE_BASE_RATE64, &bps.to_ne_bytes()));
            shaped_rate("cake", &[option])
        };
        assert_eq!((rate(0), rate(1_250_000)), (None, Some(1_250_000)));
        assert_eq!(shaped_rate("fq", &[]), None);
    }
}
