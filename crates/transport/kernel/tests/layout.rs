//! Structures of another layout than an object's, and rows of another size than a map's, are refused.
#![cfg(target_os = "linux")]

use std::io;

use uncork_kernel::{Layout, Map, check_object, layout};
use uncork_testkit::{Capability, not_run};

const OBJECT: &[u8] = include_bytes!("../bpf/bbr3.bpf.o");

/// `struct snapshot` of `shim.bpf.c`.
#[repr(C)]
struct Snapshot {
    delivered: u32,
    snd_nxt: u32,
    in_flight: u32,
    lost: u32,
}

#[repr(C)]
struct Swapped {
    snd_nxt: u32,
    delivered: u32,
    in_flight: u32,
    lost: u32,
}

#[repr(C)]
struct Renamed {
    delivered: u32,
    snd_nxt: u32,
    in_flight: u32,
    gone: u32,
}

#[repr(C)]
struct Short {
    delivered: u32,
    snd_nxt: u32,
    in_flight: u64,
}

#[repr(C)]
struct Long {
    delivered: u64,
    lost: [u32; 3],
    unused: u32,
}

/// The error of an object with a structure that is not as this program has it.
fn refused(layout: Layout) -> String {
    check_object("x", OBJECT, &[layout]).expect_err("differs").to_string()
}

const SAME: Layout = layout!(Snapshot = "snapshot": delivered, snd_nxt, in_flight, lost);
const PART: Layout = layout!(Snapshot = "state.snapshots": delivered, snd_nxt, in_flight, lost);
const UNKNOWN: Layout = layout!(Snapshot = "unknown": delivered, snd_nxt, in_flight, lost);
const SWAPPED: Layout = layout!(Swapped = "snapshot": snd_nxt, delivered, in_flight, lost);
const RENAMED: Layout = layout!(Renamed = "snapshot": delivered, snd_nxt, in_flight, gone);
const SHORT: Layout = layout!(Short = "snapshot": delivered, snd_nxt, in_flight);
const LONG: Layout = layout!(Long = "snapshot": delivered, lost, unused);

#[test]
fn an_object_with_the_same_structure_is_accepted() {
    check_object("x", OBJECT, &[SAME, PART]).expect("the same");
}

#[test]
fn another_layout_is_refused_with_structure_member_and_both_layouts() {
    let head = "the object of x: the structure snapshot differs from this program's: ";
    for (layout, difference) in [
        (SWAPPED, "its member snd_nxt is at bytes 4..8 there, at bytes 0..4 here"),
        (RENAMED, "its member gone is missing there, at bytes 12..16 here"),
        (SHORT, "its member in_flight is at bytes 8..12 there, at bytes 8..16 here"),
        (LONG, "it has 16 bytes there, 24 here"),
    ] {
        assert_eq!(refused(layout), format!("{head}{difference}"));
    }
    assert!(refused(UNKNOWN).contains("the structure unknown differs"));
}

#[test]
fn rows_of_another_size_are_refused() {
    let map = match Map::blob("rows", &[0; 16]) {
        Ok(map) => map,
        Err(error) => return not_run(Capability::Bpf, &error.to_string()),
    };
    let refused = |result: io::Result<()>| {
        let error = result.expect_err("of another size");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        error.to_string()
    };
    let sizes = "the map has keys of 4 bytes and values of 16, not of";
    // As many bytes as two rows of the right size.
    assert_eq!(refused(map.fill(&[0_u32; 4], &[0_u64; 4])), format!("{sizes} 4 and 8"));
    assert_eq!(refused(map.fill(&[0_u64], &[[0_u64; 2]])), format!("{sizes} 8 and 16"));
    assert_eq!(refused(map.fill(&[0_u32], &[[0_u64; 2]; 2])), "1 keys and 2 values");
    assert_eq!(refused(map.value::<u64>(0).map(drop)), format!("{sizes} 4 and 8"));
    assert_eq!(refused(map.values::<u64>(0, 1).map(drop)), format!("{sizes} 4 and 8"));
    assert_eq!(refused(map.values::<[u64; 2]>(0, 1).map(drop)), "the map has one value of a key");
    assert_eq!(map.value::<[u64; 2]>(0).expect("of its size"), [0, 0]);
}
