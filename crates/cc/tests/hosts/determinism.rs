//! Equal inputs give equal decisions on every machine.
//!
//! The digests below are from x86-64; `cross-targets.sh` checks them on a 32-bit and on another
//! 64-bit architecture. If an algorithm's decisions change, its digests change and the test prints
//! the new ones. Only update them if you can explain the change.

use uncork_cc::Algorithm;
use uncork_units::Rng;

use crate::host::{Digest, adversary, truthful};

/// Digest of each algorithm's decisions in a long script of a truthful host and of an adversarial
/// one.
const DIGESTS: [(Algorithm, Digest, Digest); 5] = [
    (Algorithm::Reno, Digest(0xb30b_2736_b9b9_0984), Digest(0x0b7b_3458_27dd_f0bf)),
    (Algorithm::Cubic, Digest(0xc103_5268_5b29_dc7a), Digest(0xe76f_9912_473d_a78e)),
    (Algorithm::Bbr1, Digest(0xc9b9_3c6b_def4_ab0c), Digest(0x6a07_0f32_54ad_4492)),
    (Algorithm::Bbr2, Digest(0xc0fb_0c1e_861d_e482), Digest(0x2025_4ce7_a25e_6e04)),
    (Algorithm::Bbr3, Digest(0xe7bb_8430_a8be_baaf), Digest(0x5a4a_2746_3ac1_b544)),
];

/// 8000 random bytes for the `n`-th algorithm.
fn script(n: u8) -> Vec<u8> {
    let mut rng = Rng::new(1, 0);
    let random = (0..1_000).flat_map(|_| rng.next_u64().to_le_bytes());
    [n].into_iter().chain(random).collect()
}

#[test]
fn decisions_are_the_same_on_every_machine() {
    let digests = Algorithm::ALL
        .into_iter()
        .zip(0..)
        .map(|(algorithm, n)| (algorithm, truthful::play(&script(n)), adversary::play(&script(n))));
    let digests: Vec<_> = digests.collect();
    assert_eq!(digests, DIGESTS, "now: {digests:x?}");
}
