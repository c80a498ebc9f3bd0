//! Routes as values that are compared, changed and restored as rtnetlink messages.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use netlink_packet_core::{Emitable, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags, RoutePreference, RouteProtocol, RouteScope, RouteType, RouteVia,
};

use super::desired_state::{DesiredRoute, Prefix};
use super::host::HostError;
use super::setting::Route;

/// `RTAX_CC_ALGO` in the bits of `RTAX_LOCK` (linux/rtnetlink.h).
const CONGCTL: u32 = 1 << 16;

/// The destination and metric of a unicast route in the main table, and its value. `names` maps
/// interface indexes to names.
pub(crate) fn of(
    message: &RouteMessage,
    names: &BTreeMap<u32, String>,
) -> Option<(Prefix, u32, Route)> {
    let kind = message.header.kind;
    if kind != RouteType::Unicast || !is_of_main_table(&message.header) {
        return None;
    }
    let (to, metric) = destination(message);
    let message = by_nexthop_object(message.clone());
    let path = path(&message, names);
    Some((to, metric, value(message, path)))
}

/// Without what the kernel reports of a nexthop object: it refuses a route that names both.
fn by_nexthop_object(mut message: RouteMessage) -> RouteMessage {
    let has_object =
        |attribute: &RouteAttribute| matches!(attribute, RouteAttribute::NhId(id) if *id != 0);
    if message.attributes.iter().any(has_object) {
        message.header.flags.remove(RouteFlags::Onlink);
        message.attributes.retain(|attribute| {
            !matches!(
                attribute,
                RouteAttribute::Gateway(_)
                    | RouteAttribute::Via(_)
                    | RouteAttribute::Oif(_)
                    | RouteAttribute::MultiPath(_)
                    | RouteAttribute::Encap(_)
                    | RouteAttribute::EncapType(_)
            )
        });
    }
    message
}

/// The destination and metric of a route of the main table that leads nowhere.
pub(crate) fn closed(message: &RouteMessage) -> Option<(Prefix, u32)> {
    let header = &message.header;
    let leads_nowhere = matches!(
        header.kind,
        RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit | RouteType::Throw
    );
    (leads_nowhere && is_of_main_table(header)).then(|| destination(message))
}

/// Whether a change or a copy would not stay what it is. The kernel refreshes and removes a route that expires or that a router
/// advertisement made only if no program has set it again. Of IPv4 routes with one nexthop object, the kernel gives the metrics of
/// the first to all that are set without metrics, also to restore them (linux net/ipv4/fib_semantics.c, `fib_find_info_nh`).
pub(crate) fn is_fixed(message: &RouteMessage) -> bool {
    message.header.protocol == RouteProtocol::Ra
        || message.attributes.iter().any(|attribute| match attribute {
            RouteAttribute::CacheInfo(info) => info.expires != 0,
            RouteAttribute::Expires(seconds) => *seconds != 0,
            RouteAttribute::NhId(id) => {
                *id != 0 && message.header.address_family == AddressFamily::Inet
            }
            _ => false,
        })
}

fn is_of_main_table(header: &RouteHeader) -> bool {
    header.table == RouteHeader::RT_TABLE_MAIN
        && (header.source_prefix_length, header.tos) == (0, 0)
        && !header.flags.contains(RouteFlags::Cloned)
}

/// The destination and the metric.
fn destination(message: &RouteMessage) -> (Prefix, u32) {
    let (mut to, mut metric) = (None, 0);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => to = Some(IpAddr::V4(*ip)),
            RouteAttribute::Destination(RouteAddress::Inet6(ip)) => to = Some(IpAddr::V6(*ip)),
            RouteAttribute::Priority(number) => metric = *number,
            _ => {}
        }
    }
    let header = &message.header;
    let to = to.unwrap_or(match header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    });
    (Prefix { address: to, bits: header.destination_prefix_length }, metric)
}

