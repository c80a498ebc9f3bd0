//! `uncork kernel`: the library's controllers in this machine's kernel.

mod args;
mod run;

pub(crate) use args::KernelArgs;
pub(crate) use run::run;
