//! Running as a user without privileges, once the sockets are there.

use std::ffi::CString;
use std::io::{self, ErrorKind};

use nix::unistd::{Group, User, geteuid, initgroups, setgid, setuid};

/// Becomes `name`, a user or `USER:GROUP`, in all threads and for good: with the user's groups, and without capabilities.
pub(crate) fn become_user(name: &str) -> io::Result<()> {
    let (user, group) = match name.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (name, None),
    };
    let unknown = |what: &str, name: &str| {
        io::Error::new(ErrorKind::NotFound, format!("there is no {what} '{name}'"))
    };
    let user = User::from_name(user)?.ok_or_else(|| unknown("user", user))?;
    let group = match group {
        Some(group) => Group::from_name(group)?.ok_or_else(|| unknown("group", group))?.gid,
        None => user.gid,
    };
    if user.uid.is_root() {
        return Err(io::Error::other("root keeps its privileges"));
    }
    if geteuid() == user.uid {
        return Ok(());
    }
    initgroups(&CString::new(user.name)?, group)?;
    // Sets the real, effective and saved IDs; the last step, as it takes the right to do the others.
    setgid(group)?;
    setuid(user.uid)?;
    Ok(())
}
