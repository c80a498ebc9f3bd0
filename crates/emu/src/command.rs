//! Commands that know who is where.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use crate::{Addresses, Emulation, Namespace};

impl Emulation {
    /// A command that will run on the near side's host of index `host`. Its environment tells the
    /// addresses of both sides: `UNCORK_NEAR` and `UNCORK_FAR`, and where there is IPv6 `UNCORK_NEAR6` and
    /// `UNCORK_FAR6`. As for [`Namespace::command`], the thread that starts it must live as long as it.
    ///
    /// # Errors
    ///
    /// If there is no such host, or the process has no file descriptor left.
    pub fn near_command(&self, host: usize, program: impl AsRef<OsStr>) -> io::Result<Command> {
        let near = self.host(host)?;
        Ok(self.told(near.command(program)?, near))
    }

    /// A command that will run on the far side, for the near side's host of index `host`; else as
    /// [`Self::near_command`].
    ///
    /// # Errors
    ///
    /// As for [`Self::near_command`].
    pub fn far_command(&self, host: usize, program: impl AsRef<OsStr>) -> io::Result<Command> {
        Ok(self.told(self.far().command(program)?, self.host(host)?))
    }

    fn host(&self, host: usize) -> io::Result<&Namespace> {
        self.hosts().get(host).ok_or_else(|| io::Error::other("there is no such host"))
    }

    fn told(&self, mut command: Command, near: &Namespace) -> Command {
        for (side, host) in [("NEAR", near), ("FAR", self.far())] {
            let Addresses { v4, v6 } = host.addresses();
            command.env(format!("UNCORK_{side}"), v4.to_string());
            if let Some(v6) = v6 {
                command.env(format!("UNCORK_{side}6"), v6.to_string());
            }
        }
        command
    }
}
