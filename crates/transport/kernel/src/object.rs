//! A compiled object: its types, its maps, and its programs as the kernel takes them.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::btf::{Btf, BtfFeatures};
use aya_obj::{Map as Described, Object as Parsed};

use crate::btf::Types;
use crate::error::{Error, Missing};
use crate::layout::{Layout, check_layouts};
use crate::map::Map;
use crate::program::Program;
use crate::sys::{self, MapSpec, ProgramSpec};

const FLAG_READ_ONLY_FOR_PROGRAMS: u32 = 1 << 7;

/// Maps by their names in the object.
pub type Maps = HashMap<String, Map>;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// A member of a structure of the kernel.
    #[doc(hidden)]
    StructOps {
        /// The structure's type.
        structure: u32,
        /// The member's index.
        member: u32,
    },
    /// Events of the TCP connections of a cgroup.
    SockOps,
    /// A packet; here a question that user space asks.
    Xdp,
    /// Packets that leave through a device (tcx).
    Egress,
    /// Things of the kernel, such as TCP sockets, when user space reads: [`ProgramKind::iterator`].
    Iterator {
        /// The number of the kernel's function.
        function: u32,
    },
}

impl ProgramKind {
    /// An iterator over the kernel's `things`, such as `tcp`.
    ///
    /// # Errors
    ///
    /// If the kernel does not describe its types, or has no such iterator.
    pub fn iterator(things: &'static str) -> Result<Self, Error> {
        let function = Types::read()?.function(&format!("bpf_iter_{things}"));
        let function =
            function.ok_or_else(|| Missing::Kernel("no BPF iterator over these".to_owned()))?;
        Ok(Self::Iterator { function })
    }
}

/// An object with types that the kernel has.
#[derive(Debug)]
pub struct Object {
    name: &'static str,
    parsed: Parsed,
    described: HashMap<String, Described>,
    btf: OwnedFd,
}

impl Object {
    /// Reads the object `name`. Its structures must have these layouts. Programs that read structures of the kernel are adapted to
    /// `kernel`.
    pub(crate) fn open(
        name: &'static str,
        bytes: &[u8],
        layouts: &[Layout],
        kernel: Option<&Types>,
    ) -> Result<Self, Error> {
        let broken = |error: &dyn std::fmt::Display| Error::Object(name, error.to_string());
        let mut parsed = Parsed::parse(bytes).map_err(|error| broken(&error))?;
        if let Some(kernel) = kernel {
            let types =
                Btf::parse(kernel.bytes(), parsed.endianness).map_err(|error| broken(&error))?;
            parsed.relocate_btf(&types).map_err(|error| broken(&error))?;
        }
        // The kernels that we need know every kind of type.
        let features = BtfFeatures::new(true, true, true, true, true, true, true, true);
        let types = parsed.fixup_and_sanitize_btf(&features).map_err(|error| broken(&error))?;
        let types = types.ok_or_else(|| broken(&"no types"))?.to_bytes();
        if let Some(kernel) = kernel {
            kernel.check_members(types.clone())?;
        }
        let known = Types::parse(types.clone()).ok_or_else(|| broken(&"unknown types"))?;
        check_layouts(layouts, &known).map_err(|error| broken(&error))?;
        let btf = sys::load_btf(&types)
            .map_err(|error| Error::step(format!("load the types of {name}"), error))?;
        Ok(Self { name, parsed, described: HashMap::new(), btf })
    }

    /// Reads the object `name`. Its structures must have these layouts. Its programs read no structure of the kernel.
    ///
    /// # Errors
    ///
    /// Without the privilege, or if the bytes are not an object with these structures.
    pub fn plain(name: &'static str, bytes: &[u8], layouts: &[Layout]) -> Result<Self, Error> {
        Self::open(name, bytes, layouts, None)
    }

    /// Reads the object `name`. Its structures must have these layouts. Its programs read structures of the kernel only where their
    /// constant `has_types` is 1: where the running kernel describes its types.
    ///
    /// # Errors
    ///
    /// Without the privilege, if the bytes are not an object with these structures, or the kernel's have other members.
    pub fn adapted(name: &'static str, bytes: &[u8], layouts: &[Layout]) -> Result<Self, Error> {
        let kernel = Types::read().ok();
        let mut object = Self::open(name, bytes, layouts, kernel.as_ref())?;
        object.set_constant("has_types", &u32::from(kernel.is_some()).to_ne_bytes())?;
        Ok(object)
    }

