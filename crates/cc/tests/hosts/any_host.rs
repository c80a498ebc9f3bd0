//! No script breaks a controller: no panic, no overflow, a window and a rate to send with, states
//! that may follow each other, and the same decisions the second time. What is checked is in
//! `host/watched.rs`.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::host::{adversary, specs, truthful};

/// A script for any controller.
fn script() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 1..400)
}

/// The same script for each controller in turn: its first byte says for which.
fn for_each_spec(script: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..specs().len()).map(|spec| [&[spec as u8], &script[1..]].concat())
}

/// Scripts that the fuzzer found worth keeping, one a line, as hexadecimal digits.
fn corpus(lines: &str) -> impl Iterator<Item = Vec<u8>> + '_ {
    lines.lines().map(|line| {
        let byte = |n| u8::from_str_radix(&line[n..n + 2], 16).expect("two hexadecimal digits");
        (0..line.len()).step_by(2).map(byte).collect()
    })
}

#[test]
fn an_honest_host_s_corpus_is_served() {
    corpus(include_str!("corpus/truthful.hex")).for_each(|script| {
        truthful::play(&script);
    });
}

#[test]
fn a_liar_s_corpus_is_served() {
    corpus(include_str!("corpus/adversary.hex")).for_each(|script| {
        adversary::play(&script);
    });
}

/// CUBIC was in conservative slow start when a careful resume jumped too far, and would have grown
/// by a quarter as fast after its retreat. The states show it: CSS follows Slow Start only.
#[test]
fn slow_start_after_a_safe_retreat_is_not_the_conservative_one() {
    corpus("019e85ff000000ff21ff077027703f90703ffe5bfe90").for_each(|script| {
        truthful::play(&script);
    });
}

proptest! {
    // Always the same scripts, so that a failure is news; looking for others is the fuzzer's job.
    #![proptest_config(ProptestConfig {
        cases: 100, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default()
    })]

    #[test]
    //= bbr-06 5.1.1-1 5.5.10.3-9 test
    fn an_honest_host_is_served(script in script()) {
        for script in for_each_spec(&script) {
            prop_assert_eq!(truthful::play(&script), truthful::play(&script));
        }
    }

    #[test]
    fn a_host_that_lies_is_served(script in script()) {
        for script in for_each_spec(&script) {
            prop_assert_eq!(adversary::play(&script), adversary::play(&script));
        }
    }
}
