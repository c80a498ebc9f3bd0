//! Writes what follows from types and columns: the schema of a record, the tables of `docs/reference/results.md`, and
//! the columns of the Python package. A field's doc comment is its description everywhere.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uncork_testkit::{assert_generated, assert_schema_is, assert_snapshot, schema_of};

use super::service::{choice_columns, optional_columns, service_columns};
use super::start::start_columns;
use super::write::{Cells, Column};
use super::{flows, objects, series};
use crate::record::{FlowRecord, LARGE_BYTES, LabRecord, RequestRecord};
use crate::series::SeriesPoint;

const COMMAND: &str = "UPDATE_DOCS=1 cargo test -p uncork-flow --lib reference";

fn repository(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file)
}

fn record_schema() -> Value {
    let mut schema = schema_of::<FlowRecord>();
    // The fields of a lab engine are there together, some of them null, or not at all.
    let lab = schema_of::<LabRecord>();
    let lab = lab["properties"].as_object().unwrap();
    let others =
        |name: &String| -> Value { lab.keys().filter(|it| *it != name).cloned().collect() };
    schema["dependentRequired"] = lab.keys().map(|name| (name.clone(), others(name))).collect();
    schema["properties"].as_object_mut().unwrap().extend(lab.clone());
    schema
}

#[test]
fn schema_is_current() {
    let title = "A flow record: a line of the records of `uncork serve`, `uncork play` and `uncork host watch`";
    assert_schema_is(record_schema(), env!("CARGO_PKG_NAME"), "flow-record", title);
}

/// A column as other programs need to know it.
struct Described {
    name: &'static str,
    kind: &'static str,
    is_nullable: bool,
    /// The place in a record's JSON.
    json: String,
    about: String,
}

fn described<R>(columns: &[Column<R>], schema: &Value) -> Vec<Described> {
    let described = columns.iter().map(|Column { name, cells }| {
        let (kind, is_nullable) = match cells {
            Cells::Text(_) => ("text", false),
            Cells::MaybeText(_) => ("text", true),
            Cells::Count(_) => ("count", false),
            Cells::MaybeCount(_) => ("count", true),
            Cells::MaybeNumber(_) => ("number", true),
        };
        let json = place(name);
        Described { name, kind, is_nullable, about: about(schema, &json), json }
    });
    described.collect()
}

/// The place in the record's JSON of the column `name`.
fn place(name: &str) -> String {
    if let Some(field) = name.strip_prefix("service_ecn_") {
        return format!("service.ecn_evidence.{field}");
    }
    match name.split_once('_') {
        _ if name == "start_ns" => name.to_owned(),
        Some((part @ ("playback" | "service" | "choice" | "start"), field)) => {
            format!("{part}.{field}")
        }
        Some(("arm", field)) => format!("choice.arm.{field}"),
        Some((part @ ("rtt" | "queue"), "min_ms" | "p50_ms" | "p95_ms")) => {
            format!("{part}_ms.{}", &name[part.len() + 1..part.len() + 4])
        }
        _ if name == "arm" => "choice.arm.arm".to_owned(),
        _ if name == "region" => "service.region".to_owned(),
        _ => name.to_owned(),
    }
}

/// The description of the field at `place`. That of a quantile begins with its distribution's.
fn about(schema: &Value, place: &str) -> String {
    let (mut found, mut texts) = (schema, Vec::<&str>::new());
    for name in place.split('.') {
        found = &resolved(schema, found)["properties"][name];
        let text = found["description"].as_str().unwrap_or_else(|| panic!("no {place}"));
        texts.push(text);
    }
    if place.contains("_ms.") {
        texts.join(" ")
    } else {
        texts.pop().unwrap_or_default().to_owned()
    }
}

/// The schema of an object that may be null, or is defined elsewhere.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let schema = schema.get("anyOf").map_or(schema, |any| &any[0]);
    let place = schema.get("$ref").and_then(Value::as_str);
    place.map_or(schema, |place| root.pointer(&place[1..]).unwrap())
}

fn assert_table(section: &str, columns: &[Described]) {
    let row = |column: &Described| {
        let Described { name, kind, is_nullable, about, .. } = column;
        let null = if *is_nullable { " or null" } else { "" };
        let anchor = section.replace('.', "");
        format!("| `{name}` <a id=\"{anchor}-{name}\"></a> | {kind}{null} | {about} |\n")
    };
    let rows: String = columns.iter().map(row).collect();
    let table = format!("| column | type | meaning |\n|---|---|---|\n{rows}");
    assert_generated(&repository("docs/reference/results.md"), section, COMMAND, &table);
}

#[test]
fn tables_of_columns_are_current() {
    let record = record_schema();
    assert_table("flows.parquet", &described(&flows::columns(|_| true), &record));
    // The run and the class of a row are those of its flow.
    let with_run = |mut row: Value| {
        for name in ["group", "cc", "seed"] {
            row["properties"][name] = record["properties"][name].clone();
        }
        row
    };
    let object = with_run(schema_of::<RequestRecord>());
    assert_table("objects.parquet", &described(&objects::columns(), &object));
    let point = with_run(schema_of::<SeriesPoint>());
    assert_table("series.parquet", &described(&series::columns(), &point));
}

fn unit(name: &str) -> &'static str {
    let endings = [("_ns", "ns"), ("_ms", "ms"), ("_bytes", "bytes"), ("_bps", "bit/s")];
    let found = endings.into_iter().find(|(ending, _)| name.ends_with(ending));
    found.map_or(if name.starts_with("bytes_") { "bytes" } else { "" }, |(_, unit)| unit)
}

#[test]
fn columns_and_the_size_of_large_objects_of_the_python_package_are_current() {
    let schema = record_schema();
    let parts = [
        ("core", Vec::from(flows::core_columns())),
        ("lab", flows::lab_columns().into()),
        ("playback", flows::playback_columns().into()),
        ("service", service_columns().into()),
        ("optional", optional_columns(|_| true)),
        ("choice", choice_columns().into()),
        ("start", start_columns().into()),
    ];
    let rows = parts.iter().flat_map(|(part, columns)| {
        described(columns, &schema).into_iter().map(move |it| {
            let mut row = json!({
                "part": part, "name": it.name, "kind": it.kind, "unit": unit(it.name), "json": it.json,
                "about": it.about,
            });
            row.sort_all_objects();
            row.to_string()
        })
    });
    let rows = rows.collect::<Vec<_>>().join(",\n");
    let text = format!(
        "{{\"written_by\": \"{COMMAND}\", \"large_bytes\": {LARGE_BYTES}, \"columns\": [\n{rows}\n]}}\n"
    );
    let file = "python/uncork/src/uncork/measure/columns.json";
    assert_snapshot(&repository(file), &text);
}