    /// Sets a constant that the programs read.
    pub(crate) fn set_constant(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        let constants = [(name, (value, true))].into_iter().collect();
        let set = self.parsed.patch_map_data(constants);
        set.map_err(|error| Error::Object(self.name, error.to_string()))
    }

    /// The names of its maps.
    pub(crate) fn map_names(&self) -> Vec<String> {
        self.parsed.maps.keys().cloned().collect()
    }

    /// The types of programs and maps.
    pub(crate) fn types(&self) -> BorrowedFd<'_> {
        self.btf.as_fd()
    }

    fn broken(&self, what: impl std::fmt::Display) -> Error {
        Error::Object(self.name, what.to_string())
    }

    /// Creates a map, with this many entries or as many as the object says.
    ///
    /// # Errors
    ///
    /// If the object has no such map, or the kernel refuses it.
    pub fn create_map(&self, name: &str, entries: Option<u32>) -> Result<Map, Error> {
        let map = self.parsed.maps.get(name);
        let map = map.ok_or_else(|| self.broken(format!("it has no map {name}")))?;
        let failed = |error| Error::step(format!("create the map {name} of {}", self.name), error);
        let constants = map.data();
        if !constants.is_empty() {
            return Map::constant(name, constants, FLAG_READ_ONLY_FOR_PROGRAMS).map_err(failed);
        }
        let Described::Btf(typed) = map else {
            return Err(self.broken("it has a map without types"));
        };
        let spec = MapSpec {
            name,
            kind: map.map_type(),
            key_size: map.key_size(),
            value_size: map.value_size(),
            max_entries: entries.unwrap_or(map.max_entries()),
            flags: map.map_flags(),
            types: (typed.def.btf_key_type_id, typed.def.btf_value_type_id),
            ..MapSpec::default()
        };
        let fd = sys::create_map(&spec, Some(self.btf.as_fd())).map_err(failed)?;
        Ok(Map::new(fd, spec.kind, spec.key_size, spec.value_size))
    }

    /// Puts the maps into the programs, and behind each program the functions that it calls. Once only.
    ///
    /// # Errors
    ///
    /// If a map is missing.
    pub fn link(&mut self, maps: &Maps) -> Result<(), Error> {
        let name = self.name;
        let broken = |error: &dyn std::fmt::Display| Error::Object(name, error.to_string());
        self.described = std::mem::take(&mut self.parsed.maps);
        let sections: HashSet<usize> =
            self.parsed.functions.keys().map(|(section, _)| *section).collect();
        let described = self.described.iter().filter_map(|(name, described)| {
            maps.get(name).map(|map| (name.as_str(), map.as_fd().as_raw_fd(), described))
        });
        self.parsed.relocate_maps(described, &sections).map_err(|error| broken(&error))?;
        self.parsed.relocate_calls(&sections).map_err(|error| broken(&error))
    }

    /// Has the kernel verify a program of the linked object.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn load(&self, name: &'static str, kind: ProgramKind) -> Result<Program, Error> {
        let missing = || self.broken(format!("it has no program {name}"));
        let program = self.parsed.programs.get(name).ok_or_else(missing)?;
        let function = self.parsed.functions.get(&program.function_key()).ok_or_else(missing)?;
        let functions = function.func_info.func_info_bytes();
        let spec = ProgramSpec {
            name,
            kind,
            instructions: sys::as_bytes(&function.instructions),
            license: &program.license,
            btf: self.btf.as_fd(),
            functions: (&functions, function.func_info_rec_size),
        };
        let fd =
            sys::load_program(&spec).map_err(|(error, log)| self.refused(name, error, &log))?;
        Ok(Program::new(fd, name))
    }

    fn refused(&self, name: &str, error: std::io::Error, log: &str) -> Error {
        let program = format!("{name} of {}", self.name);
        if log.is_empty() {
            return Error::step(format!("load the program {program}"), error);
        }
        // The sums come after the reason.
        let lines = log.lines().take_while(|line| !line.starts_with("verification time"));
        let reason = lines.filter(|line| !line.is_empty()).last().unwrap_or_default().to_owned();
        Error::Refused { program, reason }
    }
}
