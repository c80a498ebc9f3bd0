//! Asks the active program itself what it decides for a client.

use std::net::IpAddr;

use uncork_kernel::Program;
use zerocopy::IntoBytes;

use crate::error::Error;
use crate::layout::{Decision, QuestionPacket};

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
        let client = match self.client {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let mut packet = QuestionPacket {
            client: client.octets(),
            port: self.port.unwrap_or(0).into(),
            is_opened: self.port.is_none().into(),
            unix_s: self.unix_s,
            ..QuestionPacket::default()
        };
        ask.run(packet.as_mut_bytes()).map_err(Error::step("ask the program"))?;
        let Decision { policy, unit, outcome, .. } = packet.answer;
        Ok(Answer { policy, unit, outcome: outcome as usize })
    }
}
