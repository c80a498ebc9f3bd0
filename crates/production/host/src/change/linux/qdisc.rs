//! Root queue disciplines of interfaces.

use std::collections::BTreeMap;
use std::io;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE, NlaBuffer, NlasIterator};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage};

use super::super::setting::{Installed, Qdisc, Value};
use super::netlink;
use crate::netlink::Netlink;

/// `TCA_KIND`, `TCA_OPTIONS` (linux/rtnetlink.h).
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
/// `struct tcmsg`.
const HEADER: usize = 20;
/// Bits of an attribute's type that are not the type.
const FLAGS: u16 = 0xc000;

pub(super) fn read(interface: &str) -> io::Result<Value> {
    netlink(|netlink| {
        let names = interfaces(netlink)?;
        let index = names.iter().find(|(_, name)| *name == interface).map(|(index, _)| *index);
        let Some(index) = index else { return Ok(Value::Absent) };
        let mut found = Vec::new();
        netlink.dump_bytes(
            RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()),
            |bytes| {
                found.extend(entry(bytes).filter(|entry| entry.index == index));
            },
        )?;
        Ok(root(&found).map_or(Value::Absent, Value::Qdisc))
    })
}

/// All interfaces by index.
pub(super) fn interfaces(netlink: &mut Netlink) -> io::Result<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()), |message| {
        if let RouteNetlinkMessage::NewLink(link) = message {
            for attribute in link.attributes {
                if let LinkAttribute::IfName(name) = attribute {
                    names.insert(link.header.index, name);
                }
            }
        }
    })?;
    Ok(names)
}

/// A discipline as the kernel lists it.
struct QdiscEntry {
    index: u32,
    handle: u16,
    parent: TcHandle,
    name: String,
    options: Vec<u8>,
}

fn entry(bytes: &[u8]) -> Option<QdiscEntry> {
    let header = TcHeader::parse(bytes).ok()?;
    let (mut name, mut options) = (String::new(), Vec::new());
    for attribute in NlasIterator::new(bytes.get(HEADER..)?) {
        let attribute: NlaBuffer<_> = attribute.ok()?;
        match attribute.kind() & !FLAGS {
            KIND => {
                let text = String::from_utf8_lossy(attribute.value());
                text.trim_end_matches('\0').clone_into(&mut name);
            }
            OPTIONS => options = attribute.value().to_vec(),
            _ => {}
        }
    }
    let (index, handle) = (header.index.try_into().ok()?, header.handle.major);
    Some(QdiscEntry { index, handle, parent: header.parent, name, options })
}

/// The root, with what is below it.
fn root(found: &[QdiscEntry]) -> Option<Qdisc> {
    let root = found.iter().find(|entry| entry.parent == TcHandle::ROOT)?;
    let is_below = |entry: &&QdiscEntry| {
        entry.parent != TcHandle::ROOT
            && entry.parent.major == root.handle
            && entry.parent.minor < 0xfff0
    };
    let below: Vec<&QdiscEntry> = found.iter().filter(is_below).collect();
    let mut leaves: Vec<String> = below.iter().map(|entry| entry.name.clone()).collect();
    leaves.sort();
    leaves.dedup();
    if root.name != "mq" {
        leaves.clear();
    }
    // The kernel's own choice has no handle.
    let is_installed = root.handle != 0 || below.iter().any(|entry| entry.handle != 0);
    let has_children = below.iter().any(|entry| entry.handle != 0);
    let unrestorable = has_children.then(|| "with disciplines of its own below it".to_owned());
    let options = Some(HEXLOWER.encode(&root.options));
    let installed = Installed { handle: root.handle, options, unrestorable };
    Some(Qdisc { name: root.name.clone(), leaves, installed: is_installed.then_some(installed) })
}

/// Replaces the root at once. A discipline that the kernel chooses comes back when the root is deleted.
pub(super) fn write(interface: &str, to: &Qdisc) -> io::Result<()> {
    netlink(|netlink| {
        let names = interfaces(netlink)?;
        let index = names.iter().find(|(_, name)| *name == interface).map(|(index, _)| *index);
        let index = index.ok_or_else(|| io::Error::other("no such interface"))?;
        let mut message = TcMessage::default();
        message.header.index = index.cast_signed();
        message.header.parent = TcHandle::ROOT;
        let Some(installed) = &to.installed else {
            return netlink.order(RouteNetlinkMessage::DelQueueDiscipline(message), 0);
        };
        message.header.handle = TcHandle { major: installed.handle, minor: 0 };
        message.attributes.push(TcAttribute::Kind(to.name.clone()));
        let options = installed.options.as_deref().unwrap_or_default();
        let options = HEXLOWER_PERMISSIVE.decode(options.as_bytes()).map_err(|error| {
            io::Error::other(format!("options of `{}` are not hexadecimal: {error}", to.name))
        })?;
        if !options.is_empty() {
            message.attributes.push(TcAttribute::Other(DefaultNla::new(OPTIONS, options)));
        }
        let order = RouteNetlinkMessage::NewQueueDiscipline(message);
        netlink.order(order, NLM_F_CREATE | NLM_F_REPLACE).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(format!(
                "this kernel has no queue discipline {0}, or modprobe sch_{0} must load it first",
                to.name
            )),
            _ => error,
        })
    })
}
