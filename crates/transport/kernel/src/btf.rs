//! Types as the kernel and compiled objects describe them (BTF): structures, their members and sizes.

use std::collections::HashMap;

use crate::error::{Error, Missing};

const KERNEL: &str = "/sys/kernel/btf/vmlinux";
const KIND_PTR: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_TYPEDEF: u32 = 8;
/// From `volatile` to `restrict`.
const KINDS_QUALIFIER: std::ops::RangeInclusive<u32> = 9..=11;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
/// The structures of `bpf/kernel.h`.
const READ: [&str; 7] =
    ["sock", "sock_common", "net", "minmax_sample", "minmax", "tcp_sock", "rate_sample"];

/// The types of the kernel or of an object. Only what is needed is looked at.
pub(crate) struct Types {
    bytes: Vec<u8>,
    /// Where each type begins; the first has the number 1.
    places: Vec<usize>,
    strings: usize,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its place among the members.
    pub(crate) index: u32,
    /// Where it begins, in bytes.
    pub(crate) offset: usize,
    type_id: u32,
}

/// A structure or union.
#[derive(Debug)]
pub(crate) struct BtfStructure {
    /// The number of its type.
    pub(crate) id: u32,
    /// Its size in bytes.
    pub(crate) size: u32,
    members: HashMap<String, Member>,
}

/// What the loader must know of `struct tcp_congestion_ops`.
#[derive(Debug)]
pub(crate) struct CongestionOps {
    /// The structure itself.
    pub(crate) ops: BtfStructure,
    /// What a struct_ops map keeps: the structure behind a head.
    pub(crate) value: BtfStructure,
    /// Where in that the structure begins.
    pub(crate) data: usize,
    /// Whether `cong_control` has the ACK as an argument (Linux 6.10).
    pub(crate) has_ack_argument: bool,
    /// Whether a link registers a structure (Linux 6.4). Otherwise writing it does.
    pub(crate) has_links: bool,
}

impl BtfStructure {
    pub(crate) fn member(&self, name: &str) -> Option<Member> {
        self.members.get(name).copied()
    }
}

impl Types {
    /// Reads the running kernel's types.
    pub(crate) fn read() -> Result<Self, Error> {
        let bytes = std::fs::read(KERNEL).map_err(|_| Missing::Btf(KERNEL))?;
        Self::parse(bytes).ok_or(Missing::Btf(KERNEL).into())
    }

