//! Commands that know who is where.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use crate::{Addresses, Emulation, Namespace};

impl Emulation {
    /// A command that will run on the client of index `host`. Its environment tells the
    /// addresses of both sides: `UNCORK_NEAR` and `UNCORK_FAR`, and where there is IPv6 `UNCORK_NEAR6` and
    /// `UNCORK_FAR6`. As for [`Namespace::command`], the thread that starts it must live as long as it.
    ///
    /// # Errors
    ///
    /// If there is no such host, or the process has no file descriptor left.
    pub fn client_command(&self, host: usize, program: impl AsRef<OsStr>) -> io::Result<Command> {
        let client = self.host(host)?;
        Ok(self.told(client.command(program)?, client))
    }

    /// A command that will run on the server side, for the client of index `host`; else as
    /// [`Self::client_command`].
    ///
    /// # Errors
    ///
    /// As for [`Self::client_command`].
    pub fn server_command(&self, host: usize, program: impl AsRef<OsStr>) -> io::Result<Command> {
        Ok(self.told(self.server().command(program)?, self.host(host)?))
    }

    fn host(&self, host: usize) -> io::Result<&Namespace> {
        self.hosts().get(host).ok_or_else(|| io::Error::other("there is no such host"))
    }

    fn told(&self, mut command: Command, client: &Namespace) -> Command {
        for (side, host) in [("NEAR", client), ("FAR", self.server())] {
            let Addresses { v4, v6 } = host.addresses();
            command.env(format!("UNCORK_{side}"), v4.to_string());
            if let Some(v6) = v6 {
                command.env(format!("UNCORK_{side}6"), v6.to_string());
            }
        }
        command
    }
}
