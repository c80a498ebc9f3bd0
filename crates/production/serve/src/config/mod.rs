//! The tables of the configuration file. The other keys are the flags of the command line.

mod host;
mod keys;
mod site_tables;

pub use self::host::read_hosts;
pub use self::site_tables::read_site;

/// The tables that a file may have.
pub const TABLES: [&str; 4] = ["headers", "error_pages", "redirect", "host"];
