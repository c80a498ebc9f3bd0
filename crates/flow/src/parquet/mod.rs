//! Records and series as Parquet tables. Equal rows give equal bytes: nothing in a file says when,
//! where or by what library it was written.

mod flows;
mod read;
mod series;
mod write;

pub use flows::{read_flows, write_flows};
pub use series::{read_series, write_series};
