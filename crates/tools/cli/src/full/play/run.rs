//! The commands of `uncork play`.

use super::args::{PlayArgs, PlayCommand};
use super::{audio, get};
use crate::failure::Failure;
use crate::full::open_files;

pub(crate) fn run(args: &PlayArgs) -> Result<(), Failure> {
    open_files::allow_all();
    match &args.command {
        PlayCommand::Get(args) => get::run(args),
        PlayCommand::Audio(args) => audio::run(args),
    }
}