    /// The whole, for the library that adapts the programs.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let word = |at: usize| word(&bytes, at).map(|word| word as usize);
        // struct btf_header: magic, version, flags, hdr_len, type_off, type_len, str_off, str_len.
        let header = word(4)?;
        let (first, length) = (header + word(8)?, word(12)?);
        let strings = header + word(16)?;
        let (mut places, mut at) = (Vec::new(), first);
        while at < first + length {
            places.push(at);
            at += type_length(word(at + 4)? as u32)?;
        }
        Some(Self { bytes, places, strings })
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(&self.bytes, at)
    }

    fn text(&self, offset: u32) -> &str {
        let from = self.bytes.get(self.strings + offset as usize..).unwrap_or_default();
        let end = from.iter().position(|byte| *byte == 0).unwrap_or(0);
        std::str::from_utf8(&from[..end]).unwrap_or_default()
    }

    /// The place of the type of this kind and name among all types.
    fn find(&self, wanted: u32, name: &str) -> Option<usize> {
        self.places.iter().position(|at| {
            let is_right = self.word(at + 4).is_some_and(|info| kind(info) == wanted);
            is_right && self.word(*at).is_some_and(|offset| self.text(offset) == name)
        })
    }

    /// The number of the function of this name.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.find(KIND_FUNC, name).map(|found| found as u32 + 1)
    }

    /// The structure of this name.
    fn structure(&self, name: &str) -> Option<BtfStructure> {
        self.structure_at(self.find(KIND_STRUCT, name)?)
    }

    /// The structure or union of this name; `outer.member` names the structure of the elements of a member.
    pub(crate) fn structure_or_part(&self, path: &str) -> Option<BtfStructure> {
        let mut names = path.split('.');
        let outer = names.next()?;
        let outer = self.find(KIND_STRUCT, outer).or_else(|| self.find(KIND_UNION, outer))?;
        names.try_fold(self.structure_at(outer)?, |outer, name| {
            self.structure_at(self.element_of(outer.member(name)?.type_id)?)
        })
    }

    /// The place of the type of an array's elements; of another type, its own place.
    fn element_of(&self, id: u32) -> Option<usize> {
        let (place, at) = self.place(id)?;
        if kind(self.word(at + 4)?) == KIND_ARRAY {
            return self.element_of(self.word(at + 12)?);
        }
        Some(place)
    }

    /// The bytes of a member.
    pub(crate) fn size_of(&self, member: Member) -> Option<usize> {
        self.size(member.type_id)
    }

    fn size(&self, id: u32) -> Option<usize> {
        let (_, at) = self.place(id)?;
        let size_or_type = self.word(at + 8)?;
        match kind(self.word(at + 4)?) {
            KIND_PTR => Some(8),
            KIND_ARRAY => Some(self.size(self.word(at + 12)?)? * self.word(at + 20)? as usize),
            kind if kind == KIND_TYPEDEF || KINDS_QUALIFIER.contains(&kind) => {
                self.size(size_or_type)
            }
            _ => Some(size_or_type as usize),
        }
    }

    /// The place among all types, and where in the bytes, of the type with this number.
    fn place(&self, id: u32) -> Option<(usize, usize)> {
        let place = (id as usize).checked_sub(1)?;
        Some((place, *self.places.get(place)?))
    }

    fn structure_at(&self, found: usize) -> Option<BtfStructure> {
        let at = *self.places.get(found)?;
        let (info, size) = (self.word(at + 4)?, self.word(at + 8)?);
        let members = (0..count(info)).filter_map(|index| {
            let at = at + 12 + 12 * index as usize;
            // The upper bits are the width of a bit field; these structures have none.
            let offset = (self.word(at + 8)? & 0x00ff_ffff) as usize / 8;
            let member = Member { index, offset, type_id: self.word(at + 4)? };
            Some((self.text(self.word(at)?).to_owned(), member))
        });
        Some(BtfStructure { id: found as u32 + 1, size, members: members.collect() })
    }

    /// Whether the structure has a member of this name, also within parts without a name, up to this depth.
    fn has_member(&self, id: u32, name: &str, depth: u32) -> bool {
        let found = || {
            let (_, at) = self.place(id)?;
            let info = self.word(at + 4)?;
            let is_here = |index: u32| {
                let at = at + 12 + 12 * index as usize;
                let own = self.text(self.word(at)?);
                let part = self.word(at + 4)?;
                let is_open = own.is_empty() && depth > 0;
                Some(own == name || is_open && self.has_member(part, name, depth - 1))
            };
            let has_parts = [KIND_STRUCT, KIND_UNION].contains(&kind(info));
            Some(has_parts && (0..count(info)).any(|index| is_here(index) == Some(true)))
        };
        found() == Some(true)
    }

    /// Whether the kernel has what programs read of it. Otherwise the library that adapts them makes them invalid
    /// where they read it, and the verifier does not say why. `wanted` are the types of the programs.
    pub(crate) fn check_members(&self, wanted: Vec<u8>) -> Result<(), Error> {
        let Some(wanted) = Self::parse(wanted) else { return Ok(()) };
        for name in READ {
            let Some(ours) = wanted.structure(name) else { continue };
            let theirs = self.structure(name).ok_or_else(|| missing(format!("no {name}")))?;
            let mut members: Vec<&String> = ours.members.keys().collect();
            members.sort();
            if let Some(member) = members.iter().find(|it| !self.has_member(theirs.id, it, 3)) {
                return Err(missing(format!("{name} has no {member}")));
            }
        }
        Ok(())
    }

    /// How many arguments the function has that the member points to.
    fn arguments(&self, member: Member) -> Option<u32> {
        let (_, pointer) = self.place(member.type_id)?;
        if kind(self.word(pointer + 4)?) != KIND_PTR {
            return None;
        }
        let (_, function) = self.place(self.word(pointer + 8)?)?;
        let info = self.word(function + 4)?;
        (kind(info) == KIND_FUNC_PROTO).then(|| count(info))
    }

    /// The structure that a congestion control fills in, if this kernel lets BPF do it.
    pub(crate) fn congestion_ops(&self) -> Result<CongestionOps, Error> {
        let ops = self.structure("tcp_congestion_ops").ok_or(missing("no TCP"))?;
        let value = self
            .structure("bpf_struct_ops_tcp_congestion_ops")
            .ok_or(missing("BPF programs cannot be congestion controls"))?;
        let control = ops.member("cong_control").and_then(|member| self.arguments(member));
        let has_ack_argument = match control {
            Some(2) => false,
            Some(4) => true,
            _ => return Err(missing("an unknown cong_control")),
        };
        let has_links = self.structure("bpf_struct_ops_link").is_some();
        let data = value.member("data").ok_or(missing("an unknown layout of struct_ops"))?.offset;
        Ok(CongestionOps { ops, value, data, has_ack_argument, has_links })
    }
}

