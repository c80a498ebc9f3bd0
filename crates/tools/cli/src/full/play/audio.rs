//! `uncork play audio`: listeners, and what they experience.

use uncork_apps::AudioSpec;
use uncork_play::{ListenSpec, ListenerReport};

use super::args::AudioArgs;
use super::measure::measure;
use crate::failure::Failure;
use crate::full::command_line::command_line;
use crate::values::{Format, shown};
use crate::{color, print};

/// Each listener has a connection and thus a file descriptor.
const MAX_LISTENERS: u32 = 100_000;

pub(super) fn run(args: &AudioArgs) -> Result<(), Failure> {
    let spec = specification(args)?;
    let work = |stop: &_, tally: &_| uncork_play::listen(&spec, stop, tally);
    let what = (spec.listeners, "listeners");
    let (heard, is_stopped) = measure(&args.shown, what, work, ListenerReport::records)?;
    let document = ListenerReport::document(&heard, command_line());
    let text = match args.shown.format {
        Format::Human => document.text(color::style(args.shown.color)),
        Format::Json => document.to_json(),
        Format::Csv => document.csv(),
    };
    print::formatted(args.shown.format, &text)?;
    if is_stopped {
        let (clicked, all) = (heard.len(), spec.listeners);
        return Err(Failure::Interrupted(format!("{clicked} of {all} listeners had clicked")));
    }
    let mut problems = document.listeners.iter().filter_map(|one| one.problem.as_deref());
    problems.next().map_or(Ok(()), |first| {
        let failed = document.audience.failed;
        let all = document.audience.listeners;
        Err(Failure::Missed(format!("{failed} of {all} listeners could not go on: {first}")))
    })
}

fn specification(args: &AudioArgs) -> Result<ListenSpec, Failure> {
    if args.listeners == 0 || args.listeners > MAX_LISTENERS {
        let reason = format!("expected 1 to {MAX_LISTENERS}");
        return Err(Failure::value(&shown::<AudioArgs>("listeners"), args.listeners, reason));
    }
    let spec = ListenSpec {
        targets: args.url.clone(),
        connect: args.transport.spec(),
        bitrate: args.bitrate,
        duration: args.duration,
        player: AudioSpec {
            tracks: Vec::new(),
            chunk: args.chunk.as_u64(),
            start_threshold: args.start_threshold,
            resume_threshold: args.resume_threshold,
            low_water: args.low_water,
        },
        listeners: args.listeners as usize,
        spread: args.spread,
        seed: args.seed,
        limit: args.limit,
        cmcd: args.cmcd.mode(),
        enough: args.enough,
    };
    spec.check().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(spec)
}
