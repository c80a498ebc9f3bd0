//! The decisions for open connections.

use std::io;

use uncork_kernel::Map;

use crate::error::Error;
use crate::layout::{ConnectionEntry, Decision, ENDED, places};

/// The table that the program writes.
#[derive(Debug)]
pub(crate) struct SteeredSockets(pub(crate) Map);

impl SteeredSockets {
    /// The decision for the connection with this cookie, if a policy decided.
    pub(crate) fn find(&self, cookie: u64) -> Result<Option<Decision>, Error> {
        let found =
            self.place(cookie).map_err(Error::step("read the decision for a connection"))?;
        Ok(found.map(|(_, entry)| entry.decision))
    }

    /// The entry of a connection that has ended; `None` also if another one has taken its place.
    pub(crate) fn ended(&self, cookie: u64) -> Option<ConnectionEntry> {
        self.place(cookie | ENDED).ok().flatten().map(|(_, entry)| entry)
    }

    /// Removes and returns the decision for a connection that has ended.
    pub(crate) fn take(&self, cookie: u64) -> io::Result<Option<Decision>> {
        let Some((place, entry)) = self.place(cookie)? else { return Ok(None) };
        self.0.fill(&[place], &[ConnectionEntry::default()])?;
        Ok(Some(entry.decision))
    }

    fn place(&self, cookie: u64) -> io::Result<Option<(u32, ConnectionEntry)>> {
        for place in places(cookie) {
            let entry: ConnectionEntry = self.0.value(place)?;
            if entry.cookie == cookie {
                return Ok(Some((place, entry)));
            }
        }
        Ok(None)
    }
}
