//! The store that an argument names.

use uncork_store::{Store, StoreError};

use crate::failure::Failure;

/// Opens the store at an address of the command line.
pub(crate) fn open(address: &str) -> Result<Box<dyn Store>, Failure> {
    uncork_store::open(address).map_err(|error| match error {
        StoreError::Address(reason) => {
            Failure::value("<STORE>", uncork_store::shown(address), reason)
        }
        error => Failure::Environment(error.to_string()),
    })
}
