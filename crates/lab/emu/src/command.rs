//! Commands that know the addresses of both sides.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use crate::{Addresses, Emulation, Namespace};

impl Emulation {
    /// A command that will run on the client with index `host`. Its environment has the addresses
    /// of both sides: `UNCORK_NEAR` and `UNCORK_FAR`, and with IPv6 also `UNCORK_NEAR6` and
    /// `UNCORK_FAR6`. As for [`Namespace::command`], the thread that starts it must outlive it.
    ///
    /// # Errors
    ///
    /// If `host` does not exist, or no file descriptor is available.
    pub fn client_command(&self, host: usize, program: impl AsRef<OsStr>) -> io::Result<Command> {
        let client = self.host(host)?;
        Ok(self.with_addresses(client.command(program)?, client))
    }

    /// A command that will run on the server side for the client with index `host`; otherwise like
    /// [`Self::client_command`].
    ///
    /// # Errors
    ///
    /// As for [`Self::client_command`].
    pub fn server_command(&self, host: usize, program: impl AsRef<OsStr>) -> io::Result<Command> {
        Ok(self.with_addresses(self.server().command(program)?, self.host(host)?))
    }

    fn host(&self, host: usize) -> io::Result<&Namespace> {
        self.hosts().get(host).ok_or_else(|| io::Error::other("the host does not exist"))
    }

    fn with_addresses(&self, mut command: Command, client: &Namespace) -> Command {
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
