//! The response to any request matches a slow model of RFC 9110, byte by byte, and contains no file
//! but the requested one. `fuzz/` searches for more cases with the same model.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod model;
mod play;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use play::play;
use world::TestDirectory;

fn world(name: &str) -> TestDirectory {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&parent).unwrap();
    TestDirectory::new(&parent)
}

const PATHS: &[&str] = &[
    "/",
    "/a",
    "/empty",
    "/c%20d",
    "/d/e.txt",
    "/d/%C3%A9",
    "/long",
    "/in",
    "/out",
    "/etc/passwd",
    "/.hidden",
    "/.git/config",
    "/d",
    "/d/",
    "/d/../a",
    "/d/%2e%2e/a",
    "/%2e%2e/secret",
    "/../secret",
    "//a",
    "/d%2fe.txt",
    "/a?b=c",
    "/%61",
    "/%2561",
    "/a%00",
    "/a/",
    "/a/b",
    "*",
    "http://host/a",
    "/..%5c..%5csecret",
    "/%c0%ae%c0%ae/secret",
    "/d/.%2e/%2e./secret",
    "/root-secret",
    "/./a",
    "/a%2",
    "/%zz",
];
const NAMES: &[&str] = &[
    "range",
    "range",
    "range",
    "if-range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];
const WORDS: &[&str] = &[
    "bytes=",
    "bytes=",
    "BYTES =",
    "lines=",
    "0",
    "1",
    "9",
    "39",
    "299",
    "300",
    "999",
    "1000",
    "199999",
    "-",
    "-",
    "-",
    ",",
    ",",
    ", ",
    "\t",
    "0-0",
    "0-",
    "-1",
    "-0",
    "1-5",
    "6-9",
    "5-1",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "$",
    "W/$",
    "*",
    "W/*",
    "\"x\"",
    "W/",
    "+1",
    "0x1",
    "\u{e9}",
    "Sun, 06 Nov 1994 08:49:36 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:38 GMT",
    "yesterday",
];

const FILES: &[&str] = &["/a", "/empty", "/c%20d", "/d/e.txt", "/d/%C3%A9", "/long", "/in"];
const NUMBERS: &[u64] =
    &[0, 0, 1, 2, 9, 39, 40, 150, 299, 300, 998, 999, 1000, 199_998, 199_999, 200_000, u64::MAX];

/// A range, or a malformed one.
fn range() -> impl Strategy<Value = String> {
    let number = || prop::sample::select(NUMBERS);
    prop_oneof![
        4 => (number(), 0_u64..200).prop_map(|(from, more)| format!("{from}-{}", from.saturating_add(more))),
        1 => (number(), number()).prop_map(|(from, to)| format!("{from}-{to}")),
        1 => number().prop_map(|from| format!("{from}-")),
        1 => number().prop_map(|count| format!("-{count}")),
        1 => prop::sample::select(WORDS).prop_map(str::to_owned),
    ]
}

/// A header line.
fn line() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(prop::sample::select(WORDS), 0..7);
    let tag = prop::sample::select(&["$", "$", "W/$", "\"x\", $", "\"x\"", "*"][..]);
    let dates: Vec<&str> = WORDS.iter().copied().filter(|word| word.starts_with("Sun")).collect();
    prop_oneof![
        8 => prop::collection::vec(range(), 1..5).prop_map(|it| format!("\nrange: bytes={}", it.join(","))),
        2 => tag.prop_map(|tag| format!("\nif-range: {tag}")),
        1 => (prop::sample::select(NAMES), tag_or(dates)).prop_map(|(name, value)| format!("\n{name}: {value}")),
        1 => (prop::sample::select(NAMES), words).prop_map(|(name, words)| format!("\n{name}: {}", words.concat())),
    ]
}

fn tag_or(dates: Vec<&'static str>) -> impl Strategy<Value = &'static str> {
    prop_oneof![prop::sample::select(&["$", "W/$", "*", "\"x\""][..]), prop::sample::select(dates)]
}

/// Requests that are almost valid.
fn scripts() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![12 => Just(""), 1 => prop::sample::select(&["H", "O", "P"][..])];
    let path = prop_oneof![
        8 => prop::sample::select(FILES).prop_map(str::to_owned),
        2 => prop::sample::select(PATHS).prop_map(str::to_owned),
        1 => "[/%a-e2.0F\\\\]{0,12}",
    ];
    let script = (method, path, prop::collection::vec(line(), 0..4));
    script
        .prop_map(|(method, path, lines)| format!("{method}{path}{}", lines.concat()).into_bytes())
}

#[test]
fn nearly_valid_requests_match_the_model() {
    let world = world("nearly");
    let config =
        ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() };
    let seen = RefCell::new(BTreeMap::new());
    let played = TestRunner::new(config).run(&scripts(), |script| {
        *seen.borrow_mut().entry(play(&world, &script)).or_insert(0) += 1;
        Ok(())
    });
    played.unwrap();
    let seen = seen.take();
    for status in [200, 204, 206, 304, 400, 404, 405, 412, 416] {
        assert!(seen.get(&Some(status)).is_some_and(|count| *count > 20), "{status}: {seen:?}");
    }
}

#[test]
fn arbitrary_bytes_match_the_model() {
    let world = world("any");
    let config =
        ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let bytes = (prop::sample::select(PATHS), prop::collection::vec(any::<u8>(), 0..60));
    let played = TestRunner::new(config).run(&bytes, |(path, bytes)| {
        play(&world, &bytes);
        play(&world, &[path.as_bytes(), b"\nrange: bytes=", &bytes].concat());
        play(&world, &[b"/", &bytes[..]].concat());
        Ok(())
    });
    played.unwrap();
}

/// Cases that the fuzzer has kept.
#[test]
fn the_fuzz_corpus_matches_the_model() {
    let world = world("corpus");
    let scripts = include_str!("corpus/requests.hex");
    assert!(scripts.lines().count() > 10);
    for line in scripts.lines() {
        let bytes = (0..line.len() / 2).map(|at| u8::from_str_radix(&line[2 * at..2 * at + 2], 16));
        play(&world, &bytes.collect::<Result<Vec<_>, _>>().unwrap());
    }
}
