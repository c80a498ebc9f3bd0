//! Checks routes that set an algorithm, or limit windows and packets.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::{ExaminedHost, FindingId};
use crate::facts::{LimitingRoute, Route};

/// Most destinations that a finding names: a policy makes thousands of routes.
const NAMED: usize = 3;
/// The initial window of RFC 6928, in packets.
const INITIAL_WINDOW: u32 = 10;
/// The smallest MTU of IPv6 (RFC 8200, section 5).
pub(super) const MIN_MTU: u32 = 1_280;

pub(super) fn check(host: ExaminedHost<'_>, findings: &mut Vec<Finding>) {
    let mut alike: BTreeMap<(bool, &str), Vec<&Route>> = BTreeMap::new();
    for route in host.own.routes.iter().filter(|route| route.congctl != host.wanted) {
        alike.entry((route.is_locked, &route.congctl)).or_default().push(route);
    }
    findings.extend(alike.iter().map(|((is_locked, cc), routes)| {
        if *is_locked { locks(cc, routes) } else { overrides(cc, routes) }
    }));
    let mut limits: BTreeMap<String, Vec<&LimitingRoute>> = BTreeMap::new();
    for route in &host.own.limiting_routes {
        if let Some(limit) = limit_of(route) {
            limits.entry(limit).or_default().push(route);
        }
    }
    findings.extend(limits.iter().map(|(limit, routes)| limited(limit, routes)));
}

fn locks(cc: &str, routes: &[&Route]) -> Finding {
    let (first, to) = (routes[0], to(routes.iter().map(|it| &*it.destination)));
    let by = if routes.len() == 1 { "a route locks it" } else { "routes lock it" };
    Finding::note(FindingId::RouteLocks, format!("Connections to {to} run {cc}: {by}."))
        .why("TCP_CONGESTION fails there with \"Operation not permitted\".")
        .remedy(show(first.table, &first.destination, routes.len(), "congctl"))
}

fn overrides(cc: &str, routes: &[&Route]) -> Finding {
    let (first, to) = (routes[0], to(routes.iter().map(|it| &*it.destination)));
    let by = if routes.len() == 1 {
        "a route without lock chooses it"
    } else {
        "routes without lock choose it"
    };
    let show = show(first.table, &first.destination, routes.len(), "congctl");
    Finding::warning(FindingId::RouteOverrides, format!("Connections to {to} run {cc}: {by}."))
        .why(
            "It also overrides TCP_CONGESTION set on a listener or before connect(); only a call after \
             the handshake wins. HAProxy's `cc` and systemd's `TCPCongestion=` lose to it.",
        )
        .remedy("If it is meant: ip route change … congctl lock; programs then get an error instead.")
        .remedy(format!("If not: {show}; set it again without congctl."))
}

/// What a route limits to less than it should be.
fn limit_of(route: &LimitingRoute) -> Option<String> {
    let limits = [
        route.initcwnd.filter(|it| *it < INITIAL_WINDOW).map(|it| format!("initcwnd {it}")),
        route.cwnd.map(|it| format!("cwnd lock {it}")),
        route.window.map(|it| format!("window {it}")),
        route.mtu.filter(|it| *it < MIN_MTU).map(|it| format!("mtu {it}")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(" "))
}

fn limited(limit: &str, routes: &[&LimitingRoute]) -> Finding {
    let (first, to) = (routes[0], to(routes.iter().map(|it| &*it.destination)));
    let which = if routes.len() == 1 { "The route to" } else { "Routes to" };
    let has = if routes.len() == 1 { "has" } else { "have" };
    Finding::warning(FindingId::RouteLimits, format!("{which} {to} {has} the limit `{limit}`."))
        .why(
            "A small initcwnd costs round trips at the start (RFC 6928: 10 packets); cwnd and window bound the rate to \
             themselves per round trip; a small mtu costs a header for each few bytes (ip-route(8)).",
        )
        .remedy(format!(
            "{}; set it again without `{limit}`",
            show(first.table, &first.destination, routes.len(), limit.split(' ').next().unwrap_or_default())
        ))
}

/// `10.0.0.0/8`, or `360 networks (11.0.0.0/24, 11.0.1.0/24, 11.0.2.0/24, …)`.
fn to<'a>(destinations: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = destinations.len();
    let names: Vec<_> = destinations.take(NAMED).collect();
    match (&names[..], count) {
        ([name], _) => (*name).to_owned(),
        (names, count) => {
            let more = if count > names.len() { ", …" } else { "" };
            format!("{count} networks ({}{more})", names.join(", "))
        }
    }
}

/// The command that shows the routes.
fn show(table: u32, destination: &str, count: usize, word: &str) -> String {
    if count == 1 {
        format!("ip route show table {table} {destination}")
    } else {
        format!("ip route show table all | grep {word}")
    }
}
