//! `uncork lab`: scenarios, run and merged.

mod agree;
mod args;
mod catalogue;
mod directory;
mod dry_run;
mod finish;
mod from_log;
mod merge;
mod place;
mod remote;
mod run;
mod source;
mod work;
mod writer;

pub(crate) use args::LabArgs;
pub(crate) use finish::warn_of_doubts;
pub(crate) use run::run;
