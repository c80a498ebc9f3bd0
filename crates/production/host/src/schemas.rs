//! Writes the JSON Schemas of documents from their types.

use std::path::PathBuf;

use uncork_testkit::{assert_schema, schema_of};

use crate::Diagnosis;
use crate::change::Status;

const COMMAND: &str = "UPDATE_DOCS=1 cargo test -p uncork-host --lib schemas";

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../../docs/schemas", name].iter().collect()
}

#[test]
fn schema_of_the_doctor_is_current() {
    let title = "`uncork host doctor --format json`";
    assert_schema(&file("host-doctor-1.json"), title, COMMAND, schema_of::<Diagnosis>());
}

#[test]
fn schema_of_the_status_is_current() {
    let title = "`uncork host status --format json`";
    assert_schema(&file("host-status-1.json"), title, COMMAND, schema_of::<Status>());
}
