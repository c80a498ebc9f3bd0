//! Loads an object: fits its programs to the running kernel, has them verified, registers them.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya_obj::btf::{Btf, BtfFeatures};
use aya_obj::{Map, Object};

use crate::algorithm::Algorithm;
use crate::btf::{CongestionOps, KernelTypes};
use crate::error::Error;
use crate::pin::Pins;
use crate::sys::{self, MapSpec, ProgramSpec};
use crate::trace::Trace;

/// The members of `struct tcp_congestion_ops`, and the programs that implement them.
const PROGRAMS: [(&str, &str); 8] = [
    ("init", "start"),
    ("cong_control", "cong_control"),
    ("cwnd_event", "cwnd_event"),
    ("set_state", "set_state"),
    ("undo_cwnd", "undo_cwnd"),
    ("ssthresh", "ssthresh"),
    ("sndbuf_expand", "sndbuf_expand"),
    ("min_tso_segs", "min_tso_segs"),
];

const MAP_ARRAY: u32 = 2;
const MAP_STRUCT_OPS: u32 = 26;
const FLAG_READ_ONLY_FOR_PROGRAMS: u32 = 1 << 7;
const FLAG_LINK: u32 = 1 << 13;
/// Any user may choose the controller.
const NON_RESTRICTED: u32 = 1;
const RECORDS_TRACED: u32 = 1 << 16;

/// Whether this machine can load controllers and keep them in `pins`: by what the kernel says of itself,
/// and by loading the smallest.
pub fn probe(pins: &Pins) -> Result<(), Error> {
    pins.check_file_system()?;
    Loaded::new(Algorithm::Reno).map(drop)
}

/// What the verifier has found of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedProgram {
    /// Its name.
    pub name: &'static str,
    /// How many instructions it has looked at, on all paths.
    pub instructions: u32,
}

/// A controller whose programs the kernel has accepted. Sockets cannot choose it yet.
#[derive(Debug)]
pub struct Loaded {
    algorithm: Algorithm,
    /// The programs, each with the structure's member.
    programs: Vec<(OwnedFd, VerifiedProgram)>,
    /// The filled structure.
    structure: OwnedFd,
    trace: OwnedFd,
    record_bytes: usize,
}

impl Loaded {
    /// Has the kernel verify a controller.
    pub fn new(algorithm: Algorithm) -> Result<Self, Error> {
        Loader::new(algorithm)?.load(false)
    }

    /// The same with a trace of every call.
    pub fn traced(algorithm: Algorithm) -> Result<Self, Error> {
        Loader::new(algorithm)?.load(true)
    }

    /// What it is.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The programs and what their verification took.
    pub fn programs(&self) -> impl Iterator<Item = VerifiedProgram> {
        self.programs.iter().map(|(_, program)| *program)
    }

    /// Registers it, as long as the result is open or pinned.
    pub fn register(&self) -> Result<OwnedFd, Error> {
        sys::link(self.structure.as_fd())
            .map_err(|error| Error::step(format!("register {}", self.algorithm), error))
    }

    /// Takes the place of another version.
    pub(crate) fn replace(&self, link: &OwnedFd) -> Result<(), Error> {
        sys::update_link(link.as_fd(), self.structure.as_fd())
            .map_err(|error| Error::step(format!("replace {}", self.algorithm), error))
    }

    /// The calls of a traced controller.
    pub fn trace(&self) -> Trace<'_> {
        Trace::new(self.trace.as_fd(), self.record_bytes)
    }
}

struct Loader {
    algorithm: Algorithm,
    object: Object,
    ops: CongestionOps,
    btf: OwnedFd,
}

impl Loader {
    fn new(algorithm: Algorithm) -> Result<Self, Error> {
        let kernel = KernelTypes::read()?;
        let ops = kernel.congestion_ops()?;
        let broken =
            |error: &dyn std::fmt::Display| Error::Object(algorithm.name(), error.to_string());
        let mut object = Object::parse(algorithm.object()).map_err(|error| broken(&error))?;
        let types =
            Btf::parse(kernel.bytes(), object.endianness).map_err(|error| broken(&error))?;
        object.relocate_btf(&types).map_err(|error| broken(&error))?;
        // Whatever has struct_ops links knows every kind of type.
        let features = BtfFeatures::new(true, true, true, true, true, true, true, true);
        let types = object.fixup_and_sanitize_btf(&features).map_err(|error| broken(&error))?;
        let types = types.ok_or_else(|| broken(&"no types"))?.to_bytes();
        let btf = sys::load_btf(&types)
            .map_err(|error| Error::step(format!("load the types of {algorithm}"), error))?;
        Ok(Self { algorithm, object, ops, btf })
    }

    fn load(mut self, is_traced: bool) -> Result<Loaded, Error> {
        if is_traced {
            self.switch_on_tracing()?;
        }
        let mut maps = self.create_maps(is_traced)?;
        self.link_programs(&maps)?;
        let programs = PROGRAMS
            .iter()
            .map(|(member, name)| self.load_program(member, name))
            .collect::<Result<Vec<_>, Error>>()?;
        let structure = self.fill_structure(&programs)?;
        let (trace, map) =
            maps.remove("trace").ok_or_else(|| self.broken("it has no map for the trace"))?;
        let record_bytes = map.value_size() as usize;
        Ok(Loaded { algorithm: self.algorithm, programs, structure, trace, record_bytes })
    }

    fn broken(&self, what: &str) -> Error {
        Error::Object(self.algorithm.name(), what.to_owned())
    }

    fn create_maps(&mut self, is_traced: bool) -> Result<HashMap<String, (OwnedFd, Map)>, Error> {
        let mut maps = HashMap::new();
        for (name, map) in std::mem::take(&mut self.object.maps) {
            let fd = self.create_map(&name, &map, is_traced)?;
            maps.insert(name, (fd, map));
        }
        Ok(maps)
    }

