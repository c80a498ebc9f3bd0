//! `uncork play get`: downloads, measured.

use uncork_play::{Connections, Fetched, GetSpec, Version};
use uncork_report::play::{GetDocument, TransferFigures, get_csv, get_table};
use uncork_units::TimeDelta;

use super::args::GetArgs;
use super::measure::{explained, measure};
use crate::failure::Failure;
use crate::values::{Format, command_line, shown};
use crate::{color, stdout};

pub(super) fn get(args: &GetArgs) -> Result<(), Failure> {
    let spec = specification(args)?;
    let work = |stop: &_, tally: &_| uncork_play::get(&spec, stop, tally);
    let records = |fetched: &Fetched| [fetched.record()];
    let what = (spec.count(), "downloads");
    let (fetched, is_stopped) = measure(&args.shown, what, work, records)?;
    let document = document(&fetched);
    let text = match args.shown.format {
        Format::Human => get_table(&document, color::style(args.shown.color)),
        Format::Json => document.to_json(),
        Format::Csv => get_csv(&document),
    };
    match args.shown.format {
        Format::Human => stdout::styled(&text)?,
        Format::Json | Format::Csv => stdout::data(text.as_bytes())?,
    }
    if is_stopped {
        let (begun, all) = (fetched.len(), spec.count());
        return Err(Failure::Interrupted(format!("{begun} of {all} downloads had begun")));
    }
    verdict(&document)
}

/// Fails if a download failed.
fn verdict(document: &GetDocument) -> Result<(), Failure> {
    let failed: Vec<&TransferFigures> = document.failed().collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let problem = first.problem.as_deref().unwrap_or_default();
    let first = format!("{}: {problem}", first.url);
    Err(Failure::Missed(match failed.len() {
        1 => first,
        count => format!("{first}; and {} more downloads failed", count - 1),
    }))
}

fn specification(args: &GetArgs) -> Result<GetSpec, Failure> {
    let spec = GetSpec {
        targets: args.url.clone(),
        connect: args.transport.spec(),
        range: args.range,
        parallel: args.parallel as usize,
        repeat: args.repeat as usize,
        gap: args.gap,
        connections: args.connections.connections(),
        digest: args.sha256,
        file: args.output.clone(),
    };
    let refuse = |id: &str, value: &str, reason: &str| {
        Err(Failure::value(&shown::<GetArgs>(id), value, reason))
    };
    for (id, count) in [("parallel", args.parallel), ("repeat", args.repeat)] {
        if count == 0 || count > 1_000_000 {
            return refuse(id, &count.to_string(), "expected 1 to 1000000");
        }
    }
    if let Some(file) = args.output.as_deref().filter(|_| spec.count() > 1) {
        let reason = format!("{} downloads cannot be written to one file", spec.count());
        return refuse("output", &file.display().to_string(), &reason);
    }
    if spec.connections == Connections::One {
        if spec.connect.version.is_none_or(|version| version == Version::Http1) {
            let reason = "HTTP/1.1 carries one download at a time: add '--http 2' or '--http 3'";
            return refuse("connections", "one", reason);
        }
        if spec.targets.iter().any(|target| !target.has_origin_of(&spec.targets[0])) {
            return refuse("connections", "one", "the URLs are of different servers");
        }
    }
    Ok(spec)
}

fn document(fetched: &[Fetched]) -> GetDocument {
    GetDocument {
        schema: GetDocument::SCHEMA.to_owned(),
        command: command_line(),
        transfers: fetched.iter().map(figures).collect(),
    }
}

fn figures(fetched: &Fetched) -> TransferFigures {
    let setup = fetched.setup;
    TransferFigures {
        url: fetched.target.to_string(),
        http: fetched.version.map(|version| version.number().to_owned()),
        status: fetched.status,
        cc: fetched.cc.clone(),
        bytes: fetched.received,
        size_bytes: fetched.size,
        start_s: fetched.start.as_secs_f64(),
        resolve_ms: setup.map(|setup| setup.resolve.as_millis_f64()),
        connect_ms: setup.map(|setup| setup.connect.as_millis_f64()),
        tls_ms: setup.and_then(|setup| setup.tls).map(TimeDelta::as_millis_f64),
        first_byte_ms: fetched.first_byte.map(TimeDelta::as_millis_f64),
        time_s: fetched.took.as_secs_f64(),
        goodput_bps: fetched.goodput_bps(),
        sha256: fetched.sha256.clone(),
        problem: fetched.problem.as_ref().map(explained),
    }
}
