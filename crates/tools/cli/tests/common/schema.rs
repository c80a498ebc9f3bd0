//! Checks that the JSON Schemas of `docs/schemas` describe documents.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::Value;

pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/schemas"))
}

pub fn read(name: &str) -> Value {
    let text = fs::read_to_string(directory().join(format!("{name}.json")));
    serde_json::from_str(&text.expect(name)).expect(name)
}

fn validator(name: &str) -> Validator {
    let mut options = jsonschema::options();
    for part in ["lab-2", "flow-record", "host-status-1", "kernel-1", "steer-1"] {
        options.with_document(format!("json-schema:///{part}.json"), read(part));
    }
    options.build(&read(name)).expect(name)
}

/// Asserts that each document is valid under the schema `name`.
pub fn assert_describes<'a>(name: &str, documents: impl IntoIterator<Item = &'a Value>) {
    let validator = validator(name);
    for document in documents {
        if let Err(mut errors) = validator.validate(document) {
            let error = errors.next().unwrap();
            panic!("{name}: {error} at {}", error.instance_path);
        }
    }
}

/// Lines of JSON.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}
