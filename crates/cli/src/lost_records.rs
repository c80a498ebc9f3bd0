//! Records that were not written.

/// What to say of records that were lost; `None` if there are none.
pub(crate) fn told(written: u64, lost: u64) -> Option<String> {
    let all = written + lost;
    (lost > 0).then(|| format!("{lost} of {all} records were lost: the disk was full or too slow"))
}
