//! The maps and programs of one policy.

use std::io;

use uncork_kernel::{Map, Maps, Object, Program, ProgramKind, default, tai_offset};
use uncork_policy::{Flat, Origins, Policy};
use zerocopy::{Immutable, IntoBytes};

use crate::error::Error;
use crate::layout::{
    self, ExperimentEntry, NetworkRow, OutcomeEntry, PolicyHead, RuleEntry, TableLine,
};
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

/// The maps of a policy.
struct PolicyMaps<'a> {
    object: &'a Object,
    maps: Maps,
}

impl PolicyMaps<'_> {
    /// Creates an array of these values.
    fn array<V: IntoBytes + Immutable>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Result<(), Error> {
        let values: Vec<V> = values.into_iter().collect();
        let keys: Vec<u32> = (0..values.len() as u32).collect();
        self.map(name, &keys, &values)
    }

    fn map<K, V>(&mut self, name: &str, keys: &[K], values: &[V]) -> Result<(), Error>
    where
        K: IntoBytes + Immutable,
        V: IntoBytes + Immutable,
    {
        let count = values.len() as u32;
        let map = self.object.create_map(name, Some(count.max(1)))?;
        map.fill(keys, values).map_err(|error| Error::Step {
            step: format!("write {count} elements of the map {name}"),
            error,
        })?;
        self.maps.insert(name.to_owned(), map);
        Ok(())
    }
}

pub(crate) fn object() -> Result<Object, Error> {
    Ok(Object::adapted("uncork steer", OBJECT, &layout::STEER)?)
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
        let mut filled = PolicyMaps { object: &object, maps: Maps::new() };
        filled.array("heads", [PolicyHead::new(flat, policy, tai_offset(), &default())])?;
        filled.array("lines", TableLine::all(flat.table.words()))?;
        let (ports, masks): (Vec<u32>, Vec<u64>) =
            flat.listeners.ports.iter().map(|(port, mask)| (u32::from(*port), *mask)).unzip();
        filled.map("ports", &ports, &masks)?;
        filled.array("rows", flat.rows.iter().map(NetworkRow::from))?;
        filled.array("rules", flat.rules.iter().map(RuleEntry::from))?;
        filled.array("experiments", flat.experiments.iter().map(ExperimentEntry::from))?;
        filled.array("outcomes", flat.outcomes.iter().map(OutcomeEntry::new))?;
        let mut maps = filled.maps;
        let outcomes = flat.outcomes.len() as u32;
        maps.insert("counters".to_owned(), object.create_map("counters", Some(outcomes))?);
        maps.insert("sockets".to_owned(), shared.sockets);
        maps.insert("ends".to_owned(), shared.ends);
        maps.insert("lost".to_owned(), shared.lost);
        maps.insert(".rodata".to_owned(), object.create_map(".rodata", None)?);
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
