//! Requests to the kernel about the calling thread's network namespace, through rtnetlink(7).

use std::io;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::{AddressFamily as RouteFamily, RouteNetlinkMessage};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// A connection to the kernel.
pub(crate) struct Netlink {
    socket: OwnedFd,
    answer: Vec<u8>,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        // NETLINK_ROUTE is protocol 0, the default.
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, answer: vec![0; 1 << 16] })
    }

    /// Calls `each` for every object that `request` asks for.
    pub(crate) fn dump(
        &mut self,
        request: RouteNetlinkMessage,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.send(request, NLM_F_DUMP)?;
        self.receive(|bytes| {
            if let Some(message) = decode(bytes)? {
                each(message);
            }
            Ok(())
        })
    }

    /// Calls `each` for every IPv4 and IPv6 route.
    pub(crate) fn routes(&mut self, mut each: impl FnMut(RouteMessage)) -> io::Result<()> {
        for family in [RouteFamily::Inet, RouteFamily::Inet6] {
            let mut request = RouteMessage::default();
            request.header.address_family = family;
            self.dump(RouteNetlinkMessage::GetRoute(request), |message| {
                if let RouteNetlinkMessage::NewRoute(route) = message {
                    each(route);
                }
            })?;
        }
        Ok(())
    }

    /// [`Netlink::dump`] with the bytes that follow the netlink header.
    pub(crate) fn dump_bytes(
        &mut self,
        request: RouteNetlinkMessage,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.send(request, NLM_F_DUMP)?;
        self.receive(|bytes| {
            let buffer = NetlinkBuffer::new_checked(bytes).map_err(|error| malformed(&error))?;
            each(buffer.payload());
            Ok(())
        })
    }

    /// Has the kernel change something, with `flags` such as `NLM_F_REPLACE`.
    ///
    /// # Errors
    ///
    /// What the kernel answers.
    pub(crate) fn order(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(request, flags | NLM_F_ACK)?;
        self.receive(|_| Ok(()))
    }

    fn send(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut request = NetlinkMessage::from(request);
        request.header.flags = NLM_F_REQUEST | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Calls `each` for every message until the kernel is done or confirms.
    fn receive(&mut self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        loop {
            let (length, _) = recv(&self.socket, self.answer.as_mut_slice(), RecvFlags::empty())?;
            if let DumpProgress::Complete = read(&self.answer[..length], &mut each)? {
                return Ok(());
            }
        }
    }
}

/// What a datagram says of the reply that it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpProgress {
    Continues,
    Complete,
}

/// Calls `each` for every message of a datagram, until the reply ends.
fn read(
    datagram: &[u8],
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<DumpProgress> {
    // `struct nlmsghdr`, `NLMSG_ERROR`, `NLMSG_DONE` (linux/netlink.h).
    const HEADER: usize = 16;
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    let mut rest = datagram;
    while !rest.is_empty() {
        let buffer = NetlinkBuffer::new_checked(rest).map_err(|error| malformed(&error))?;
        let length = buffer.length() as usize;
        if length < HEADER {
            return Err(malformed(&"a message shorter than its header".to_owned().into()));
        }
        match buffer.message_type() {
            DONE => return Ok(DumpProgress::Complete),
            ERROR => return verdict(buffer.payload()).map(|()| DumpProgress::Complete),
            _ => each(&rest[..length])?,
        }
        // Messages are aligned to four bytes (netlink(7)).
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(DumpProgress::Continues)
}

fn decode(bytes: &[u8]) -> io::Result<Option<RouteNetlinkMessage>> {
    let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes);
    Ok(match message.map_err(|error| malformed(&error))?.payload {
        NetlinkPayload::InnerMessage(message) => Some(message),
        _ => None,
    })
}

/// The kernel's answer to a request: a negative `errno`, or 0.
fn verdict(payload: &[u8]) -> io::Result<()> {
    let code = payload.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.wrapping_neg())) }
}

fn malformed(error: &DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("rtnetlink: {error}"))
}

/// Reads a datagram as a snapshot of a host does, for `crates/production/host/fuzz`.
#[cfg(fuzzing)]
pub fn read_datagram(datagram: &[u8]) -> io::Result<usize> {
    let mut messages = Vec::new();
    read(datagram, |bytes| {
        messages.extend(decode(bytes)?);
        Ok(())
    })?;
    let count = messages.len();
    crate::collect::read_messages(messages);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = 16 + payload.len() as u32;
        let mut bytes =
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], payload].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn kinds(datagram: &[u8]) -> io::Result<(Vec<u16>, DumpProgress)> {
        let mut kinds = Vec::new();
        let progress = read(datagram, |bytes| {
            kinds.push(u16::from_ne_bytes([bytes[4], bytes[5]]));
            Ok(())
        })?;
        Ok((kinds, progress))
    }

    #[test]
    fn a_reply_ends_with_its_last_message() {
        let two = [message(24, &[1, 2, 3]), message(16, &[])].concat();
        assert_eq!(kinds(&two).expect("two"), (vec![24, 16], DumpProgress::Continues));
        let all = [two, message(3, &[0; 4]), message(24, &[])].concat();
        assert_eq!(kinds(&all).expect("two"), (vec![24, 16], DumpProgress::Complete));
        assert_eq!(kinds(&message(2, &[0; 4])).expect("no error").1, DumpProgress::Complete);
    }

    #[test]
    fn refusals_and_malformed_messages_are_errors() {
        let refused = kinds(&message(2, &(-13_i32).to_ne_bytes())).expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        kinds(&message(2, &i32::MIN.to_ne_bytes())).expect_err("refused");
        let short = [&15_u32.to_ne_bytes()[..], &[0; 12]].concat();
        let long = [&17_u32.to_ne_bytes()[..], &[0; 12]].concat();
        for bytes in [&short[..], &long, &[0; 16], &[1], &[0xff; 64]] {
            let error = kinds(bytes).expect_err("malformed");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