/// Normalises a message, so that equal routes have equal bytes.
fn value(mut message: RouteMessage, path: String) -> Route {
    message.header.flags &= RouteFlags::Onlink;
    message.attributes.retain(|attribute| {
        // These describe the state of a route, not its configuration.
        !matches!(attribute, RouteAttribute::CacheInfo(_) | RouteAttribute::Expires(_))
    });
    for attribute in &mut message.attributes {
        if let RouteAttribute::MultiPath(hops) = attribute {
            for hop in hops {
                hop.flags &= RouteNextHopFlags::Onlink;
            }
        }
    }
    let mut metrics = take_metrics(&mut message);
    let (mut congctl, mut locked) = (None, false);
    for metric in &mut metrics {
        match metric {
            RouteMetric::CcAlgo(name) => {
                *name = name.trim_end_matches('\0').to_owned();
                congctl = Some(name.clone());
            }
            RouteMetric::Lock(bits) => locked = *bits & CONGCTL != 0,
            _ => {}
        }
    }
    if !metrics.is_empty() {
        metrics.sort_by_key(netlink_packet_core::Nla::kind);
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    message.attributes.sort_by_key(netlink_packet_core::Nla::kind);
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    Route { path, congctl, locked, message: HEXLOWER.encode(&bytes) }
}

/// Removes the metrics from the message and returns them.
fn take_metrics(message: &mut RouteMessage) -> Vec<RouteMetric> {
    let is_metrics =
        |attribute: &mut RouteAttribute| matches!(attribute, RouteAttribute::Metrics(_));
    let metrics = |attribute| match attribute {
        RouteAttribute::Metrics(metrics) => metrics,
        _ => Vec::new(),
    };
    message.attributes.extract_if(.., is_metrics).flat_map(metrics).collect()
}

/// The message that creates a route.
pub(crate) fn message(route: &Route) -> Result<RouteMessage, HostError> {
    let bytes = HEXLOWER_PERMISSIVE.decode(route.message.as_bytes()).ok();
    let message = bytes.and_then(|bytes| RouteMessage::parse(&bytes).ok());
    message.ok_or_else(|| HostError(format!("`{}` is not an rtnetlink route", route.message)))
}

/// A route with the desired algorithm: `base`, or a route to a part of its destination.
pub(crate) fn choosing(base: &Route, desired: &DesiredRoute) -> Result<Route, HostError> {
    let mut made = message(base)?;
    let mut path = base.path.clone();
    if made.header.destination_prefix_length != desired.to.bits {
        made.header.destination_prefix_length = desired.to.bits;
        // Programs that manage the original route, such as DHCP clients, do not touch a static one.
        path = path.replace(protocol(made.header.protocol).trim_start(), "proto static");
        made.header.protocol = RouteProtocol::Static;
        made.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Destination(_)));
        made.attributes.push(RouteAttribute::Destination(desired.to.address.into()));
    }
    let mut metrics = take_metrics(&mut made);
    metrics.retain(|metric| !matches!(metric, RouteMetric::CcAlgo(_)));
    metrics.push(RouteMetric::CcAlgo(desired.algorithm.clone()));
    if let Some(packets) = desired.initial_window {
        let before = metrics_text(&metrics);
        metrics.retain(|metric| !matches!(metric, RouteMetric::InitCwnd(_)));
        metrics.push(RouteMetric::InitCwnd(packets));
        metrics.sort_by_key(netlink_packet_core::Nla::kind);
        path = with_metrics(&path, &before, &metrics_text(&metrics));
    }
    let locked = locks(&metrics) & !CONGCTL | if desired.lock { CONGCTL } else { 0 };
    metrics.retain(|metric| !matches!(metric, RouteMetric::Lock(_)));
    if locked != 0 {
        metrics.push(RouteMetric::Lock(locked));
    }
    made.attributes.push(RouteAttribute::Metrics(metrics));
    Ok(value(made, path))
}

