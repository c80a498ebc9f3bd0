//! Addresses, routes and devices of the calling thread's network namespace, through rtnetlink(7).

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily as Family, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

/// A netlink connection to the kernel.
#[derive(Debug)]
pub(crate) struct RouteSocket {
    socket: OwnedFd,
    answer: Vec<u8>,
}

impl RouteSocket {
    /// A connection for the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        // NETLINK_ROUTE is protocol 0, the default.
        let socket = socket_with(Family::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, answer: vec![0; 1 << 16] })
    }

    /// The index and the counters of the device `name`.
    pub(crate) fn device(&mut self, name: &str) -> io::Result<Device> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let answer = self.request(RouteNetlinkMessage::GetLink(message), 0)?;
        let Some(RouteNetlinkMessage::NewLink(link)) = answer else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel names no device"));
        };
        let mut device = Device { index: link.header.index, overruns: 0 };
        for attribute in &link.attributes {
            if let LinkAttribute::Stats64(stats) = attribute {
                device.overruns = stats.tx_dropped;
            }
        }
        Ok(device)
    }

    /// Brings the device with this index up. `sizes` are its MTU and queue length, if given.
    pub(crate) fn set_up(&mut self, index: u32, sizes: Option<(u32, u32)>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        if let Some((mtu, waiting)) = sizes {
            message.attributes = vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(waiting)];
        }
        self.order(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Disables automatic IPv6 addresses of the device.
    pub(crate) fn no_link_local(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])]));
        self.order(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Adds this address to the device, without a network.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
        message.header.index = index;
        // No other host can have it, so it is usable at once (RFC 4862 §5.4).
        let flags = AddressAttribute::Flags(AddressFlags::Nodad);
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address), flags];
        self.order(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Routes this network through the device. With `cc`, kernel TCP uses that controller on the
    /// route, overriding the socket's (`RTAX_CC_ALGO`, rtnetlink(7)).
    pub(crate) fn add_route(
        &mut self,
        index: u32,
        (to, prefix): (IpAddr, u8),
        cc: Option<&str>,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(to);
        message.header.destination_prefix_length = prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes =
            vec![RouteAttribute::Destination(to.into()), RouteAttribute::Oif(index)];
        message
            .attributes
            .extend(cc.map(|cc| RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(cc.to_owned())])));
        self.order(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    fn order(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.request(message, flags | NLM_F_ACK).map(drop)
    }

    /// Sends a request and returns the answer, if it is more than an acknowledgement.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let (length, _) = recv(&self.socket, self.answer.as_mut_slice(), RecvFlags::empty())?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&self.answer[..length]);
        match answer.map_err(|error| invalid(&error))?.payload {
            NetlinkPayload::Error(error) => match error.code {
                Some(_) => Err(error.to_io()),
                None => Ok(None),
            },
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

/// A network device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    pub(crate) index: u32,
    /// Packets dropped because the queue was full.
    pub(crate) overruns: u64,
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn invalid(error: &DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
