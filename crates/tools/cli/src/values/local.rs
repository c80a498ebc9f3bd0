//! Paths of files and directories on this host.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// A path of a command that does not write to object stores: an address would become a directory `s3:`.
pub(crate) fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given: OsString| {
        if given.to_string_lossy().contains("://") {
            return Err(
                "this command writes to this host only: name a path, and copy the files from there",
            );
        }
        Ok(PathBuf::from(given))
    })
}
