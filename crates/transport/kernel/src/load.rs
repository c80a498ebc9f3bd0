//! Loads an object: fits its programs to the running kernel, has them verified, registers them.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use zerocopy::{FromBytes, IntoBytes};

use crate::algorithm::Algorithm;
use crate::btf::{CongestionOps, Types};
use crate::egress::{self, Ect1Devices, EgressPrograms};
use crate::error::{Error, Missing};
use crate::map::Map;
use crate::object::{Maps, Object, ProgramKind};
use crate::pin::Pins;
use crate::registration::{Registration, Structure, unregister};
use crate::resume::{OBSERVATIONS, ResumeMemory, ResumeNetworks, ResumeStatus};
use crate::sys::{self, MapSpec};
use crate::trace::Trace;

/// The members of `struct tcp_congestion_ops`, and the programs that implement them. Optional ones that return a value
/// are left out, because such values were sometimes lost (docs/evidence/kernel.md).
const PROGRAMS: [(&str, &str); 8] = [
    ("init", "start"),
    ("release", "release"),
    ("cong_control", "cong_control"),
    ("cwnd_event", "cwnd_event"),
    (TX_START, TX_START),
    ("set_state", "set_state"),
    ("undo_cwnd", "undo_cwnd"),
    ("ssthresh", "ssthresh"),
];

/// The member that a controller with Careful Resume has another program for, under a name of its own.
const RESUMING: (&str, &str) = ("init", "start_resuming");

/// Kernels with this member call it in place of `cwnd_event` when a flow starts to send.
const TX_START: &str = "cwnd_event_tx_start";

const FLAG_LINK: u32 = 1 << 13;
/// Any user may choose the controller.
const NON_RESTRICTED: u32 = 1;
/// Connections with the controller ask for AccECN, and answer to it; the others get what the host has set.
const NEEDS_ACCECN: u32 = 4;
const RECORDS_TRACED: u32 = 1 << 16;

/// Whether this machine can load controllers and keep them in `pins`: by what the kernel says of itself,
/// and by loading the smallest.
pub fn probe(pins: &Pins) -> Result<(), Error> {
    pins.check_directory()?;
    Loaded::new(Algorithm::Reno).map(drop)
}

/// The most instructions that the verifier has looked at for one of the programs of what is registered at `pin`.
pub(crate) fn verified_instructions(pin: &Path) -> Result<u32, Error> {
    let mut most = 0;
    for program in registered_programs(pin)? {
        let info = sys::program_info(program.as_fd()).map_err(|error| asked(pin, error))?;
        most = most.max(info.verified_instructions);
    }
    Ok(most)
}

/// Careful Resume of what is registered at `pin`; `None` if it was loaded without.
pub(crate) fn resume_status(pin: &Path) -> Result<Option<ResumeStatus>, Error> {
    let mut maps = Maps::new();
    for program in registered_programs(pin)? {
        let ids = sys::program_maps(program.as_fd()).map_err(|error| asked(pin, error))?;
        for id in ids {
            let map = sys::map_by_id(id).map_err(|error| asked(pin, error))?;
            let (map, info) = Map::known(map)?;
            let names = ResumeMemory::MAPS.into_iter();
            maps.extend(names.filter(|name| info.is_called(name)).map(str::to_owned).zip([map]));
        }
    }
    let memory = ResumeMemory::of(&mut maps).filter(ResumeMemory::is_used);
    memory.map(|memory| memory.status(sys::processors())).transpose()
}

fn asked(pin: &Path, error: std::io::Error) -> Error {
    Error::step(format!("ask about {}", pin.display()), error)
}

