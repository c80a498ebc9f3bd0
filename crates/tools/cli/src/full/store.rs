//! The store that an argument names.

use uncork_store::{Store, StoreError};

use crate::failure::Failure;

/// Opens the store at an address of the command line.
pub(crate) fn open(address: &str) -> Result<Box<dyn Store>, Failure> {
    match uncork_store::open(address) {
        Ok(store) => Ok(store),
        Err(StoreError::Address(reason)) => {
            Err(Failure::value("<STORE>", uncork_store::shown(address), reason))
        }
        Err(error) => Err(failure(&error)),
    }
}

/// A store that cannot be read or written, with what to do about it.
pub(crate) fn failure(error: &StoreError) -> Failure {
    let help = match error {
        StoreError::NoDirectory(directory) => {
            format!("\nhelp: make or mount the directory of the store: mkdir {directory}")
        }
        _ => String::new(),
    };
    Failure::Environment(format!("{error}{help}"))
}
