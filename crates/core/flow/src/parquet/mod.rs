//! Records, objects and series as Parquet tables. Equal rows give equal bytes: files contain no
//! time, place or library version.

mod flows;
mod objects;
mod read;
#[cfg(test)]
mod reference;
mod series;
mod service;
mod start;
mod write;

pub use flows::{read_flows, write_flows};
pub use objects::{read_objects, write_objects};
pub use series::{read_series, write_series};
