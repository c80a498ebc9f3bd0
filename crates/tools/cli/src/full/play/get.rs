//! `uncork play get`: downloads, measured.

use uncork_play::{Connections, Fetched, GetSpec, Version};
use uncork_report::play::{GetDocument, TransferFigures};

use super::args::GetArgs;
use super::measure::measure;
use crate::failure::Failure;
use crate::full::command_line::command_line;
use crate::values::{Format, shown};
use crate::{color, print};

pub(super) fn run(args: &GetArgs) -> Result<(), Failure> {
    let spec = specification(args)?;
    let work = |stop: &_, tally: &_| uncork_play::get(&spec, stop, tally);
    let records = |fetched: &Fetched| [fetched.record()];
    let what = (spec.count(), "downloads");
    let (fetched, is_stopped) = measure(&args.shown, what, work, records)?;
    let document = Fetched::document(&fetched, command_line());
    let text = match args.shown.format {
        Format::Human => document.text(color::style(args.shown.color)),
        Format::Json => document.to_json(),
        Format::Csv => document.csv(),
    };
    print::formatted(args.shown.format, &text)?;
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
