//! Asks the active program itself what it decides for a client.

use std::net::IpAddr;

use uncork_kernel::Program;

use crate::error::Error;
use crate::layout::{Bytes, LayoutFields};

/// The smallest packet that the kernel takes for a question.
const SMALLEST: usize = 64;
/// Where the answer is.
const ANSWER: usize = 32;

/// A client, as a connection would show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The other side's address.
    pub client: IpAddr,
    /// The local port on which it was accepted; `None` if the service has opened it.
    pub port: Option<u16>,
    /// When.
    pub unix_s: i64,
}

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The policy's fingerprint.
    pub policy: u64,
    /// The hash of the client's network, if an experiment decides.
    pub unit: u64,
    /// The index of what was decided.
    pub outcome: usize,
}

impl Question {
    /// Asks the program `ask` of a policy.
    pub(crate) fn ask(&self, ask: &Program) -> Result<Answer, Error> {
        let mut packet = Bytes::default();
        let client = match self.client {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        packet.bytes(&client.octets());
        packet.u32(self.port.unwrap_or(0).into()).u32(self.port.is_none().into());
        packet.u64(self.unix_s as u64);
        packet.0.resize(SMALLEST, 0);
        ask.run(&mut packet.0).map_err(Error::step("ask the program"))?;
        let mut fields = LayoutFields(&packet.0[ANSWER..]);
        let (policy, unit) = (fields.u64(), fields.u64());
        Ok(Answer { policy, unit, outcome: fields.u32() as usize })
    }
}