/// The programs of what is registered at `pin`.
fn registered_programs(pin: &Path) -> Result<Vec<OwnedFd>, Error> {
    let asked = |error| asked(pin, error);
    let CongestionOps { ops, value, data, .. } = Types::read()?.congestion_ops()?;
    let map = sys::open_pin(pin).and_then(sys::structure_map).map_err(asked)?;
    let mut content = vec![0_u8; value.size as usize];
    sys::element(map.as_fd(), &[0; 4], &mut content).map_err(asked)?;
    // Where programs were written, the kernel shows their numbers.
    let number = |member| {
        let pointer = content.get(data + ops.member(member)?.offset..)?;
        let (number, _) = u64::read_from_prefix(pointer).ok()?;
        Some(number as u32).filter(|number| *number != 0)
    };
    let numbers = PROGRAMS.iter().filter_map(|(member, _)| number(member));
    numbers.map(|number| sys::program_by_id(number).map_err(asked)).collect()
}

/// What the verifier has found of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedProgram {
    /// Its name.
    pub name: &'static str,
    /// How many instructions it has looked at, on all paths.
    pub instructions: u32,
}

/// A program that the kernel has accepted.
#[derive(Debug)]
struct LoadedProgram {
    /// The member of the structure.
    member: &'static str,
    fd: OwnedFd,
    verified: VerifiedProgram,
}

/// How a controller is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    /// Whether each call is reported: [`Loaded::trace`].
    pub is_traced: bool,
    /// Careful Resume (RFC 9959) for sockets that choose [`Algorithm::resuming_name`], with this number of client networks.
    pub resume: Option<ResumeNetworks>,
}

/// A controller with programs that the kernel has accepted. Sockets cannot choose it yet.
#[derive(Debug)]
pub struct Loaded {
    algorithm: Algorithm,
    programs: Vec<LoadedProgram>,
    structure: Structure,
    /// The structure with [`Algorithm::resuming_name`].
    resuming: Option<Structure>,
    egress: Option<EgressPrograms>,
    trace: OwnedFd,
    record_bytes: usize,
    memory: ResumeMemory,
}

impl Loaded {
    /// Has the kernel verify a controller.
    pub fn new(algorithm: Algorithm) -> Result<Self, Error> {
        Self::with(algorithm, LoadOptions::default())
    }

    /// The same with a trace of every call.
    pub fn traced(algorithm: Algorithm) -> Result<Self, Error> {
        Self::with(algorithm, LoadOptions { is_traced: true, ..LoadOptions::default() })
    }

    /// The same with options.
    pub fn with(algorithm: Algorithm, options: LoadOptions) -> Result<Self, Error> {
        Loader::new(algorithm)?.load(options)
    }

    /// What it is.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// What became of Careful Resume.
    pub fn resume_status(&self) -> Result<ResumeStatus, Error> {
        self.memory.status(sys::processors())
    }

    /// Of each program how often it ran, and for how many nanoseconds, while `kernel.bpf_stats_enabled` was set.
    #[doc(hidden)]
    pub fn run_times(&self) -> Result<Vec<(&'static str, u64, u64)>, Error> {
        let times = |program: &LoadedProgram| {
            let info = sys::program_info(program.fd.as_fd());
            info.map(|info| (program.verified.name, info.runs, info.run_ns))
        };
        let all = self.programs.iter().map(times).collect::<Result<_, _>>();
        all.map_err(|error| self.failed("ask about", error))
    }

    /// The map of the observations, for tests that fill it.
    #[doc(hidden)]
    pub fn observations(&self) -> &Map {
        self.memory.observations()
    }

    /// The programs and what their verification took.
    pub fn programs(&self) -> impl Iterator<Item = VerifiedProgram> {
        self.programs.iter().map(|program| program.verified)
    }

    /// Registers it for this process, at most.
    pub fn register(&self) -> Result<Registration, Error> {
        let structures = [&self.structure].into_iter().chain(&self.resuming);
        let all = structures.map(Structure::register).collect::<Result<_, _>>();
        all.map(Registration::new).map_err(|error| self.failed("register", error))
    }

