//! Interfaces, queue disciplines and routes of the calling thread's namespace, through rtnetlink(7).

use std::collections::BTreeMap;
use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use crate::facts::{Interface, Route};
use crate::netlink::Netlink;

/// `RTAX_CC_ALGO` in the bits of `RTAX_LOCK` (linux/rtnetlink.h).
const LOCKED: u32 = 1 << 16;

pub(super) fn interfaces(netlink: &mut Netlink) -> io::Result<Vec<Interface>> {
    let mut leaves: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    netlink.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()), |message| {
        if let RouteNetlinkMessage::NewQueueDiscipline(message) = message
            && message.header.parent != TcHandle::ROOT
        {
            let kinds = message.attributes.iter().filter_map(|attribute| match attribute {
                TcAttribute::Kind(kind) => Some(kind.clone()),
                _ => None,
            });
            leaves.entry(message.header.index).or_default().extend(kinds);
        }
    })?;
    let mut interfaces = Vec::new();
    netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()), |message| {
        if let RouteNetlinkMessage::NewLink(link) = message {
            let index = i32::try_from(link.header.index).unwrap_or(0);
            interfaces.push(interface(&link, leaves.remove(&index).unwrap_or_default()));
        }
    })?;
    Ok(interfaces)
}

/// The routes that set an algorithm.
pub(super) fn routes(netlink: &mut Netlink) -> io::Result<Vec<Route>> {
    let mut routes = Vec::new();
    netlink.routes(|message| routes.extend(route(&message)))?;
    Ok(routes)
}

fn interface(link: &LinkMessage, leaves: Vec<String>) -> Interface {
    let flags = link.header.flags;
    let mut interface = Interface {
        name: String::new(),
        is_up: flags.contains(LinkFlags::Up),
        is_virtual: flags.contains(LinkFlags::Loopback),
        qdisc: String::new(),
        leaves,
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Qdisc(kind) => interface.qdisc.clone_from(kind),
            // Devices without a kind have a hardware driver.
            LinkAttribute::LinkInfo(infos) => {
                interface.is_virtual |= infos.iter().any(|info| matches!(info, LinkInfo::Kind(_)));
            }
            _ => {}
        }
    }
    interface
}

fn route(message: &RouteMessage) -> Option<Route> {
    let header = &message.header;
    let mut destination = "default".to_owned();
    let (mut congctl, mut is_locked, mut table) = (None, false, u32::from(header.table));
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => {
                destination = format!("{ip}/{}", header.destination_prefix_length);
            }
            RouteAttribute::Destination(RouteAddress::Inet6(ip)) => {
                destination = format!("{ip}/{}", header.destination_prefix_length);
            }
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Metrics(metrics) => {
                for metric in metrics {
                    match metric {
                        RouteMetric::CcAlgo(name) => {
                            congctl = Some(name.trim_end_matches('\0').to_owned());
                        }
                        RouteMetric::Lock(bits) => is_locked = bits & LOCKED != 0,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(Route { destination, table, congctl: congctl?, is_locked })
}