/// The packets of the initial window that a route sets.
pub(crate) fn initial_window(route: &Route) -> Option<u32> {
    let metrics = take_metrics(&mut message(route).ok()?);
    metrics.iter().find_map(|metric| match metric {
        RouteMetric::InitCwnd(packets) => Some(*packets),
        _ => None,
    })
}

/// A path with other metrics. They come before the next hops.
fn with_metrics(path: &str, before: &str, after: &str) -> String {
    if !before.is_empty() {
        return path.replacen(before, after, 1);
    }
    let place = path.find(" nexthop").or_else(|| path.find(" [")).unwrap_or(path.len());
    format!("{}{after}{}", &path[..place], &path[place..])
}

/// The locked metrics, as bits.
fn locks(metrics: &[RouteMetric]) -> u32 {
    let bits = |metric: &RouteMetric| match metric {
        RouteMetric::Lock(bits) => Some(*bits),
        _ => None,
    };
    metrics.iter().find_map(bits).unwrap_or(0)
}

/// The metrics in the syntax of `ip route`.
fn metrics_text(metrics: &[RouteMetric]) -> String {
    let locks = locks(metrics);
    metrics.iter().filter_map(|metric| option(metric, locks)).collect()
}

/// The route in the syntax of `ip route`, without destination and algorithm. Brackets name what it does not show.
fn path(message: &RouteMessage, names: &BTreeMap<u32, String>) -> String {
    let header = &message.header;
    let name = |index: &u32| names.get(index).cloned().unwrap_or_else(|| format!("if{index}"));
    let (mut words, mut options) = (Vec::new(), Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => words.push(gateway(attribute)),
            RouteAttribute::Oif(index) => words.push(format!(" dev {}", name(index))),
            RouteAttribute::PrefSource(address) => options.push(format!(" src {}", shown(address))),
            RouteAttribute::Priority(number) => options.push(format!(" metric {number}")),
            RouteAttribute::Metrics(metrics) => options.push(metrics_text(metrics)),
            RouteAttribute::MultiPath(hops) => {
                options.extend(hops.iter().map(|hop| next_hop(hop, &name)));
            }
            RouteAttribute::NhId(id) => words.push(format!(" nhid {id}")),
            _ => {}
        }
    }
    words.push(protocol(header.protocol));
    if header.scope == RouteScope::Link {
        words.push(" scope link".to_owned());
    }
    if header.flags.contains(RouteFlags::Onlink) {
        words.push(" onlink".to_owned());
    }
    let beyond = match &unnamed(message)[..] {
        [] => String::new(),
        names => format!(" [{}]", names.join(", ")),
    };
    (words.concat() + &options.concat() + &beyond).trim_start().to_owned()
}

fn gateway(attribute: &RouteAttribute) -> String {
    match attribute {
        RouteAttribute::Gateway(address) => format!(" via {}", shown(address)),
        RouteAttribute::Via(RouteVia::Inet(ip)) => format!(" via inet {ip}"),
        RouteAttribute::Via(RouteVia::Inet6(ip)) => format!(" via inet6 {ip}"),
        _ => String::new(),
    }
}

fn next_hop(hop: &RouteNextHop, name: &impl Fn(&u32) -> String) -> String {
    let via: String = hop.attributes.iter().map(gateway).collect();
    let (dev, weight) = (name(&hop.interface_index), u32::from(hop.hops) + 1);
    let onlink = if hop.flags.contains(RouteNextHopFlags::Onlink) { " onlink" } else { "" };
    format!(" nexthop{via} dev {dev} weight {weight}{onlink}")
}

fn shown(address: &RouteAddress) -> String {
    match address {
        RouteAddress::Inet(ip) => ip.to_string(),
        RouteAddress::Inet6(ip) => ip.to_string(),
        _ => "?".to_owned(),
    }
}

