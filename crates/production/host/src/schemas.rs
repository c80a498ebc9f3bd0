//! Compares the JSON Schemas of documents with their types.

use uncork_testkit::assert_schema;

use crate::change::{Journal, PlanDocument, Status};
use crate::prove::ProveDocument;
use crate::{Diagnosis, HostFacts};

#[test]
fn schemas_are_current() {
    assert_schema!(Diagnosis, "host-doctor-1", "`uncork host doctor --format json`");
    assert_schema!(HostFacts, "host-facts-1", "`uncork host doctor --save-facts`");
    assert_schema!(Journal, "host-journal-1", "The journal of `uncork host apply`");
    assert_schema!(PlanDocument, "host-plan-1", "`uncork host plan --format json`");
    assert_schema!(ProveDocument, "host-prove-1", "`uncork host prove --format json`");
    assert_schema!(Status, "host-status-1", "`uncork host status --format json`");
}
