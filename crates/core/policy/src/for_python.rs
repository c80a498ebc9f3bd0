//! Writes the limits and names of policies that the Python package needs, too.

use std::path::Path;

use serde_json::json;
use uncork_cc::Algorithm;
use uncork_config::Key;

use crate::read::experiment::WEIGHTS;
use crate::read::keys::SETTINGS;
use crate::{BUCKETS, SLOTS};

#[test]
fn limits_and_names_of_the_python_package_are_current() {
    let mut shared = json!({
        "written_by": "UPDATE_DOCS=1 cargo test -p uncork-policy --lib for_python",
        "slots": SLOTS,
        "buckets": BUCKETS,
        "max_weight": WEIGHTS.end(),
        "settings": Key::names(SETTINGS).collect::<Vec<_>>(),
        // Their values are not texts.
        "flags": ["resume"],
        "quic": Algorithm::ALL.map(Algorithm::name),
    });
    shared.sort_all_objects();
    let file = "python/uncork/src/uncork/measure/policy.json";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    uncork_testkit::assert_snapshot(&file, &format!("{shared:#}\n"));
}
