//! Records that were not written.

/// The warning about lost records; `None` without losses.
pub(crate) fn warning(written: u64, lost: u64) -> Option<String> {
    let all = written + lost;
    (lost > 0).then(|| format!("{lost} of {all} records were lost: the disk was full or too slow"))
}
