//! What was decided for each connection that is open.

use std::io;

use uncork_kernel::Map;

use crate::error::Error;
use crate::layout::{Decision, Kept, places};

/// The table that the program writes.
#[derive(Debug)]
pub(crate) struct Sockets(pub(crate) Map);

impl Sockets {
    /// What was decided for the connection with this cookie, if a policy decided.
    pub(crate) fn find(&self, cookie: u64) -> Result<Option<Decision>, Error> {
        let found =
            self.place(cookie).map_err(Error::step("read what was decided for a connection"))?;
        Ok(found.map(|(_, decision)| decision))
    }

    /// The same, of a connection that has ended: its place is free.
    pub(crate) fn take(&self, cookie: u64) -> io::Result<Option<Decision>> {
        let Some((place, decision)) = self.place(cookie)? else { return Ok(None) };
        self.0.fill(&place.to_ne_bytes(), &vec![0; self.0.value_size()])?;
        Ok(Some(decision))
    }

    fn place(&self, cookie: u64) -> io::Result<Option<(u32, Decision)>> {
        for place in places(cookie) {
            let kept = Kept::read(&self.0.value(place, 1)?);
            if kept.cookie == cookie {
                return Ok(Some((place, kept.decision)));
            }
        }
        Ok(None)
    }
}
