//! Compares the JSON Schemas of documents with their types.

use uncork_testkit::assert_schema;

use crate::Diagnosis;
use crate::change::Status;

#[test]
fn schemas_are_current() {
    assert_schema!(Diagnosis, "host-doctor-1", "`uncork host doctor --format json`");
    assert_schema!(Status, "host-status-1", "`uncork host status --format json`");
}
