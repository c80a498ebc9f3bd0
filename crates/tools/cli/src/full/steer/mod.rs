//! `uncork steer`: a policy for the connections of any server.

mod args;
mod cgroups;
mod netns;
mod record;
mod run;

pub(crate) use args::SteerArgs;
pub(crate) use run::run;
