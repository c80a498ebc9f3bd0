//! The maps and programs of one policy.

use std::collections::HashMap;
use std::io;

use uncork_kernel::{Map, Maps, Object, Program, ProgramKind, tai_offset};
use uncork_policy::{Flat, Origins, Policy};

use crate::error::Error;
use crate::layout;
use crate::question::{Answer, Question};

const OBJECT: &[u8] = include_bytes!("../bpf/steer.bpf.o");

/// Maps that stay when a policy is replaced.
pub(crate) struct Shared {
    /// What was decided for each socket.
    pub(crate) sockets: Map,
    /// The ring of close events.
    pub(crate) ends: Map,
    /// The count of events that the ring dropped.
    pub(crate) lost: Map,
}

/// A policy that the kernel has accepted. It is not active yet.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) steer: Program,
    pub(crate) ask: Program,
    pub(crate) counters: Map,
}

/// Bytes of keys and values, one behind the other.
#[derive(Default)]
struct MapData {
    count: u32,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl MapData {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
    }

    /// Values of this size by their index.
    fn of(values: Vec<u8>, size: usize) -> Self {
        let count = (values.len() / size) as u32;
        Self { count, keys: (0..count).flat_map(u32::to_ne_bytes).collect(), values }
    }

    fn listed(values: impl Iterator<Item = Vec<u8>>) -> Self {
        let values: Vec<_> = values.collect();
        Self::of(values.concat(), values.first().map_or(1, Vec::len))
    }
}

pub(crate) fn object() -> Result<Object, Error> {
    Ok(Object::plain("uncork steer", OBJECT)?)
}

/// New maps that stay.
pub(crate) fn shared(object: &Object) -> Result<Shared, Error> {
    let create = |name| object.create_map(name, None);
    Ok(Shared { sockets: create("sockets")?, ends: create("ends")?, lost: create("lost")? })
}

impl Loaded {
    /// Has the kernel verify a policy. `listeners` names local ports.
    ///
    /// # Errors
    ///
    /// If the policy asks for what the kernel does not know, or without the privilege.
    pub fn new(
        policy: &Policy,
        listeners: &[(String, u16)],
        origins: &Origins,
    ) -> Result<Self, Error> {
        let flat = policy.flat(listeners, origins)?;
        let object = object()?;
        let shared = shared(&object)?;
        Self::load(object, &flat, policy.fingerprint(), shared).map(|(loaded, _)| loaded)
    }

    /// What it decides for a client.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to run it.
    pub fn ask(&self, question: &Question) -> Result<Answer, Error> {
        question.ask(&self.ask)
    }

    /// How many instructions the verifier has looked at, for connections and for questions.
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn verified_instructions(&self) -> Result<[u32; 2], Error> {
        Ok([self.steer.verified_instructions()?, self.ask.verified_instructions()?])
    }

    /// Loads a policy. Afterwards the object is used up.
    pub(crate) fn load(
        mut object: Object,
        flat: &Flat,
        policy: u64,
        shared: Shared,
    ) -> Result<(Self, Shared), Error> {
        let head = layout::head(flat, policy, tai_offset());
        let mut ports = MapData::default();
        for (port, mask) in &flat.listeners.ports {
            ports.add(&u32::from(*port).to_ne_bytes(), &mask.to_ne_bytes());
        }
        let contents = [
            ("heads", MapData::listed(std::iter::once(head))),
            ("lines", MapData::of(layout::lines(flat.table.words()), layout::LINE)),
            ("ports", ports),
            ("rows", MapData::listed(flat.rows.iter().map(|row| layout::row(row)))),
            ("rules", MapData::listed(flat.rules.iter().map(layout::rule))),
            ("experiments", MapData::listed(flat.experiments.iter().map(layout::experiment))),
            ("outcomes", MapData::listed(flat.outcomes.iter().map(layout::outcome))),
        ];
        let mut maps: Maps = HashMap::new();
        for (name, content) in contents {
            let map = object.create_map(name, Some(content.count.max(1)))?;
            map.fill(&content.keys, &content.values).map_err(|error| Error::Step {
                step: format!("write {} elements of the map {name}", content.count),
                error,
            })?;
            maps.insert(name.to_owned(), map);
        }
        let outcomes = flat.outcomes.len() as u32;
        maps.insert("counters".to_owned(), object.create_map("counters", Some(outcomes))?);
        maps.insert("sockets".to_owned(), shared.sockets);
        maps.insert("ends".to_owned(), shared.ends);
        maps.insert("lost".to_owned(), shared.lost);
        object.link(&maps)?;
        let steer = object.load("steer", ProgramKind::SockOps)?;
        let ask = object.load("ask", ProgramKind::Xdp)?;
        let mut take = |name: &str| {
            maps.remove(name).ok_or_else(|| Error::Step {
                step: format!("find the map {name}"),
                error: io::Error::from(io::ErrorKind::NotFound),
            })
        };
        let counters = take("counters")?;
        let shared = Shared { sockets: take("sockets")?, ends: take("ends")?, lost: take("lost")? };
        Ok((Self { steer, ask, counters }, shared))
    }
}
