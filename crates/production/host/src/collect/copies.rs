//! Old copies of controllers that `uncork kernel` loads.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use uncork_diag::{Diag, Query, StateSet};

/// Whether new connections of the calling thread's namespace get an old copy of its default, `name`, where another has that name
/// now. The kernel does not report it, but it has the states of two copies in two maps: a connection over loopback takes the default,
/// another one asks for the name. `None` without loopback, or without the privilege to read the states.
pub(super) fn default_is_old(name: &str) -> Option<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let at = listener.local_addr().ok()?;
    let (plain, named) = (connection(at, None)?, connection(at, Some(name))?);
    let query = Query {
        states: StateSet::SENDING,
        remote_port: Some(at.port()),
        has_storage: true,
        ..Query::default()
    };
    let mut copies = [None; 2];
    let ends = [plain.local_addr().ok()?, named.local_addr().ok()?];
    Diag::open()
        .ok()?
        .dump(&query, |found| {
            for (copy, end) in copies.iter_mut().zip(ends) {
                if found.local == end {
                    *copy = found.copy;
                }
            }
        })
        .ok()?;
    let [plain, named] = copies;
    Some(plain? != named?)
}

/// A connection that asks for a controller, or takes the default.
pub(super) fn connection(to: SocketAddr, controller: Option<&str>) -> Option<TcpStream> {
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
    if let Some(name) = controller {
        set_tcp_congestion(&client, name).ok()?;
    }
    connect(&client, &to).ok()?;
    Some(TcpStream::from(client))
}
