//! JSON Schemas of documents that are written from a type.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::assert_snapshot;

/// The schema of `T` as it is written: an object has no other fields, a description no lines.
///
/// # Panics
///
/// If the schema is not an object.
pub fn schema_of<T: JsonSchema>() -> Value {
    let close = RecursiveTransform(|schema: &mut Schema| {
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    });
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(close);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Asserts that the file is this schema, with a title. `UPDATE_DOCS=1` writes it.
///
/// # Panics
///
/// If they differ, or if the file cannot be written.
#[track_caller]
pub fn assert_schema(file: &Path, title: &str, command: &str, mut schema: Value) {
    schema["title"] = title.into();
    schema["$comment"] = format!("Written by: {command}").into();
    schema.sort_all_objects();
    // Other schemas refer to this file.
    let name = file.file_name().expect("a file").to_string_lossy();
    let text = format!("{schema:#}\n").replace("\"#/$defs/", &format!("\"{name}#/$defs/"));
    assert_snapshot(file, &text);
}