/// Names of `/etc/iproute2/rt_protos`. Every version of `ip` accepts other protocols as numbers.
fn protocol(protocol: RouteProtocol) -> String {
    match u8::from(protocol) {
        2 => " proto kernel".to_owned(),
        3 => " proto boot".to_owned(),
        4 => " proto static".to_owned(),
        9 => " proto ra".to_owned(),
        16 => " proto dhcp".to_owned(),
        other => format!(" proto {other}"),
    }
}

/// A metric in the syntax of `ip route`, which says `lock` before the value; `locks` are the bits of `RTAX_LOCK`.
fn option(metric: &RouteMetric, locks: u32) -> Option<String> {
    let (name, number) = match metric {
        RouteMetric::Mtu(n) => ("mtu", n),
        RouteMetric::Advmss(n) => ("advmss", n),
        RouteMetric::Window(n) => ("window", n),
        RouteMetric::SsThresh(n) => ("ssthresh", n),
        RouteMetric::Cwnd(n) => ("cwnd", n),
        RouteMetric::Reordering(n) => ("reordering", n),
        RouteMetric::Hoplimit(n) => ("hoplimit", n),
        RouteMetric::InitCwnd(n) => ("initcwnd", n),
        RouteMetric::InitRwnd(n) => ("initrwnd", n),
        RouteMetric::QuickAck(n) => ("quickack", n),
        RouteMetric::FastopenNoCookie(n) => ("fastopen_no_cookie", n),
        _ => return None,
    };
    let is_locked = 1_u32
        .checked_shl(netlink_packet_core::Nla::kind(metric).into())
        .is_some_and(|bit| locks & bit != 0);
    let lock = if is_locked { "lock " } else { "" };
    Some(format!(" {name} {lock}{number}"))
}

/// What of a route its [`Route::path`] does not have: commands with the path would remove it.
pub(crate) fn beyond_path(route: &Route) -> Vec<&'static str> {
    message(route).map(|message| unnamed(&message)).unwrap_or_default()
}

fn unnamed(message: &RouteMessage) -> Vec<&'static str> {
    let mut names = Vec::new();
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Metrics(metrics) => {
                names.extend(metrics.iter().filter_map(unnamed_metric));
            }
            RouteAttribute::MultiPath(hops) => {
                let attributes = hops.iter().flat_map(|hop| &hop.attributes);
                names.extend(attributes.filter_map(unnamed_attribute));
            }
            attribute => names.extend(unnamed_attribute(attribute)),
        }
    }
    names.dedup();
    names
}

fn unnamed_attribute(attribute: &RouteAttribute) -> Option<&'static str> {
    match attribute {
        RouteAttribute::Encap(_) => Some("encap"),
        RouteAttribute::Realm(_) => Some("realm"),
        RouteAttribute::Preference(preference) if *preference != RoutePreference::Medium => {
            Some("pref")
        }
        // The first is part of `encap`; the last two describe the state of a route.
        RouteAttribute::EncapType(_)
        | RouteAttribute::Preference(_)
        | RouteAttribute::CacheInfo(_)
        | RouteAttribute::Expires(_)
        | RouteAttribute::Destination(_)
        | RouteAttribute::Gateway(_)
        | RouteAttribute::Via(_)
        | RouteAttribute::Oif(_)
        | RouteAttribute::PrefSource(_)
        | RouteAttribute::Priority(_)
        | RouteAttribute::NhId(_)
        | RouteAttribute::Table(_) => None,
        _ => Some("other attributes"),
    }
}

fn unnamed_metric(metric: &RouteMetric) -> Option<&'static str> {
    match metric {
        RouteMetric::Rtt(_) => Some("rtt"),
        RouteMetric::RttVar(_) => Some("rttvar"),
        RouteMetric::RtoMin(_) => Some("rto_min"),
        RouteMetric::Features(_) => Some("features"),
        RouteMetric::Lock(_) | RouteMetric::CcAlgo(_) => None,
        metric => option(metric, 0).is_none().then_some("other metrics"),
    }
}
