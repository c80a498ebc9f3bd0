//! `uncork play`: downloads and listeners over real sockets.

mod args;
mod audio;
mod get;
mod measure;
mod watch;

pub(crate) use args::PlayArgs;
use args::PlayCommand;

use crate::failure::Failure;
use crate::open_files;

pub(crate) fn play(args: &PlayArgs) -> Result<(), Failure> {
    open_files::allow_all();
    match &args.command {
        PlayCommand::Get(args) => get::get(args),
        PlayCommand::Audio(args) => audio::audio(args),
    }
}
