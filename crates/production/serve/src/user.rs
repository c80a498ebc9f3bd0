//! Running as a user without privileges, once the sockets are there.

use std::ffi::CString;
use std::io::{self, ErrorKind};

use nix::unistd::{Gid, Group, User, geteuid, initgroups, setgid, setuid};

/// A user, and its group.
#[derive(Debug)]
pub(crate) struct UserAccount {
    user: User,
    group: Gid,
}

impl UserAccount {
    /// The account of `NAME` or `USER:GROUP`. Root is none.
    pub(crate) fn find(name: &str) -> io::Result<Self> {
        let (user, group) = match name.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (name, None),
        };
        let unknown = |what: &str, name: &str| {
            io::Error::new(ErrorKind::NotFound, format!("{what} '{name}' does not exist"))
        };
        let user = User::from_name(user)?.ok_or_else(|| unknown("user", user))?;
        if user.uid.is_root() {
            return Err(io::Error::other("root keeps its privileges"));
        }
        let group = match group {
            Some(group) => Group::from_name(group)?.ok_or_else(|| unknown("group", group))?.gid,
            None => user.gid,
        };
        Ok(Self { user, group })
    }

    /// Gives all threads this account's rights for good, with the user's other groups and without capabilities.
    pub(crate) fn adopt(&self) -> io::Result<()> {
        if geteuid() == self.user.uid {
            return Ok(());
        }
        initgroups(&CString::new(self.user.name.as_str())?, self.group)?;
        // Each sets the real, effective and saved ID. The user comes last: it has no right to do the others.
        setgid(self.group)?;
        setuid(self.user.uid)?;
        Ok(())
    }
}
