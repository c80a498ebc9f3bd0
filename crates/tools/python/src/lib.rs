//! `uncork._native`: the laboratory in the process of a Python program.
//!
//! The package `uncork` has the documented face. Here a call takes texts, runs without Python's lock, and returns documents
//! and tables.
#![forbid(unsafe_code)]

mod agent;
mod cells;
mod comparison;
mod episode;
mod episodes;
mod error;
mod lab_run;
mod link;
mod merge;
mod race;
mod scenario;
mod steered;
mod table;
mod work;

#[pyo3::pymodule]
#[pyo3(name = "_native")]
mod uncork_native {
    #[pymodule_export]
    use super::comparison::compare;
    #[pymodule_export]
    use super::episodes::Episodes;
    #[pymodule_export]
    use super::lab_run::LabRun;
    #[pymodule_export]
    use super::merge::{merge_rollups, rollup_damage};
    #[pymodule_export]
    use super::race::{Ack, Race, race};
    #[pymodule_export]
    use super::scenario::run;
    #[pymodule_export]
    use super::table::Table;
}
