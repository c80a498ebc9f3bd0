//! The system call `bpf`: the commands that the loader needs. All unsafe code of this crate is here.
#![expect(unsafe_code, reason = "no library calls bpf(2) with struct_ops and without libelf")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use zerocopy::FromBytes;

use crate::error::{Error, Missing};
use crate::object::ProgramKind;

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP_ELEM: u32 = 1;
const MAP_UPDATE_ELEM: u32 = 2;
const MAP_DELETE_ELEM: u32 = 3;
const PROG_LOAD: u32 = 5;
const OBJ_PIN: u32 = 6;
const OBJ_GET: u32 = 7;
const PROG_TEST_RUN: u32 = 10;
const MAP_GET_NEXT_ID: u32 = 12;
const PROG_GET_FD_BY_ID: u32 = 13;
const MAP_GET_FD_BY_ID: u32 = 14;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const PROG_QUERY: u32 = 16;
const BTF_LOAD: u32 = 18;
const MAP_LOOKUP_AND_DELETE_ELEM: u32 = 21;
const MAP_FREEZE: u32 = 22;
const MAP_UPDATE_BATCH: u32 = 26;
const LINK_CREATE: u32 = 28;
const LINK_UPDATE: u32 = 29;
const LINK_GET_FD_BY_ID: u32 = 30;
const LINK_GET_NEXT_ID: u32 = 31;
const ITER_CREATE: u32 = 33;
const LINK_DETACH: u32 = 34;

const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const PROG_TYPE_SOCK_OPS: u32 = 13;
const PROG_TYPE_TRACING: u32 = 26;
const PROG_TYPE_STRUCT_OPS: u32 = 27;
pub(crate) const MAP_TYPE_STRUCT_OPS: u32 = 26;
const LINK_TYPE_STRUCT_OPS: u32 = 9;
const ATTACH_SOCK_OPS: u32 = 3;
const ATTACH_ITERATOR: u32 = 28;
const ATTACH_STRUCT_OPS: u32 = 44;
const ATTACH_TCX_EGRESS: u32 = 47;
const QUERY_EFFECTIVE: u32 = 1;
const LOG_BYTES: usize = 1 << 16;
/// `BPF_LOG_STATS`: errors and sums, no instructions.
const LOG_STATISTICS: u32 = 4;
/// As many programs as a cgroup and those above it may have here.
const PROGRAMS: usize = 64;

/// Plain old data. The kernel gets its address and size.
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

/// Removes the only element of a map.
pub(crate) fn delete_element(map: BorrowedFd<'_>) -> io::Result<()> {
    let (map, key) = (map.as_raw_fd() as u32, [0_u32]);
    let key = address(&key);
    bpf(MAP_DELETE_ELEM, &mut Element { map, key, ..Element::default() }).map(drop)
}

/// Reads the element of a key into `value`, which is as large as the map's values.
pub(crate) fn element(map: BorrowedFd<'_>, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    let (map, key) = (map.as_raw_fd() as u32, address(key));
    let value = value.as_mut_ptr() as u64;
    bpf(MAP_LOOKUP_ELEM, &mut Element { map, key, value, ..Element::default() }).map(drop)
}