    /// Has the packets of its connections leave as ECT(1) in the calling thread's network namespace, where it does that.
    pub fn send_ect1(&self) -> Result<Option<Ect1Devices>, Error> {
        self.egress.as_ref().map(EgressPrograms::attach).transpose()
    }

    /// Registers it until its pins are removed. The devices come first: without them it does not send ECT(1). The name for Careful
    /// Resume is last, so that it never exists alone.
    pub(crate) fn register_at(&self, directory: &Path) -> Result<(), Error> {
        self.attach_at(directory)?;
        let [pin, resuming_pin] = self.algorithm.names().map(|name| directory.join(name));
        let registered = self.structure.register_at(&pin).and_then(|()| {
            let Some(resuming) = &self.resuming else { return Ok(()) };
            resuming.register_at(&resuming_pin).inspect_err(|_| {
                let _ = unregister(&pin);
            })
        });
        registered.map_err(|error| self.failed("register", error)).inspect_err(|_| {
            // The first error is the one to report.
            let _ = self.egress.as_ref().map(|_| egress::detach(directory));
        })
    }

    /// Takes the place of another version. Its open connections do not send ECT(1) any more.
    pub(crate) fn replace_at(&self, directory: &Path) -> Result<(), Error> {
        let [pin, resuming_pin] = self.algorithm.names().map(|name| directory.join(name));
        let replaced = self.structure.replace_at(&pin).and_then(|()| {
            match (&self.resuming, resuming_pin.exists()) {
                (Some(resuming), true) => resuming.replace_at(&resuming_pin),
                (Some(resuming), false) => resuming.register_at(&resuming_pin),
                (None, true) => unregister(&resuming_pin),
                (None, false) => Ok(()),
            }
        });
        replaced.map_err(|error| self.failed("replace", error))?;
        self.attach_at(directory)
    }

    fn attach_at(&self, directory: &Path) -> Result<(), Error> {
        self.egress.as_ref().map_or(Ok(()), |programs| programs.attach_at(directory))
    }

    fn failed(&self, what: &str, error: std::io::Error) -> Error {
        // Kernels refuse flags that they do not know.
        if self.algorithm.sends_ect1() && error.kind() == std::io::ErrorKind::InvalidInput {
            return Missing::AccEcn(self.algorithm.name()).into();
        }
        Error::step(format!("{what} {}", self.algorithm), error)
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
}

impl Loader {
    fn new(algorithm: Algorithm) -> Result<Self, Error> {
        let kernel = Types::read()?;
        let ops = kernel.congestion_ops()?;
        let object = Object::open(algorithm.name(), algorithm.object(), &[], Some(&kernel));
        let object = object.map_err(|error| match error {
            // Prague reads what the peer has counted, which is part of AccECN.
            Error::Missing(Missing::Kernel(_)) if algorithm.sends_ect1() => {
                Missing::AccEcn(algorithm.name()).into()
            }
            error => error,
        })?;
        Ok(Self { algorithm, object, ops })
    }

