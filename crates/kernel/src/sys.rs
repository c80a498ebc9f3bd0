//! The system call `bpf`: the commands that the loader needs. All unsafe code of this crate is here.
#![expect(unsafe_code, reason = "no library calls bpf(2) with struct_ops and without libelf")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const MAP_CREATE: u32 = 0;
const MAP_UPDATE_ELEM: u32 = 2;
const PROG_LOAD: u32 = 5;
const OBJ_PIN: u32 = 6;
const OBJ_GET: u32 = 7;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const BTF_LOAD: u32 = 18;
const MAP_LOOKUP_AND_DELETE_ELEM: u32 = 21;
const MAP_FREEZE: u32 = 22;
const LINK_CREATE: u32 = 28;
const LINK_UPDATE: u32 = 29;

const PROG_TYPE_STRUCT_OPS: u32 = 27;
const ATTACH_STRUCT_OPS: u32 = 44;
const LOG_BYTES: usize = 1 << 16;

/// Plain old data whose address and size are given to the kernel.
///
/// # Safety
/// `Self` is `repr(C)`, is an argument of the command as in `linux/bpf.h`, and has no padding.
unsafe trait Attributes {}

/// Calls `bpf` with a command and its arguments. What they point to outlives the call, because all
/// callers borrow it.
fn bpf<A: Attributes>(command: u32, attributes: &mut A) -> io::Result<i64> {
    // SAFETY: the arguments are as large as said, and of the form that the command wants.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Calls a command that makes a file descriptor.
fn open<A: Attributes>(command: u32, attributes: &mut A) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the kernel has just given it to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn address<T>(data: &[T]) -> u64 {
    data.as_ptr() as u64
}

/// A name as the kernel keeps it: 15 bytes at most.
fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(text.bytes().take(15)) {
        *to = if from.is_ascii_alphanumeric() { from } else { b'_' };
    }
    name
}