#[repr(C)]
#[derive(Default)]
struct Batch {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for Batch {}

/// Writes `count` elements. Their keys and values are one behind the other.
pub(crate) fn set_elements(
    map: BorrowedFd<'_>,
    keys: &[u8],
    values: &[u8],
    count: u32,
) -> io::Result<()> {
    let (keys, values) = (address(keys), address(values));
    let map = map.as_raw_fd() as u32;
    bpf(MAP_UPDATE_BATCH, &mut Batch { keys, values, count, map, ..Batch::default() }).map(drop)
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

/// A program to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: ProgramKind,
    /// Eight bytes each.
    pub(crate) instructions: &'a [u8],
    pub(crate) license: &'a std::ffi::CStr,
    pub(crate) btf: BorrowedFd<'a>,
    /// Which function begins where: records, and the size of one.
    pub(crate) functions: (&'a [u8], usize),
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
    let (kind, attach_type, attach_type_id) = match spec.kind {
        ProgramKind::StructOps { structure, member } => (PROG_TYPE_STRUCT_OPS, member, structure),
        ProgramKind::SockOps => (PROG_TYPE_SOCK_OPS, ATTACH_SOCK_OPS, 0),
        ProgramKind::Xdp => (PROG_TYPE_XDP, 0, 0),
        ProgramKind::Egress => (PROG_TYPE_SCHED_CLS, ATTACH_TCX_EGRESS, 0),
        ProgramKind::Iterator { function } => (PROG_TYPE_TRACING, ATTACH_ITERATOR, function),
    };
    let mut attributes = ProgLoad {
        kind,
        count: (spec.instructions.len() / 8) as u32,
        instructions: address(spec.instructions),
        license: spec.license.as_ptr() as u64,
        name: name(spec.name),
        attach_type,
        btf: spec.btf.as_raw_fd() as u32,
        function_size: function_size as u32,
        functions: address(functions),
        function_count: functions.len().checked_div(function_size).unwrap_or(0) as u32,
        attach_type_id,
        ..ProgLoad::default()
    };
    let error = match open(PROG_LOAD, &mut attributes) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    if error.raw_os_error() == Some(libc::EPERM) {
        return Err((error, String::new()));
    }
    // Once more, for the reason: the log costs time. Without the instructions it is short, and kernels before
    // 6.4 keep the beginning of a longer one only.
    let mut log = vec![0_u8; LOG_BYTES];
    attributes.log = log.as_mut_ptr() as u64;
    attributes.log_size = LOG_BYTES as u32;
    attributes.log_level = LOG_STATISTICS;
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
    /// Or a program.
    map: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for LinkCreate {}

/// Registers the structure in `map`, while the link or a pin of it exists.
pub(crate) fn link(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let map = map.as_raw_fd() as u32;
    open(
        LINK_CREATE,
        &mut LinkCreate { map, attach_type: ATTACH_STRUCT_OPS, ..LinkCreate::default() },
    )
}

/// Attaches a program to a cgroup, while the link or a pin of it exists.
pub(crate) fn link_cgroup(program: BorrowedFd<'_>, cgroup: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let (map, target) = (program.as_raw_fd() as u32, cgroup.as_raw_fd() as u32);
    let attach_type = ATTACH_SOCK_OPS;
    open(LINK_CREATE, &mut LinkCreate { map, target, attach_type, ..LinkCreate::default() })
}

/// Attaches a program to the packets that leave through the device with this number, while the link or a pin of it exists.
pub(crate) fn link_egress(program: BorrowedFd<'_>, device: u32) -> io::Result<OwnedFd> {
    let (map, attach_type) = (program.as_raw_fd() as u32, ATTACH_TCX_EGRESS);
    open(LINK_CREATE, &mut LinkCreate { map, target: device, attach_type, ..LinkCreate::default() })
}

#[repr(C)]
struct SysLink {
    link: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for SysLink {}

/// Detaches the program or structure of `link`.
pub(crate) fn detach_link(link: BorrowedFd<'_>) -> io::Result<()> {
    bpf(LINK_DETACH, &mut SysLink { link: link.as_raw_fd() as u32 }).map(drop)
}

#[repr(C)]
#[derive(Default)]
struct ProgramQuery {
    target: u32,
    attach_type: u32,
    flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    padding: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for ProgramQuery {}

/// The numbers of the `SockOps` programs that run for a cgroup, its own and those of the ones above it, in their order.
pub(crate) fn programs_at(cgroup: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut found = [0_u32; PROGRAMS];
    let mut query = ProgramQuery {
        target: cgroup.as_raw_fd() as u32,
        attach_type: ATTACH_SOCK_OPS,
        flags: QUERY_EFFECTIVE,
        ids: found.as_mut_ptr() as u64,
        count: PROGRAMS as u32,
        ..ProgramQuery::default()
    };
    bpf(PROG_QUERY, &mut query)?;
    Ok(found[..(query.count as usize).min(PROGRAMS)].to_vec())
}

#[repr(C)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for ById {}

/// Opens the program with this number, for those who have CAP_SYS_ADMIN.
pub(crate) fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    open(PROG_GET_FD_BY_ID, &mut ById { id, next: 0, flags: 0 })
}

/// The same of a map.
pub(crate) fn map_by_id(id: u32) -> io::Result<OwnedFd> {
    open(MAP_GET_FD_BY_ID, &mut ById { id, next: 0, flags: 0 })
}

/// The same of a link.
pub(crate) fn link_by_id(id: u32) -> io::Result<OwnedFd> {
    open(LINK_GET_FD_BY_ID, &mut ById { id, next: 0, flags: 0 })
}

/// The number of the map that comes after `id`.
pub(crate) fn next_map(id: u32) -> io::Result<u32> {
    let mut next = ById { id, next: 0, flags: 0 };
    bpf(MAP_GET_NEXT_ID, &mut next).map(|_| next.next)
}

/// The same of links.
pub(crate) fn next_link(id: u32) -> io::Result<u32> {
    let mut next = ById { id, next: 0, flags: 0 };
    bpf(LINK_GET_NEXT_ID, &mut next).map(|_| next.next)
}

/// The name of the program with this number. The kernel reports it only with CAP_SYS_ADMIN.
pub(crate) fn program_name(id: u32) -> io::Result<String> {
    let program = program_by_id(id)?;
    let ProgramInfo { name, .. } = info(program.as_fd())?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[repr(C)]
struct IteratorCreate {
    link: u32,
    flags: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for IteratorCreate {}

/// A file that runs an iterator when it is read.
pub(crate) fn open_iterator(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let (map, attach_type) = (program.as_raw_fd() as u32, ATTACH_ITERATOR);
    let link = open(LINK_CREATE, &mut LinkCreate { map, attach_type, ..LinkCreate::default() })?;
    open(ITER_CREATE, &mut IteratorCreate { link: link.as_raw_fd() as u32, flags: 0 })
}

#[repr(C)]
#[derive(Default)]
struct LinkUpdate {
    link: u32,
    new: u32,
    flags: u32,
    old: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for LinkUpdate {}

/// Replaces the program or structure of `link` with `new`, a program or the map of a structure.
pub(crate) fn update_link(link: BorrowedFd<'_>, new: BorrowedFd<'_>) -> io::Result<()> {
    let (link, new) = (link.as_raw_fd() as u32, new.as_raw_fd() as u32);
    bpf(LINK_UPDATE, &mut LinkUpdate { link, new, ..LinkUpdate::default() }).map(drop)
}

#[repr(C)]
#[derive(Default)]
struct SysObject {
    path: u64,
    fd: u32,
    flags: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for SysObject {}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Keeps what `fd` stands for under a path of the BPF file system.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let (path, fd) = (path.as_ptr() as u64, fd.as_raw_fd() as u32);
    bpf(OBJ_PIN, &mut SysObject { path, fd, ..SysObject::default() }).map(drop)
}

/// Opens what is pinned.
pub(crate) fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    open(OBJ_GET, &mut SysObject { path: path.as_ptr() as u64, ..SysObject::default() })
}

/// Opens what is pinned, if it is there.
pub(crate) fn open_pin_if_there(path: &Path) -> Result<Option<OwnedFd>, Error> {
    match open_pin(path) {
        Ok(fd) => Ok(Some(fd)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            Err(Missing::Pin(path.display().to_string()).into())
        }
        Err(error) => Err(Error::step(format!("open {}", path.display()), error)),
    }
}

#[repr(C)]
struct Info {
    fd: u32,
    size: u32,
    place: u64,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for Info {}

/// The kernel's information about a program, a map or a link: as much as fits, the rest is zero.
fn info<T: FromBytes>(fd: BorrowedFd<'_>) -> io::Result<T> {
    let mut info = T::new_zeroed();
    fill_info(fd, &mut info)?;
    Ok(info)
}

/// The same for a structure that says where the kernel may write more.
fn fill_info<T: FromBytes>(fd: BorrowedFd<'_>, info: &mut T) -> io::Result<()> {
    let (fd, size) = (fd.as_raw_fd() as u32, size_of::<T>() as u32);
    bpf(OBJ_GET_INFO_BY_FD, &mut Info { fd, size, place: (&raw mut *info) as u64 })?;
    Ok(())
}

/// What the kernel knows of a program: the beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes)]
pub(crate) struct ProgramInfo {
    kind: u32,
    pub(crate) id: u32,
    unused: [u8; 56],
    name: [u8; 16],
    unused_2: [u8; 112],
    pub(crate) run_ns: u64,
    pub(crate) runs: u64,
    unused_3: u64,
    /// How many instructions the verifier has looked at.
    pub(crate) verified_instructions: u32,
    unused_4: u32,
}

const _: () = {
    use aya_obj::generated::bpf_prog_info;
    assert!(offset_of!(ProgramInfo, id) == offset_of!(bpf_prog_info, id));
    assert!(offset_of!(ProgramInfo, name) == offset_of!(bpf_prog_info, name));
    assert!(offset_of!(ProgramInfo, run_ns) == offset_of!(bpf_prog_info, run_time_ns));
    assert!(offset_of!(ProgramInfo, runs) == offset_of!(bpf_prog_info, run_cnt));
    assert!(
        offset_of!(ProgramInfo, verified_instructions) == offset_of!(bpf_prog_info, verified_insns)
    );
    assert!(size_of::<ProgramInfo>() <= size_of::<bpf_prog_info>());
};

pub(crate) fn program_info(program: BorrowedFd<'_>) -> io::Result<ProgramInfo> {
    info(program)
}

/// The maps in `struct bpf_prog_info`.
#[repr(C)]
#[derive(FromBytes)]
struct ProgramMaps {
    unused: [u8; 52],
    count: u32,
    ids: u64,
}

const _: () = {
    use aya_obj::generated::bpf_prog_info;
    assert!(offset_of!(ProgramMaps, count) == offset_of!(bpf_prog_info, nr_map_ids));
    assert!(offset_of!(ProgramMaps, ids) == offset_of!(bpf_prog_info, map_ids));
};

/// The numbers of the maps of a program, at most 64.
pub(crate) fn program_maps(program: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut ids = vec![0_u32; 64];
    let mut maps = ProgramMaps { unused: [0; 52], count: 64, ids: ids.as_mut_ptr() as u64 };
    fill_info(program, &mut maps)?;
    ids.truncate(maps.count as usize);
    Ok(ids)
}

/// The beginning of `struct bpf_map_info`.
#[repr(C)]
#[derive(FromBytes)]
pub(crate) struct MapInfo {
    pub(crate) kind: u32,
    id: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    /// How many elements it has at most; of a ring, its bytes.
    pub(crate) max_entries: u32,
    unused: u32,
    name: [u8; 16],
}

impl MapInfo {
    pub(crate) fn is_called(&self, text: &str) -> bool {
        self.name == name(text)
    }
}

pub(crate) fn map_info(map: BorrowedFd<'_>) -> io::Result<MapInfo> {
    info(map)
}

/// `struct bpf_link_info` of a link to a cgroup.
#[repr(C)]
#[derive(FromBytes)]
struct CgroupLinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    unused: u32,
    cgroup: u64,
    attach_type: u32,
    unused_2: u32,
}

/// `struct bpf_link_info` of a link that registers a structure.
#[repr(C)]
#[derive(FromBytes)]
struct StructureLinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    unused: u32,
    map: u32,
    unused_2: [u32; 3],
}

const _: () = assert!(size_of::<CgroupLinkInfo>() == 32 && size_of::<StructureLinkInfo>() == 32);

/// The numbers of a link's program and cgroup.
pub(crate) fn link_info(link: BorrowedFd<'_>) -> io::Result<(u32, u64)> {
    info(link).map(|CgroupLinkInfo { program, cgroup, .. }| (program, cgroup))
}

/// Whether a map has the structure of a kernel's interface, such as a controller.
pub(crate) fn is_structure(map: BorrowedFd<'_>) -> io::Result<bool> {
    info(map).map(|kind: u32| kind == MAP_TYPE_STRUCT_OPS)
}

/// The map of the structure that a link registers, for those who have CAP_SYS_ADMIN. `None` of links of other kinds, and of
/// one that registers nothing any more.
pub(crate) fn registered_map(link: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let StructureLinkInfo { kind, map, .. } = info(link)?;
    let is_registered = kind == LINK_TYPE_STRUCT_OPS && map != 0;
    is_registered.then(|| map_by_id(map)).transpose()
}

/// The map of a registered structure. `pinned` is that map, or the link that registers it: then it is for those who
/// have CAP_SYS_ADMIN.
pub(crate) fn structure_map(pinned: OwnedFd) -> io::Result<OwnedFd> {
    // The information on both begins with the type, and a link's is never this one.
    if is_structure(pinned.as_fd())? {
        return Ok(pinned);
    }
    registered_map(pinned.as_fd())?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The number of the calling thread's network namespace, which no other one ever has.
pub(crate) fn namespace_cookie() -> io::Result<u64> {
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    let (mut cookie, mut size) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `size` bytes to the cookie, and the new size (socket(7)).
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

/// The network devices of the calling thread's network namespace: number, and type of the hardware (`ARPHRD_…` of
/// linux/if_arp.h).
pub(crate) fn devices() -> io::Result<Vec<(u32, u16)>> {
    let socket = std::os::unix::net::UnixDatagram::unbound()?.into();
    // SAFETY: it has no arguments; the array that it returns is freed below (if_nameindex(3)).
    let all = unsafe { libc::if_nameindex() };
    if all.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    for place in 0.. {
        // SAFETY: the array ends with an entry of number 0, where this loop ends.
        let entry = unsafe { *all.add(place) };
        if entry.if_index == 0 {
            break;
        }
        // SAFETY: the name of an entry is a string with a 0 at its end.
        let name = unsafe { CStr::from_ptr(entry.if_name) };
        // A device may have gone meanwhile.
        if let Ok(hardware) = hardware(&socket, name) {
            found.push((entry.if_index, hardware));
        }
    }
    // SAFETY: it came from if_nameindex, and is not used any more.
    unsafe { libc::if_freenameindex(all) };
    Ok(found)
}

/// The type of a device's hardware (netdevice(7)).
fn hardware(socket: &OwnedFd, name: &CStr) -> io::Result<u16> {
    // SAFETY: all zero is a value of this structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the kernel reads the name, which ends with a 0 (15 bytes at most), and writes the address.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this request fills in the address.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// The effective user of this process.
pub(crate) fn user() -> u32 {
    // SAFETY: it has no arguments and cannot fail (geteuid(2)).
    unsafe { libc::geteuid() }
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    padding: u32,
}
// SAFETY: as in linux/bpf.h.
unsafe impl Attributes for TestRun {}

/// Runs a program once on `packet`, which it may change but not lengthen.
pub(crate) fn run(program: BorrowedFd<'_>, packet: &mut [u8]) -> io::Result<()> {
    let (program, size) = (program.as_raw_fd() as u32, packet.len() as u32);
    let place = packet.as_mut_ptr() as u64;
    let mut attributes = TestRun {
        program,
        size_in: size,
        size_out: size,
        data_in: place,
        data_out: place,
        repeat: 1,
        ..TestRun::default()
    };
    bpf(PROG_TEST_RUN, &mut attributes).map(drop)
}

/// The memory of a ring: a page with the reader's position, one with the writer's, and the data twice in a row, so
/// that a record never breaks at the end.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// The reader's page.
    consumer: *mut AtomicU64,
    /// The writer's page, then the data.
    producer: *mut AtomicU64,
    page: usize,
    size: usize,
}

// SAFETY: both pointers are to memory that this value alone maps and that any thread may use.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a ring with `size` bytes of data.
    pub(crate) fn of_ring(map: &impl AsFd, size: usize) -> io::Result<Self> {
        let fd = map.as_fd().as_raw_fd();
        // SAFETY: a query without arguments.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let memory = |length, protection, offset| {
            // SAFETY: the kernel chooses the place, so no memory in use is affected.
            let place = unsafe {
                libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, offset)
            };
            let failed = place == libc::MAP_FAILED;
            if failed { Err(io::Error::last_os_error()) } else { Ok(place.cast::<AtomicU64>()) }
        };
        let consumer = memory(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let producer = memory(page + 2 * size, libc::PROT_READ, page as libc::off_t);
        let producer = producer.inspect_err(|_| {
            // SAFETY: it was mapped above with this length, and no reference exists.
            unsafe { libc::munmap(consumer.cast(), page) };
        })?;
        Ok(Self { consumer, producer, page, size })
    }

    /// How far the reader is.
    pub(crate) fn consumed(&self) -> u64 {
        // SAFETY: the page begins with this number, aligned, and is mapped while `self` exists.
        unsafe { (*self.consumer).load(Ordering::Relaxed) }
    }

    /// Frees what is before `at`.
    pub(crate) fn consume(&mut self, at: u64) {
        // SAFETY: as above, and the page can be written.
        unsafe { (*self.consumer).store(at, Ordering::Release) }
    }

    /// How far the writers are.
    pub(crate) fn produced(&self) -> u64 {
        // SAFETY: as above, for the writers' page.
        unsafe { (*self.producer).load(Ordering::Acquire) }
    }

    /// The first word of a record.
    pub(crate) fn head(&self, place: usize) -> u32 {
        assert!(place < self.size && place.is_multiple_of(8), "records are aligned");
        // SAFETY: the place is in the data, and aligned.
        unsafe {
            (*self.producer.add((self.page + place) / 8).cast::<AtomicU32>())
                .load(Ordering::Acquire)
        }
    }

    /// The bytes of a record that was written, and not consumed yet: the kernel does not change them.
    pub(crate) fn data(&self, place: usize, length: usize) -> &[u8] {
        assert!(place + length <= 2 * self.size, "a record is not longer than the ring");
        // SAFETY: the bytes are mapped while `self` exists, and the kernel writes only behind what was consumed.
        unsafe {
            std::slice::from_raw_parts(self.producer.cast::<u8>().add(self.page + place), length)
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these lengths, and no reference outlives `self`.
        unsafe {
            libc::munmap(self.consumer.cast(), self.page);
            libc::munmap(self.producer.cast(), self.page + 2 * self.size);
        }
    }
}

/// For how many processors a map has a value each.
pub fn processors() -> usize {
    // As the kernel numbers them: "0-7".
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit([',', '-']).next().and_then(|last| last.parse().ok());
    last.unwrap_or(0_usize) + 1
}

/// The time of a clock in whole seconds.
fn seconds(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is valid to write, and both clocks exist since Linux 3.10.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec
}

/// How many seconds the clock that programs read (TAI) is ahead of Unix time. Zero, unless a time service has
/// set the kernel's leap seconds.
pub fn tai_offset() -> i64 {
    loop {
        let (before, tai, after) = (
            seconds(libc::CLOCK_REALTIME),
            seconds(libc::CLOCK_TAI),
            seconds(libc::CLOCK_REALTIME),
        );
        // Not across the end of a second.
        if before == after {
            return tai - before;
        }
    }
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
