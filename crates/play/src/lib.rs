//! What uses a transfer: the sizes and times of what is asked for. Time and randomness are arguments.
#![forbid(unsafe_code)]

mod arrivals;
mod error;
mod exponential;
mod sizes;
mod sizes_builtin;
mod table;

pub use arrivals::{Arrival, ArrivalSpec, ArrivalTrace, Arrivals};
pub use error::SpecError;
pub use exponential::exponential;
pub use sizes::ObjectSizes;
pub use sizes_builtin::ObjectSizesError;
pub use table::TableError;
