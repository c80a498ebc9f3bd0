//! Stable hashes: which units are folded first, which are in a sample, and the name of a file's content.
//!
//! SipHash-2-4 with a key of zeros, as for fingerprints of policies. A unit's own hash must not decide: its bits are its arm
//! and bucket, and a sample by them would have other arms than all units have.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use siphasher::sip::SipHasher24;
use uncork_flow::FlowRecord;

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&[0; 16]);
    hasher.write(bytes);
    hasher.finish()
}

/// The hash of a file's content, for its name.
pub fn content_hash(bytes: &[u8]) -> u64 {
    hash(bytes)
}

pub(crate) fn of_unit(unit: u64) -> u64 {
    hash(&unit.to_le_bytes())
}

pub(crate) fn of_client(client: Option<&str>) -> u64 {
    hash(client.unwrap_or_default().as_bytes())
}

pub(crate) fn of_asn(asn: Option<u32>) -> u64 {
    asn.map_or(0, |asn| hash(&asn.to_le_bytes()))
}

/// The hash by which a record is in a sample: that of its unit, else of its client network.
pub fn sample_hash(record: &FlowRecord) -> u64 {
    let arm = record.choice.as_ref().and_then(|choice| choice.arm.as_ref());
    let client = || record.service.as_ref().and_then(|service| service.client.as_deref());
    arm.map_or_else(|| hash(client().unwrap_or_default().as_bytes()), |arm| of_unit(arm.unit))
}

/// A share of all units: all records of a unit are in the sample, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// In parts per million.
    ppm: u32,
}

impl Sample {
    /// Every unit.
    pub const ALL: Self = Self { ppm: 1_000_000 };

    /// Whether the record is part of the sample.
    pub fn has(self, record: &FlowRecord) -> bool {
        // The highest 64 bits of a product of 128: a share of the range of the hash.
        let place = (u128::from(sample_hash(record)) * 1_000_000) >> 64;
        place < u128::from(self.ppm)
    }
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let ppm = percent.map(|percent| (percent * 1e4).round());
        let ppm = ppm.filter(|ppm| (0.0..=1e6).contains(ppm));
        ppm.map(|ppm| Self { ppm: ppm as u32 })
            .ok_or_else(|| "expected a share of all units from 0% to 100%, such as 1%".to_owned())
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.ppm) / 1e4)
    }
}