fn missing(what: impl Into<String>) -> Error {
    Missing::Kernel(what.into()).into()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn kind(info: u32) -> u32 {
    info >> 24 & 31
}

fn count(info: u32) -> u32 {
    info & 0xffff
}

/// How many bytes a type takes, by its kind and the number of its parts.
fn type_length(info: u32) -> Option<usize> {
    let (head, parts) = (12, count(info) as usize);
    Some(match kind(info) {
        // Pointer, forward, typedef, qualifiers, function, float, type tag.
        2 | 7..=12 | 16 | 18 => head,
        // Integer, variable, declaration tag.
        1 | 14 | 17 => head + 4,
        3 => head + 12,
        // Structure, union, data section, enumeration of 64 bits.
        4 | 5 | 15 | 19 => head + 12 * parts,
        // Enumeration, function prototype.
        6 | 13 => head + 8 * parts,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use uncork_testkit::{Capability, not_run};

    use super::*;
    use crate::algorithm::Algorithm;
    use crate::object::Object;

    /// A tiny description: `struct pair { int first; int (*second)(int, int); }`.
    fn tiny() -> Vec<u8> {
        let names = b"\0int\0pair\0first\0second\0";
        let int = [1, 1 << 24, 4, 32];
        let proto = [0, 13 << 24 | 2, 1, 0, 1, 0, 1];
        let pointer = [0, 2 << 24, 2];
        let pair = [5, 4 << 24 | 2, 16, 10, 1, 0, 16, 3, 64];
        let types: Vec<u32> = int.into_iter().chain(proto).chain(pointer).chain(pair).collect();
        let length = 4 * types.len() as u32;
        let header = [0x0001_eb9f, 24, 0, length, length, names.len() as u32];
        let words = header.iter().chain(&types).flat_map(|word| word.to_le_bytes());
        words.chain(names.iter().copied()).collect()
    }

    #[test]
    fn a_structure_and_its_functions_are_found() {
        let types = Types::parse(tiny()).expect("it is well formed");
        let pair = types.structure("pair").expect("it is there");
        assert_eq!((pair.id, pair.size), (4, 16));
        let second = pair.member("second").expect("it is a member");
        assert_eq!((second.index, second.offset), (1, 8));
        assert_eq!(types.arguments(second), Some(2));
        assert_eq!(pair.member("first").and_then(|first| types.arguments(first)), None);
        assert!(types.structure("first").is_none());
    }

    #[test]
    fn a_kernel_without_struct_ops_is_refused_with_the_remedy() {
        let types = Types::parse(tiny()).expect("it is well formed");
        let error = types.congestion_ops().expect_err("without TCP").to_string();
        assert_eq!(error, "this kernel cannot do it: no TCP; use Linux 6.1 or newer");
    }

    /// This kernel's description, but with another name for something. `None`, with a message, if there is none.
    fn renamed(name: &str) -> Option<Types> {
        let Ok(mut bytes) = std::fs::read(KERNEL) else {
            not_run(Capability::Bpf, "this kernel has no BTF");
            return None;
        };
        let name = format!("\0{name}\0");
        let places = bytes.windows(name.len()).enumerate();
        let places = places.filter(|(_, window)| *window == name.as_bytes()).map(|(at, _)| at);
        for at in places.collect::<Vec<_>>() {
            bytes[at + 1] = b'_';
        }
        Types::parse(bytes)
    }

    #[test]
    fn what_another_kernel_lacks_is_named() {
        let Some(types) = renamed("no such name") else { return };
        assert!(types.congestion_ops().is_ok());
        for (name, missing) in [
            ("last_end_seq", "rate_sample has no last_end_seq"),
            ("delivered_ce", "tcp_sock has no delivered_ce"),
            ("sk_pacing_status", "sock has no sk_pacing_status"),
            ("rate_sample", "no rate_sample"),
        ] {
            let types = renamed(name).expect("it was read before");
            let opened = Object::open("x", Algorithm::Bbr3.object(), &[], Some(&types));
            let error = opened.expect_err(name).to_string();
            let expected = format!("this kernel cannot do it: {missing}; use Linux 6.1 or newer");
            assert_eq!(error, expected);
        }
        for (name, missing) in [
            ("bpf_struct_ops_tcp_congestion_ops", "BPF programs cannot be congestion controls"),
            ("cong_control", "an unknown cong_control"),
        ] {
            let error = renamed(name).expect("it was read before").congestion_ops();
            let error = error.expect_err(name).to_string();
            assert!(error.contains(missing), "{error}");
        }
    }

    #[test]
    fn cut_off_descriptions_do_not_panic() {
        let whole = tiny();
        for end in 0..whole.len() {
            if let Some(types) = Types::parse(whole[..end].to_vec()) {
                assert!(types.congestion_ops().is_err());
            }
        }
    }
}
