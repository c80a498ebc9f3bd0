//! Client origins from databases in MaxMind's format.

use std::net::IpAddr;

use maxminddb::{PathElement, Reader, path};
use thiserror::Error;

use crate::Country;

/// The origin of a client, as far as databases know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The number of its autonomous system.
    pub asn: Option<u32>,
    /// Its country.
    pub country: Option<Country>,
}

/// Databases in MaxMind's format (MMDB 2.0) with the fields of MaxMind and DB-IP:
/// `autonomous_system_number`, and `country` with `iso_code`. Databases complement each other, the first
/// one first.
#[derive(Debug, Default)]
pub struct Origins(Vec<Reader<Vec<u8>>>);

/// Why a file is not a database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a database in MaxMind's format: {0}; use an .mmdb file")]
pub struct OriginError(String);

impl Origins {
    /// No database.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a database from the bytes of its file.
    ///
    /// # Errors
    ///
    /// If the bytes are not a database.
    pub fn add(&mut self, bytes: Vec<u8>) -> Result<(), OriginError> {
        let reader = Reader::from_source(bytes).map_err(|error| OriginError(error.to_string()))?;
        self.0.push(reader);
        Ok(())
    }

    /// The origin of `address`. A damaged entry counts as missing.
    pub fn of(&self, address: IpAddr) -> Origin {
        let address = address.to_canonical();
        let mut origin = Origin::default();
        for reader in &self.0 {
            let Ok(found) = reader.lookup(address) else { continue };
            if origin.asn.is_none() {
                let asn: Result<Option<u32>, _> =
                    found.decode_path(&[PathElement::Key("autonomous_system_number")]);
                origin.asn = asn.ok().flatten();
            }
            if origin.country.is_none() {
                let code: Result<Option<&str>, _> =
                    found.decode_path(&path!["country", "iso_code"]);
                origin.country = code.ok().flatten().and_then(|code| code.parse().ok());
            }
        }
        origin
    }
}