#[repr(C)]
#[derive(Default)]
struct BtfLoad {
    btf: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    padding: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for BtfLoad {}

/// Loads the types of programs and maps.
pub(crate) fn load_btf(bytes: &[u8]) -> io::Result<OwnedFd> {
    let size = bytes.len() as u32;
    open(BTF_LOAD, &mut BtfLoad { btf: address(bytes), size, ..BtfLoad::default() })
}

/// A map to create.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MapSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) max_entries: u32,
    pub(crate) flags: u32,
    /// The types of key and value in the BTF of the programs.
    pub(crate) types: (u32, u32),
    /// The type of the value in the kernel's BTF.
    pub(crate) kernel_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
    ifindex: u32,
    btf: u32,
    key_type: u32,
    value_type: u32,
    kernel_value_type: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for MapCreate {}

/// Creates a map.
pub(crate) fn create_map(spec: &MapSpec<'_>, btf: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let mut attributes = MapCreate {
        kind: spec.kind,
        key_size: spec.key_size,
        value_size: spec.value_size,
        max_entries: spec.max_entries,
        flags: spec.flags,
        name: name(spec.name),
        btf: btf.map_or(0, |fd| fd.as_raw_fd() as u32),
        key_type: spec.types.0,
        value_type: spec.types.1,
        kernel_value_type: spec.kernel_type,
        ..MapCreate::default()
    };
    open(MAP_CREATE, &mut attributes)
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for Element {}

/// Writes the only element of a map.
pub(crate) fn set_element(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    let (map, key) = (map.as_raw_fd() as u32, [0_u32]);
    let (key, value) = (address(&key), address(value));
    bpf(MAP_UPDATE_ELEM, &mut Element { map, key, value, ..Element::default() }).map(drop)
}

/// Takes the oldest element out of a queue, into `value`, which is as large as the map's values.
pub(crate) fn pop(map: BorrowedFd<'_>, value: &mut [u8]) -> io::Result<()> {
    let map = map.as_raw_fd() as u32;
    let value = value.as_mut_ptr() as u64;
    bpf(MAP_LOOKUP_AND_DELETE_ELEM, &mut Element { map, value, ..Element::default() }).map(drop)
}

#[repr(C)]
struct Freeze {
    map: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for Freeze {}

/// Makes a map constant, so that the verifier knows its values.
pub(crate) fn freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    bpf(MAP_FREEZE, &mut Freeze { map: map.as_raw_fd() as u32 }).map(drop)
}

/// A struct_ops program to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramSpec<'a> {
    pub(crate) name: &'a str,
    /// Eight bytes each.
    pub(crate) instructions: &'a [u8],
    pub(crate) license: &'a std::ffi::CStr,
    pub(crate) btf: BorrowedFd<'a>,
    /// Which function begins where: records, and the size of one.
    pub(crate) functions: (&'a [u8], usize),
    /// The kernel's type of the structure, and the member that the program implements.
    pub(crate) structure: u32,
    pub(crate) member: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach_type: u32,
    btf: u32,
    function_size: u32,
    functions: u64,
    function_count: u32,
    line_size: u32,
    lines: u64,
    line_count: u32,
    attach_type_id: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for ProgLoad {}

/// Loads a program. If the kernel refuses it, the end of the verifier's log comes along.
pub(crate) fn load_program(spec: &ProgramSpec<'_>) -> Result<OwnedFd, (io::Error, String)> {
    let (functions, function_size) = spec.functions;
    let mut attributes = ProgLoad {
        kind: PROG_TYPE_STRUCT_OPS,
        count: (spec.instructions.len() / 8) as u32,
        instructions: address(spec.instructions),
        license: spec.license.as_ptr() as u64,
        name: name(spec.name),
        attach_type: spec.member,
        btf: spec.btf.as_raw_fd() as u32,
        function_size: function_size as u32,
        functions: address(functions),
        function_count: functions.len().checked_div(function_size).unwrap_or(0) as u32,
        attach_type_id: spec.structure,
        ..ProgLoad::default()
    };
    let error = match open(PROG_LOAD, &mut attributes) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    if error.raw_os_error() == Some(libc::EPERM) {
        return Err((error, String::new()));
    }
    // Once more, for the reason: the log costs time and memory.
    let mut log = vec![0_u8; LOG_BYTES];
    attributes.log = log.as_mut_ptr() as u64;
    attributes.log_size = LOG_BYTES as u32;
    attributes.log_level = 1;
    match open(PROG_LOAD, &mut attributes) {
        Ok(program) => Ok(program),
        Err(error) => {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            Err((error, String::from_utf8_lossy(&log[..end]).into_owned()))
        }
    }
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    map: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for LinkCreate {}

/// Registers the structure in `map`, as long as the link or a pin of it is there.
pub(crate) fn link(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let map = map.as_raw_fd() as u32;
    open(
        LINK_CREATE,
        &mut LinkCreate { map, attach_type: ATTACH_STRUCT_OPS, ..LinkCreate::default() },
    )
}

#[repr(C)]
#[derive(Default)]
struct LinkUpdate {
    link: u32,
    new_map: u32,
    flags: u32,
    old_map: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for LinkUpdate {}

/// Registers the structure in `map` in place of the one that `link` has registered.
pub(crate) fn update_link(link: BorrowedFd<'_>, map: BorrowedFd<'_>) -> io::Result<()> {
    let (link, new_map) = (link.as_raw_fd() as u32, map.as_raw_fd() as u32);
    bpf(LINK_UPDATE, &mut LinkUpdate { link, new_map, ..LinkUpdate::default() }).map(drop)
}

#[repr(C)]
#[derive(Default)]
struct Object {
    path: u64,
    fd: u32,
    flags: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for Object {}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Keeps what `fd` stands for under a path of the BPF file system.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let (path, fd) = (path.as_ptr() as u64, fd.as_raw_fd() as u32);
    bpf(OBJ_PIN, &mut Object { path, fd, ..Object::default() }).map(drop)
}

/// Opens what is pinned.
pub(crate) fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    open(OBJ_GET, &mut Object { path: path.as_ptr() as u64, ..Object::default() })
}

#[repr(C)]
struct Info {
    fd: u32,
    size: u32,
    place: u64,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for Info {}

/// How many instructions the verifier has looked at.
pub(crate) fn verified_instructions(program: BorrowedFd<'_>) -> io::Result<u32> {
    /// Where `struct bpf_prog_info` has `verified_insns`.
    const PLACE: usize = std::mem::offset_of!(aya_obj::generated::bpf_prog_info, verified_insns);
    let mut info = [0_u8; PLACE + 4];
    let (fd, size) = (program.as_raw_fd() as u32, info.len() as u32);
    bpf(OBJ_GET_INFO_BY_FD, &mut Info { fd, size, place: info.as_mut_ptr() as u64 })?;
    Ok(u32::from_ne_bytes([info[PLACE], info[PLACE + 1], info[PLACE + 2], info[PLACE + 3]]))
}

/// The program's instructions as bytes.
pub(crate) fn as_bytes(instructions: &[aya_obj::generated::bpf_insn]) -> &[u8] {
    // SAFETY: eight bytes each without padding, and any byte is a valid u8.
    unsafe { std::slice::from_raw_parts(instructions.as_ptr().cast(), size_of_val(instructions)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_plain() {
        assert_eq!(&name("cong_control"), b"cong_control\0\0\0\0");
        assert_eq!(&name(".rodata.a-long-name"), b"_rodata_a_long_\0");
    }

    #[test]
    fn arguments_have_the_kernel_s_sizes() {
        assert_eq!(size_of::<MapCreate>(), 64);
        assert_eq!(size_of::<ProgLoad>(), 112);
        assert_eq!(size_of::<BtfLoad>(), 32);
        assert_eq!(size_of::<aya_obj::generated::bpf_insn>(), 8);
    }
}
