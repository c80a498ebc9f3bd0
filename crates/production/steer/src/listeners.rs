//! Listening sockets of a steered cgroup. What a connection can negotiate depends on its listener's controller: AccECN (RFC 9768),
//! which L4S needs, must be there before the policy knows the client.

use std::path::Path;

use uncork_diag::{Connection, Diag, Query, StateSet, TcpState};
use uncork_kernel::default;

use crate::apply::open_cgroup;
use crate::error::Error;
use crate::layout::MoveTarget;
use crate::moves::{add_children, carry_out};
use crate::pins::CgroupPins;
use crate::sockets::SteeredSockets;

/// What became of the listening sockets of a cgroup, in this network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerChanges {
    /// Sockets that have the policy's controller of listeners now.
    pub changed: u64,
    /// Sockets that keep a controller of their own, because their server has set it.
    pub own: u64,
}

/// Gives listening sockets that have the host's default controller the controller `wanted`. Without one, sockets that got it from
/// a policy have the default again. The program of the policy does the same for sockets that begin to listen later.
pub(crate) fn set(
    pins: &CgroupPins,
    cgroup: &Path,
    wanted: Option<&str>,
) -> Result<ListenerChanges, Error> {
    // A cgroup that was removed has no sockets.
    let Ok((_, number)) = open_cgroup(cgroup) else { return Ok(ListenerChanges::default()) };
    let Some(sockets) = pins.steered_sockets()? else { return Ok(ListenerChanges::default()) };
    let (mut changes, mut cookies, mut targets) =
        (ListenerChanges::default(), Vec::new(), Vec::new());
    let inherited = default();
    for listener in listening(cgroup, number)? {
        let has = listener.cc.map(|cc| cc.as_str().to_owned()).unwrap_or_default();
        let gets = match wanted {
            Some(wanted) if has == wanted => continue,
            Some(_) if has != inherited => {
                changes.own += 1;
                continue;
            }
            Some(wanted) => wanted,
            None if is_changed(&sockets, listener.cookie)? => &inherited,
            None => continue,
        };
        cookies.push(listener.cookie);
        targets.push(MoveTarget::listener(gets));
    }
    [changes.changed, _] = carry_out(&cookies, &targets, &sockets)?;
    if wanted.is_none() {
        release(&sockets, &cookies)?;
    }
    Ok(changes)
}

/// Frees the places of listening sockets in the table of connections.
fn release(sockets: &SteeredSockets, cookies: &[u64]) -> Result<(), Error> {
    let mut all = cookies.iter();
    all.try_for_each(|cookie| sockets.take(*cookie).map(drop))
        .map_err(Error::step("release listening sockets"))
}

fn is_changed(sockets: &SteeredSockets, cookie: u64) -> Result<bool, Error> {
    Ok(sockets.find(cookie)?.is_some_and(|decision| decision.is_listener()))
}

/// The listening sockets of a cgroup and of those below it.
fn listening(cgroup: &Path, number: u64) -> Result<Vec<Connection>, Error> {
    let mut cgroups = [number].into();
    add_children(cgroup, &mut cgroups);
    let query = Query { states: StateSet::NONE.with(TcpState::Listen), ..Query::default() };
    let mut all = Vec::new();
    Diag::open()?.dump(&query, |socket| {
        if socket.cgroup.is_some_and(|cgroup| cgroups.contains(&cgroup)) {
            all.push(*socket);
        }
    })?;
    Ok(all)
}
