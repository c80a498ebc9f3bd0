//! JSON Schemas of documents that are written from a type.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::assert_snapshot;

/// The schemas that others refer to. A reference within them names the file, too: validators resolve it from the other.
const SHARED: [&str; 5] = ["flow-record", "host-status-1", "kernel-1", "lab-2", "steer-1"];
/// What limits a value. Without any of these, every value is valid.
const LIMITS: [&str; 7] = ["$ref", "anyOf", "const", "enum", "oneOf", "pattern", "type"];

/// The schema of `T` as it is written: an object has no other fields, a field that may be left out is not null, a description has
/// no lines.
///
/// # Panics
///
/// If a place allows every value: `#[schemars(extend(…))]` limits it.
pub fn schema_of<T: JsonSchema>() -> Value {
    let close = RecursiveTransform(|schema: &mut Schema| {
        let is_limited = LIMITS.iter().any(|limit| schema.get(*limit).is_some());
        assert!(is_limited || schema.as_bool() == Some(false), "allows every value: {schema:?}");
        let required = schema.get("required").cloned().unwrap_or_default();
        let is_optional =
            |name: &str| !required.as_array().is_some_and(|it| it.contains(&name.into()));
        if let Some(Value::Object(fields)) = schema.get_mut("properties") {
            let optional = fields.iter_mut().filter(|(name, _)| is_optional(name));
            optional.for_each(|(_, field)| without_null(field));
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    });
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(close);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of `T` instead of that of `Option<T>`.
fn without_null(field: &mut Value) {
    if field.pointer("/type/1").is_some_and(|it| it == "null") {
        field["type"] = field["type"][0].take();
    } else if field.pointer("/anyOf/1/type").is_some_and(|it| it == "null") {
        field["$ref"] = field["anyOf"][0]["$ref"].take();
        field.as_object_mut().map(|field| field.remove("anyOf"));
    }
}

/// Asserts that `docs/schemas/NAME.json` is the schema of a type, with a title. `UPDATE_DOCS=1` writes it.
#[macro_export]
macro_rules! assert_schema {
    ($type:ty, $name:literal, $title:expr) => {
        $crate::assert_schema_is(
            $crate::schema_of::<$type>(),
            env!("CARGO_PKG_NAME"),
            $name,
            $title,
        )
    };
}

/// See [`assert_schema!`]. `package` has the test, which has `schema` in its name.
///
/// # Panics
///
/// If they differ, or if the file cannot be written.
#[track_caller]
pub fn assert_schema_is(mut schema: Value, package: &str, name: &str, title: &str) {
    schema["title"] = title.into();
    schema["$comment"] = format!("Written by: UPDATE_DOCS=1 cargo test -p {package} schema").into();
    schema.sort_all_objects();
    let mut text = format!("{schema:#}\n");
    if SHARED.contains(&name) {
        text = text.replace("\"#/$defs/", &format!("\"{name}.json#/$defs/"));
    }
    let file = format!("{}/../../../docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    assert_snapshot(file.as_ref(), &text);
}
