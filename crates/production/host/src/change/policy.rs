//! Routes that give clients the controllers which a policy decides by their networks.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use uncork_policy::{NetworkDecision, NetworksAsked, Origins, Policy, Release, UnixTime};

use super::desired_state::{DesiredRoute, Prefix, RoutesPolicy};
use super::route;
use super::setting::Route;

/// As many as `apply` makes within seconds.
pub(super) const MAX_ROUTES: usize = 50_000;

/// The routes of a policy.
#[derive(Debug, Default)]
pub(crate) struct PolicyRoutes {
    pub(crate) routes: Vec<DesiredRoute>,
    /// When the table of the policy expires, in seconds of Unix time.
    pub(crate) expires_unix_s: Option<i64>,
    /// What of the policy counts for no route.
    pub(crate) warnings: Vec<String>,
    /// Which of its signer's policies it is, if it must be signed.
    pub(crate) release: Option<Release>,
}

/// The host's settings without the routes of the policy.
#[derive(Clone, Copy)]
pub(crate) struct Without<'a> {
    /// The algorithm of connections if their route sets none.
    pub(crate) algorithm: &'a str,
    /// The host's own routes.
    pub(crate) routes: &'a BTreeMap<Prefix, Route>,
    /// Those of `[[route]]`, which win.
    pub(crate) desired: &'a [DesiredRoute],
}

/// The routes that `source` asks for at this time: where it decides otherwise than the route that leads there.
///
/// # Errors
///
/// The file, the place in it, the problem and the remedy.
pub(crate) fn routes(
    source: &RoutesPolicy,
    without: Without<'_>,
    unix_s: i64,
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<PolicyRoutes, String> {
    let policy = Policy::from_files(&source.file, source.key.as_deref(), &read);
    let policy = policy.map_err(|error| error.to_string())?;
    let origins = origins(source, &read)?;
    is_default(&policy, without.algorithm)?;
    let within: Vec<_> = source.networks.iter().map(|network| network.of_policy()).collect();
    let own = without.routes.keys().copied();
    let desired = without.desired.iter().map(|route| route.to);
    // A route is a network by itself: the ones around it do not reach into it.
    let also: Vec<_> = own.chain(desired).map(Prefix::of_policy).collect();
    let now = UnixTime(unix_s);
    let asked = NetworksAsked { origins: &origins, now, within: &within, also: &also };
    let decisions = policy.by_network(&asked).map_err(|error| error.to_string())?;
    let routes = differing(&decisions, without);
    if routes.len() > MAX_ROUTES {
        let (name, count) = (policy.name(), routes.len());
        return Err(format!(
            "{name}: it takes {count} routes, more than {MAX_ROUTES}; a wide network with a random share takes one for \
             each /24 or /48 with another arm: say in [routes] in which `networks` the policy is to count"
        ));
    }
    let expires_unix_s = policy.table_expires().map(|UnixTime(time)| time);
    let mut warnings = policy.left_out_by_network(!source.geo.is_empty());
    if expires_unix_s.is_some_and(|expires| expires <= unix_s) {
        warnings.push(format!("{}: its table has expired: no entry counts", policy.name()));
    }
    let release = policy.release().cloned();
    warnings.extend(release.as_ref().and_then(Release::warning).map(str::to_owned));
    Ok(PolicyRoutes { routes, expires_unix_s, warnings, release })
}

fn origins(
    source: &RoutesPolicy,
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Origins, String> {
    let mut origins = Origins::new();
    for file in &source.geo {
        let name = file.display();
        let bytes = read(file).map_err(|error| format!("cannot read '{name}': {error}"))?;
        origins.add(bytes).map_err(|error| format!("'{name}': {error}"))?;
    }
    Ok(origins)
}

/// Clients without a route have the host's algorithm, so the policy must say the same of them.
fn is_default(policy: &Policy, algorithm: &str) -> Result<(), String> {
    let default = policy.settings().next().and_then(|default| default.tcp.as_deref());
    match default {
        Some(default) if default != algorithm => Err(format!(
            "{}: [default] is {default}, but clients without a route get {algorithm}, the host's algorithm; set algorithm = \
             \"{default}\" next to [routes]",
            policy.name()
        )),
        _ => Ok(()),
    }
}

/// Algorithm and initial window.
type Given<'a> = (&'a str, Option<u32>);

/// Routes for the decisions that differ from what the routes around them, or the host's, already give.
fn differing<'a>(decisions: &'a [NetworkDecision], without: Without<'a>) -> Vec<DesiredRoute> {
    let Without { algorithm, routes, desired } = without;
    let desired: BTreeMap<Prefix, Given<'_>> =
        desired.iter().map(|it| (it.to, (&*it.algorithm, it.initial_window))).collect();
    let of_route = |route: &'a Route| {
        (route.congctl.as_deref().unwrap_or(algorithm), route::initial_window(route))
    };
    let mut own: BTreeMap<Prefix, Given<'_>> =
        routes.iter().map(|(to, route)| (*to, of_route(route))).collect();
    own.extend(&desired);
    let own = |to: Prefix| own.get(&to).copied();
    let mut made = Vec::new();
    // The decisions around the current one, outermost first, each after what the host gives there.
    let mut around: Vec<(Prefix, Given<'_>, Given<'_>)> = Vec::new();
    for NetworkDecision { network, tcp, initial_window } in decisions {
        let to = Prefix { address: network.address(), bits: network.bits() };
        while around.last().is_some_and(|(outer, ..)| !outer.covers(to)) {
            around.pop();
        }
        let (of_host, given) = match (own(to), around.last()) {
            (Some(own), _) => (own, own),
            (None, Some((_, of_host, wanted))) => (*of_host, *wanted),
            (None, None) => {
                let of_host = to.around().find_map(own).unwrap_or((algorithm, None));
                (of_host, of_host)
            }
        };
        // Without a window of the policy's, that of the host's route stays.
        let wanted = match desired.get(&to) {
            Some(desired) => *desired,
            None => (tcp.as_deref().unwrap_or(algorithm), initial_window.or(of_host.1)),
        };
        if wanted != given {
            let (algorithm, initial_window) = (wanted.0.to_owned(), wanted.1);
            made.push(DesiredRoute { to, algorithm, lock: false, initial_window });
        }
        around.push((to, of_host, wanted));
    }
    made
}
