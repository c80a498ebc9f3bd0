//! The columns of a connection's start.

use parquet::record::Field;

use super::read::{Row, U32};
use super::write::Cells::{MaybeCount, MaybeText};
use super::write::{Column, column};
use crate::error::FileError;
use crate::record::FlowRecord;
use crate::start::{ResumeUse, StartExit, StartRecord};

pub(super) fn start_columns<'a>() -> [Column<&'a FlowRecord>; 12] {
    [
        column("start_window_bytes", MaybeCount(|it| of(it, |it| it.window_bytes))),
        column("start_paced", MaybeCount(|it| of(it, |it| it.paced).map(u64::from))),
        column("start_exit", MaybeText(|it| of(it, |it| it.exit).map(StartExit::name))),
        column("start_exit_window_bytes", MaybeCount(|it| of(it, |it| it.exit_window_bytes))),
        column("start_exit_in_flight_bytes", MaybeCount(|it| of(it, |it| it.exit_in_flight_bytes))),
        column("start_sent_bytes", MaybeCount(|it| of(it, |it| it.sent_bytes))),
        column("start_lost_bytes", MaybeCount(|it| of(it, |it| it.lost_bytes))),
        column("start_early_sent_bytes", MaybeCount(|it| of(it, |it| it.early_sent_bytes))),
        column("start_early_resent_bytes", MaybeCount(|it| of(it, |it| it.early_resent_bytes))),
        column(
            "start_rounds_to_100kb",
            MaybeCount(|it| of(it, |it| it.rounds_to_100kb).map(u64::from)),
        ),
        column("start_resume", MaybeText(|it| of(it, |it| it.resume).map(ResumeUse::name))),
        column("start_resume_age_ns", MaybeCount(|it| of(it, |it| it.resume_age_ns))),
    ]
}

fn of<T>(record: &FlowRecord, field: fn(&StartRecord) -> Option<T>) -> Option<T> {
    record.start.as_deref().and_then(field)
}

/// `None` if nothing is known.
pub(super) fn start(row: &mut Row) -> Result<Option<StartRecord>, FileError> {
    let start = StartRecord {
        window_bytes: row.count_if_any("start_window_bytes")?,
        paced: row.count_if_any("start_paced")?.map(|paced| paced != 0),
        exit: named(row, "start_exit", StartExit::named, "loss, mark, timeout, delay or plateau")?,
        exit_window_bytes: row.count_if_any("start_exit_window_bytes")?,
        exit_in_flight_bytes: row.count_if_any("start_exit_in_flight_bytes")?,
        sent_bytes: row.count_if_any("start_sent_bytes")?,
        lost_bytes: row.count_if_any("start_lost_bytes")?,
        early_sent_bytes: row.count_if_any("start_early_sent_bytes")?,
        early_resent_bytes: row.count_if_any("start_early_resent_bytes")?,
        rounds_to_100kb: row.narrow("start_rounds_to_100kb", U32)?,
        resume: named(row, "start_resume", ResumeUse::named, "unused, used or retreated")?,
        resume_age_ns: row.count_if_any("start_resume_age_ns")?,
    };
    Ok((start != StartRecord::default()).then_some(start))
}

fn named<T>(
    row: &mut Row,
    column: &'static str,
    named: fn(&str) -> Option<T>,
    expected: &'static str,
) -> Result<Option<T>, FileError> {
    let Some(name) = row.text_if_any(column)?.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let unknown = || row.unexpected(column, expected, &Field::Str(name.to_string()));
    named(&name).map(Some).ok_or_else(unknown)
}
