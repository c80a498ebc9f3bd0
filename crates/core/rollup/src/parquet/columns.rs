//! The columns, in their order.

use smol_str::SmolStr;

use crate::group::Group;
use crate::health::Contradiction;
use crate::metric::{Metric, Ratio};

/// A column of the key that is text, and where it is in a [`Group`].
pub(super) struct GroupText {
    pub(super) name: &'static str,
    pub(super) get: fn(&Group) -> Option<&SmolStr>,
    pub(super) set: fn(&mut Group, SmolStr),
}

macro_rules! text {
    ($name:literal, $field:ident) => {
        GroupText {
            name: $name,
            get: |group| group.$field.as_ref(),
            set: |group, text| group.$field = Some(text),
        }
    };
    ($name:literal, required $field:ident) => {
        GroupText {
            name: $name,
            get: |group| Some(&group.$field),
            set: |group, text| group.$field = text,
        }
    };
}

/// The name of the client's network.
pub(super) const REGION: &str = "region";

pub(super) static GROUP_TEXTS: [GroupText; 13] = [
    text!("engine", required engine),
    text!("group", required class),
    text!("cc", required cc),
    text!("service_scope", scope),
    text!("service_protocol", protocol),
    text!("service_listener", listener),
    text!("service_country", country),
    text!("region", region),
    text!("choice_policy", policy),
    text!("choice_rule", rule),
    text!("choice_cc", chosen),
    text!("arm_experiment", experiment),
    text!("arm", arm),
];

/// Columns that follow from the period.
pub(super) const HOST: &str = "rollup_host";
pub(super) const PERIOD: &str = "rollup_period_s";
pub(super) const START: &str = "service_start_unix_ns";

pub(super) const FOLD: &str = "rollup_fold";
pub(super) const CLIENT: &str = "service_client";
pub(super) const ASN: &str = "service_asn";
pub(super) const UNIT: &str = "arm_unit";
pub(super) const BUCKET: &str = "arm_bucket";
pub(super) const PROPENSITY: &str = "arm_propensity";
/// The smallest size of the row's class.
pub(super) const SIZE: &str = "size_bytes";

pub(super) const RECORDS: &str = "rollup_records";
pub(super) const BYTES: &str = "rollup_bytes";
pub(super) const TRAFFIC_RECORDS: &str = "rollup_traffic_records";
pub(super) const TRAFFIC_BYTES: &str = "rollup_traffic_bytes";
pub(super) const FIRST: &str = "rollup_first_unix_ns";
pub(super) const LAST: &str = "rollup_last_unix_ns";

/// Records that contradict themselves.
pub(super) fn contradiction(it: Contradiction) -> &'static str {
    match it {
        Contradiction::FirstByteAfterLast => "rollup_first_byte_after_last",
        Contradiction::SentAgainAboveSent => "rollup_sent_again_above_sent",
        Contradiction::MinRttAboveMedian => "rollup_min_rtt_above_median",
        Contradiction::BrokenOffAboveResponses => "rollup_broken_off_above_responses",
    }
}

/// Numerator and denominator.
pub(super) fn ratio(it: Ratio) -> [String; 2] {
    ["of", "per"].map(|part| format!("rollup_{}_{part}", it.name()))
}

/// Bins and how often each occurred.
pub(super) fn distribution(it: Metric) -> [String; 2] {
    ["bins", "counts"].map(|part| format!("rollup_{}_{part}", it.name()))
}