    fn load(mut self, LoadOptions { is_traced, resume }: LoadOptions) -> Result<Loaded, Error> {
        if is_traced {
            self.object.set_constant("tracing", 1_u32.as_bytes())?;
        }
        if resume.is_some() {
            self.object.set_constant("resume", 1_u32.as_bytes())?;
        }
        let has_ack_argument = u32::from(self.ops.has_ack_argument);
        self.object.set_constant("has_ack_argument", has_ack_argument.as_bytes())?;
        let mut maps = Maps::new();
        for name in self.object.map_names() {
            let entries = match name.as_str() {
                "trace" => is_traced.then_some(RECORDS_TRACED),
                OBSERVATIONS => resume.map(ResumeNetworks::get),
                _ => None,
            };
            let map = self.object.create_map(&name, entries)?;
            maps.insert(name, map);
        }
        self.object.link(&maps)?;
        let all = self.programs().chain(resume.map(|_| RESUMING));
        let programs = all
            .map(|(member, name)| self.load_program(member, name))
            .collect::<Result<Vec<_>, Error>>()?;
        let is_shared = |program: &&LoadedProgram| program.verified.name != RESUMING.1;
        let structure =
            self.fill_structure(self.algorithm.name(), programs.iter().filter(is_shared))?;
        // Of two programs for a member the later one counts.
        let resuming =
            resume.map(|_| self.fill_structure(self.algorithm.resuming_name(), programs.iter()));
        let egress = self.algorithm.sends_ect1().then(|| EgressPrograms::load(&self.object));
        let map = maps.remove("trace").ok_or_else(|| self.broken("it has no map for the trace"))?;
        let record_bytes = map.value_size();
        let memory = ResumeMemory::of(&mut maps);
        let memory = memory.ok_or_else(|| self.broken("it has no map for Careful Resume"))?;
        Ok(Loaded {
            algorithm: self.algorithm,
            programs,
            structure,
            resuming: resuming.transpose()?,
            egress: egress.transpose()?,
            trace: map.into(),
            record_bytes,
            memory,
        })
    }

    fn broken(&self, what: &str) -> Error {
        Error::Object(self.algorithm.name(), what.to_owned())
    }

    /// The programs that this kernel calls.
    fn programs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let not_called =
            if self.ops.ops.member(TX_START).is_some() { "cwnd_event" } else { TX_START };
        PROGRAMS.into_iter().filter(move |(member, _)| *member != not_called)
    }

    fn load_program(
        &self,
        member: &'static str,
        name: &'static str,
    ) -> Result<LoadedProgram, Error> {
        let of_kernel = self.ops.ops.member(member).ok_or_else(|| {
            self.broken(&format!("this kernel's tcp_congestion_ops has no member {member}"))
        })?;
        let kind = ProgramKind::StructOps { structure: self.ops.ops.id, member: of_kernel.index };
        let program = self.object.load(name, kind)?;
        let instructions = program.verified_instructions()?;
        let verified = VerifiedProgram { name, instructions };
        Ok(LoadedProgram { member, fd: program.into(), verified })
    }

    /// The structure with the programs, the name and the flags, as the kernel wants it registered.
    fn fill_structure<'a>(
        &self,
        name: &'static str,
        programs: impl Iterator<Item = &'a LoadedProgram>,
    ) -> Result<Structure, Error> {
        let CongestionOps { ops, value, data, has_links, .. } = &self.ops;
        let mut bytes = vec![0_u8; value.size as usize];
        let mut put = |member: &str, content: &[u8]| {
            let offset = data + ops.member(member).map(|member| member.offset)?;
            bytes.get_mut(offset..offset + content.len())?.copy_from_slice(content);
            Some(())
        };
        let put_all = || {
            for program in programs {
                put(program.member, (program.fd.as_raw_fd() as u64).as_bytes())?;
            }
            let accecn = if self.algorithm.sends_ect1() { NEEDS_ACCECN } else { 0 };
            put("flags", (NON_RESTRICTED | accecn).as_bytes())?;
            put("name", name.as_bytes())
        };
        put_all().ok_or_else(|| self.broken("this kernel's tcp_congestion_ops is unknown"))?;
        let failed = |error| Error::step(format!("fill in {name}"), error);
        let spec = MapSpec {
            name,
            kind: sys::MAP_TYPE_STRUCT_OPS,
            key_size: 4,
            value_size: value.size,
            max_entries: 1,
            flags: if *has_links { FLAG_LINK } else { 0 },
            kernel_type: value.id,
            ..MapSpec::default()
        };
        let map = sys::create_map(&spec, Some(self.object.types())).map_err(failed)?;
        if !has_links {
            return Ok(Structure::Written { map, content: bytes });
        }
        sys::set_element(map.as_fd(), &bytes).map_err(failed)?;
        Ok(Structure::Linked(map))
    }
}
