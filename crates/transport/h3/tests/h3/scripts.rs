//! Arbitrary bytes on streams. `fuzz/` runs the same scripts.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::common::raw::fields;
use crate::common::{Test, still_serves};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Meaningful pieces of streams: stream types, frames, settings, heads.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let head = |path| [&[1, fields(path).len() as u8][..], &fields(path)].concat();
    let known: Vec<Vec<u8>> = vec![
        vec![0],
        vec![1],
        vec![2],
        vec![3],
        vec![0x21],
        vec![4, 0],
        vec![4, 2, 6, 10],
        vec![4, 4, 1, 0, 7, 0],
        vec![4, 3, 6, 0x80, 0],
        vec![7, 1, 0],
        vec![7, 1, 4],
        vec![3, 1, 0],
        vec![13, 1, 9],
        vec![5, 3, 0, 0, 0],
        vec![0x21, 3, 1, 2, 3],
        vec![0x80, 0x0f, 7, 0, 3, 0, b'u', b'='],
        vec![6, 0],
        vec![0, 1, b'x'],
        vec![0, 0],
        vec![1, 3, 0, 0, 0xd1],
        vec![1, 0x80, 0, 0, 4],
        vec![0xff; 8],
        vec![0x3f, 0xe1, 0x1f],
        head("/10"),
        head("/1000"),
        head("/"),
        head("*"),
    ];
    prop_oneof![6 => prop::sample::select(known), 1 => prop::collection::vec(any::<u8>(), 0..20)]
}

/// Scripts with streams of such pieces.
fn scripts() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![Just(0_u8), Just(1), Just(2), Just(3), Just(3)];
    let stream = (kind, prop::collection::vec(pieces(), 0..5)).prop_map(|(kind, pieces)| {
        let mut bytes = pieces.concat();
        bytes.truncate(255);
        [&[kind, bytes.len() as u8][..], &bytes].concat()
    });
    prop::collection::vec(stream, 0..5).prop_map(|streams| streams.concat())
}

#[test]
fn arbitrary_streams_get_a_response_or_an_error_code() {
    let (test, codes) = (Test::new(), RefCell::new(BTreeSet::new()));
    let played = TestRunner::new(config(200)).run(&scripts(), |script| {
        codes.borrow_mut().insert(crate::wire::play(&test, &script));
        Ok(())
    });
    played.expect("an end");
    let codes = codes.take();
    assert!(codes.contains(&None) && codes.len() > 4, "answers, and many codes: {codes:x?}");
    still_serves(&test);
}

#[test]
fn the_fuzz_corpus_gets_a_response_or_an_error_code() {
    let test = Test::new();
    for script in lines(include_str!("corpus/wire.hex")) {
        crate::wire::play(&test, &script);
    }
    still_serves(&test);
}

fn lines(hex: &str) -> Vec<Vec<u8>> {
    assert!(hex.lines().count() > 5);
    let bytes = |line: &str| {
        let byte = |at| u8::from_str_radix(&line[2 * at..2 * at + 2], 16);
        (0..line.len() / 2).map(byte).collect::<Result<_, _>>().expect("digits")
    };
    hex.lines().map(bytes).collect()
}
