//! Client origins from databases in MaxMind's format.

use std::net::IpAddr;

use maxminddb::{LookupResult, PathElement, Reader, WithinOptions, path};
use thiserror::Error;

use crate::Country;
use crate::prefix::Prefix;

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

    /// Calls `each` with the index of each database, and its networks and what it says of them.
    pub(crate) fn each(&self, mut each: impl FnMut(u8, Prefix, Origin)) {
        for (index, reader) in self.0.iter().enumerate() {
            // Aliases too, such as 6to4: a look-up follows them.
            let options = WithinOptions::default().include_aliased_networks();
            let Ok(networks) = reader.networks(options) else { continue };
            for found in networks.flatten() {
                let Ok(network) = found.network() else { continue };
                let bits = match network.ip() {
                    IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
                        network.prefix().max(96) - 96
                    }
                    _ => network.prefix(),
                };
                each(index as u8, Prefix::of(network.ip(), bits), origin(&found));
            }
        }
    }

    /// The origin of `address`. A damaged entry counts as missing.
    pub fn of(&self, address: IpAddr) -> Origin {
        let address = address.to_canonical();
        let mut origin = Origin::default();
        for reader in &self.0 {
            let Ok(found) = reader.lookup(address) else { continue };
            let Origin { asn, country } = self::origin(&found);
            origin.asn = origin.asn.or(asn);
            origin.country = origin.country.or(country);
        }
        origin
    }
}

/// What one database says.
fn origin(found: &LookupResult<'_, Vec<u8>>) -> Origin {
    let asn: Result<Option<u32>, _> =
        found.decode_path(&[PathElement::Key("autonomous_system_number")]);
    let code: Result<Option<&str>, _> = found.decode_path(&path!["country", "iso_code"]);
    Origin {
        asn: asn.ok().flatten(),
        country: code.ok().flatten().and_then(|code| code.parse().ok()),
    }
}
