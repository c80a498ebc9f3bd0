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
const DIGESTS: [(Algorithm, Digest, Digest); 6] = [
    (Algorithm::Reno, Digest(0x03a4_b437_4125_0938), Digest(0x71aa_7113_19b8_e7c2)),
    (Algorithm::Cubic, Digest(0xe68b_1e79_9a1e_e7f4), Digest(0x43c6_ee7b_ba2d_e981)),
    (Algorithm::Bbr1, Digest(0x8683_2f20_ced9_86f2), Digest(0x2b92_12f0_5a23_f1fb)),
    (Algorithm::Bbr2, Digest(0xbaa0_3ffb_a4de_a9bd), Digest(0x9040_d1b8_4fe9_88e9)),
    (Algorithm::Bbr3, Digest(0xe774_4db2_e77d_351b), Digest(0xe2c6_bd74_3520_c443)),
    (Algorithm::Prague, Digest(0x6c2e_3750_5d07_bf50), Digest(0x766d_63d8_8551_04ef)),
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
