//! Routes of the main table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use uncork_cc::Missing;

use super::super::desired_state::Prefix;
use super::super::host::HostError;
use super::super::route;
use super::super::setting::{Route, SettingKey, Value};
use super::{netlink, qdisc, remedy, sysctl};

/// What the main table has.
pub(super) struct MainTable {
    /// Its unicast routes; of several to one destination the preferred one.
    pub(super) routes: Vec<(Prefix, Route)>,
    /// Destinations that lead nowhere: no unicast route to them is preferred.
    pub(super) closed: BTreeSet<Prefix>,
    /// Destinations of routes that must not be changed or copied.
    pub(super) fixed: BTreeSet<Prefix>,
}

pub(super) fn main_table() -> io::Result<MainTable> {
    netlink(|netlink| {
        let names = qdisc::interfaces(netlink)?;
        let (mut routes, mut closed) = (Vec::new(), Vec::new());
        netlink.routes(|message| {
            let found = route::of(&message, &names);
            routes.extend(found.map(|found| (found, route::is_fixed(&message))));
            closed.extend(route::closed(&message));
        })?;
        // The smallest metric is preferred.
        routes.sort_by_key(|((to, metric, _), _)| (*to, *metric));
        routes.dedup_by_key(|((to, ..), _)| *to);
        let open: BTreeMap<_, _> =
            routes.iter().map(|((to, metric, _), _)| (*to, *metric)).collect();
        closed.retain(|(to, metric)| open.get(to).is_none_or(|open| metric < open));
        let fixed = routes.iter().filter(|(_, is_fixed)| *is_fixed);
        Ok(MainTable {
            fixed: fixed.map(|((to, ..), _)| *to).collect(),
            closed: closed.into_iter().map(|(to, _)| to).collect(),
            routes: routes.into_iter().map(|((to, _, route), _)| (to, route)).collect(),
        })
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn unreadable(error: io::Error) -> HostError {
    HostError(format!("routes: {error}"))
}

pub(super) fn by_name(routes: Vec<(Prefix, Route)>) -> HashMap<String, Route> {
    routes.into_iter().map(|(to, route)| (to.to_string(), route)).collect()
}

pub(super) fn read(to: &str) -> io::Result<Value> {
    let found = main_table()?.routes.into_iter().find(|(prefix, _)| prefix.to_string() == to);
    Ok(found.map_or(Value::Absent, |(_, route)| Value::Route(route)))
}

pub(super) fn write(setting: &SettingKey, from: &Value, to: &Value) -> Result<(), HostError> {
    let (order, flags) = match (from, to) {
        (Value::Absent, Value::Route(to)) => {
            (RouteNetlinkMessage::NewRoute(route::message(to)?), NLM_F_CREATE | NLM_F_EXCL)
        }
        (_, Value::Route(to)) => {
            (RouteNetlinkMessage::NewRoute(route::message(to)?), NLM_F_REPLACE)
        }
        (Value::Route(from), _) => (RouteNetlinkMessage::DelRoute(route::message(from)?), 0),
        _ => return Ok(()),
    };
    netlink(|netlink| netlink.order(order, flags)).map_err(|error| {
        let reason = match (error.kind(), to) {
            // RTAX_CC_ALGO without such an algorithm (linux net/ipv4/metrics.c).
            (io::ErrorKind::InvalidInput, Value::Route(Route { congctl: Some(name), .. }))
                if !sysctl::has_algorithm(name) =>
            {
                format!("{error}: the kernel lacks {name}: {}", Missing(name))
            }
            _ => remedy(&error),
        };
        HostError(format!("cannot change {setting} to {to}: {reason}"))
    })
}
