//! Checks routes that set an algorithm.

use super::Host;
use super::finding::Finding;

pub(super) fn check(host: Host<'_>, findings: &mut Vec<Finding>) {
    for route in host.own.routes.iter().filter(|route| route.congctl != host.wanted) {
        let (to, cc) = (&route.destination, &route.congctl);
        findings.push(if route.is_locked {
            Finding::note("route-locks", format!("Connections to {to} run {cc}: a route locks it."))
                .why("TCP_CONGESTION fails there with \"Operation not permitted\".")
                .remedy(format!("ip route show table {} {to}", route.table))
        } else {
            Finding::warning(
                "route-overrides",
                format!("Connections to {to} run {cc}: a route without lock chooses it."),
            )
            .why(
                "It also overrides TCP_CONGESTION set on a listener or before connect(); only a call after \
                 the handshake wins. HAProxy's `cc` and systemd's `TCPCongestion=` lose to it.",
            )
            .remedy("If it is meant: ip route change … congctl lock; programs then get an error instead.")
            .remedy(format!("If not: ip route show table {} {to}; set it again without congctl.", route.table))
        });
    }
}
