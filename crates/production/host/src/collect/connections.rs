//! How many connections have which controller.

use std::collections::BTreeMap;
use std::io;

use uncork_diag::{Diag, DiagError, Query, TcpState};

use super::namespaces::{Others, in_other_namespaces};

/// The connections of all network namespaces by controller, and how many namespaces or processes could not be looked at.
///
/// # Errors
///
/// If the kernel does not report those of the caller's namespace.
pub fn connections_by_controller() -> Result<(BTreeMap<String, u64>, u64), DiagError> {
    let mut users = own()?;
    let Others { results, mut hidden_processes } =
        in_other_namespaces(|| own().map_err(io::Error::other));
    for (_, result) in results {
        match result {
            Ok(there) => there.into_iter().for_each(|(cc, n)| *users.entry(cc).or_default() += n),
            Err(_) => hidden_processes += 1,
        }
    }
    Ok((users, hidden_processes))
}

/// The same of this network namespace.
fn own() -> Result<BTreeMap<String, u64>, DiagError> {
    let mut users = BTreeMap::new();
    Diag::open()?.dump(&Query::default(), |connection| {
        // A listener has a controller, too, but does not count as a connection.
        if let (Some(cc), true) = (connection.cc, connection.state != TcpState::Listen) {
            *users.entry(cc.as_str().to_owned()).or_default() += 1;
        }
    })?;
    Ok(users)
}
