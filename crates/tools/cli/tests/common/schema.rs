//! Checks that the JSON Schemas of `docs/schemas` describe documents exactly.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::{Value, json};

pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/schemas"))
}

pub fn read(name: &str) -> Value {
    let text = fs::read_to_string(directory().join(format!("{name}.json")));
    serde_json::from_str(&text.expect(name)).expect(name)
}

fn validator(name: &str) -> Validator {
    let mut options = jsonschema::options();
    for part in ["lab-2", "flow-record", "host-doctor-1", "host-status-1", "kernel-1", "steer-1"] {
        options.with_document(format!("json-schema:///{part}.json"), read(part));
    }
    options.build(&read(name)).expect(name)
}

/// Asserts that each document is valid under the schema `name`, and becomes invalid when a field or
/// a value of another type is added anywhere, or a schema name is changed.
pub fn assert_describes<'a>(name: &str, documents: impl IntoIterator<Item = &'a Value>) {
    let validator = validator(name);
    for document in documents {
        if let Err(mut errors) = validator.validate(document) {
            let error = errors.next().unwrap();
            panic!("{name}: {error} at {}", error.instance_path);
        }
        let mut places = Vec::new();
        collect(document, "", &mut places);
        for place in places {
            let mut altered = document.clone();
            match altered.pointer_mut(&place).unwrap() {
                Value::Object(fields) => _ = fields.insert("undocumented".to_owned(), json!([[]])),
                value => *value = json!({"undocumented": true}),
            }
            assert!(!validator.is_valid(&altered), "{name} allows anything at {place:?}");
        }
    }
}

/// Pointers to objects and scalars; for long arrays only within the first elements.
fn collect(value: &Value, place: &str, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            places.push(place.to_owned());
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(field, &format!("{place}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (nth, item) in items.iter().take(2).enumerate() {
                collect(item, &format!("{place}/{nth}"), places);
            }
        }
        _ => places.push(place.to_owned()),
    }
}

/// Lines of JSON.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}