    /// Sets the constant on which the shim's trace depends.
    fn switch_on_tracing(&mut self) -> Result<(), Error> {
        let on = 1_u32.to_le_bytes();
        let constants = [("tracing", (&on[..], true))].into_iter().collect();
        let set = self.object.patch_map_data(constants);
        set.map_err(|error| Error::Object(self.algorithm.name(), error.to_string()))
    }

    fn create_map(&self, name: &str, map: &Map, is_traced: bool) -> Result<OwnedFd, Error> {
        let failed =
            |error| Error::step(format!("create the map {name} of {}", self.algorithm), error);
        let constants = map.data();
        if !constants.is_empty() {
            let fd = sys::create_map(
                &MapSpec {
                    name,
                    kind: MAP_ARRAY,
                    key_size: 4,
                    value_size: constants.len() as u32,
                    max_entries: 1,
                    flags: FLAG_READ_ONLY_FOR_PROGRAMS,
                    ..MapSpec::default()
                },
                None,
            )
            .map_err(failed)?;
            sys::set_element(fd.as_fd(), constants).map_err(failed)?;
            sys::freeze(fd.as_fd()).map_err(failed)?;
            return Ok(fd);
        }
        let Map::Btf(typed) = map else { return Err(self.broken("it has a map without types")) };
        let spec = MapSpec {
            name,
            kind: map.map_type(),
            key_size: map.key_size(),
            value_size: map.value_size(),
            max_entries: if is_traced && name == "trace" {
                RECORDS_TRACED
            } else {
                map.max_entries()
            },
            flags: map.map_flags(),
            types: (typed.def.btf_key_type_id, typed.def.btf_value_type_id),
            ..MapSpec::default()
        };
        sys::create_map(&spec, Some(self.btf.as_fd())).map_err(failed)
    }

    /// Puts the maps into the programs, and behind each program the functions that it calls.
    fn link_programs(&mut self, maps: &HashMap<String, (OwnedFd, Map)>) -> Result<(), Error> {
        let algorithm = self.algorithm;
        let broken =
            |error: &dyn std::fmt::Display| Error::Object(algorithm.name(), error.to_string());
        let sections: HashSet<usize> =
            self.object.functions.keys().map(|(section, _)| *section).collect();
        let maps = maps.iter().map(|(name, (fd, map))| (name.as_str(), fd.as_raw_fd(), map));
        self.object.relocate_maps(maps, &sections).map_err(|error| broken(&error))?;
        self.object.relocate_calls(&sections).map_err(|error| broken(&error))
    }

    fn load_program(
        &self,
        member: &str,
        name: &'static str,
    ) -> Result<(OwnedFd, VerifiedProgram), Error> {
        let missing = || self.broken(&format!("it has no program {name}"));
        let program = self.object.programs.get(name).ok_or_else(missing)?;
        let function = self.object.functions.get(&program.function_key()).ok_or_else(missing)?;
        let member = self.ops.ops.member(member).ok_or_else(|| {
            self.broken(&format!("this kernel's tcp_congestion_ops has no member {member}"))
        })?;
        let functions = function.func_info.func_info_bytes();
        let spec = ProgramSpec {
            name,
            instructions: sys::as_bytes(&function.instructions),
            license: &program.license,
            btf: self.btf.as_fd(),
            functions: (&functions, function.func_info_rec_size),
            structure: self.ops.ops.id,
            member: member.index,
        };
        let fd =
            sys::load_program(&spec).map_err(|(error, log)| self.refused(name, error, &log))?;
        let instructions = sys::verified_instructions(fd.as_fd())
            .map_err(|error| Error::step(format!("ask about the program {name}"), error))?;
        Ok((fd, VerifiedProgram { name, instructions }))
    }

    fn refused(&self, name: &str, error: std::io::Error, log: &str) -> Error {
        let program = format!("{name} of {}", self.algorithm);
        if log.is_empty() {
            return Error::step(format!("load the program {program}"), error);
        }
        let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(3)..];
        Error::Refused { program, reason: last.join("; ") }
    }

    /// The structure with the programs, the name and the flags, as the kernel wants it registered.
    fn fill_structure(&self, programs: &[(OwnedFd, VerifiedProgram)]) -> Result<OwnedFd, Error> {
        let CongestionOps { ops, value, data } = &self.ops;
        let mut bytes = vec![0_u8; value.size as usize];
        let mut put = |member: &str, content: &[u8]| {
            let offset = data + ops.member(member).map(|member| member.offset)?;
            bytes.get_mut(offset..offset + content.len())?.copy_from_slice(content);
            Some(())
        };
        let mut put_all = || {
            for ((fd, _), (member, _)) in programs.iter().zip(PROGRAMS) {
                put(member, &(fd.as_raw_fd() as u64).to_le_bytes())?;
            }
            put("flags", &NON_RESTRICTED.to_le_bytes())?;
            put("name", self.algorithm.name().as_bytes())
        };
        put_all().ok_or_else(|| self.broken("this kernel's tcp_congestion_ops is unknown"))?;
        let failed = |error| Error::step(format!("fill in {}", self.algorithm), error);
        let spec = MapSpec {
            name: self.algorithm.name(),
            kind: MAP_STRUCT_OPS,
            key_size: 4,
            value_size: value.size,
            max_entries: 1,
            flags: FLAG_LINK,
            kernel_type: value.id,
            ..MapSpec::default()
        };
        let map = sys::create_map(&spec, Some(self.btf.as_fd())).map_err(failed)?;
        sys::set_element(map.as_fd(), &bytes).map_err(failed)?;
        Ok(map)
    }
}
