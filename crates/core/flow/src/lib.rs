//! The flow record: the result that every engine produces per transfer, and the input of all
//! tables, plots and experiments. Also the time series, file formats for both, and summary
//! statistics.
#![forbid(unsafe_code)]

mod buckets;
mod ecn;
mod error;
mod histogram;
mod json;
mod labelled;
#[cfg(not(target_family = "wasm"))]
mod parquet;
mod publish;
mod record;
#[cfg(test)]
mod sample;
pub mod serialized;
mod series;
mod service;
mod start;
mod stats;
mod transport;

#[cfg(not(target_family = "wasm"))]
pub use self::parquet::{
    read_flows, read_objects, read_series, write_flows, write_objects, write_series,
};
pub use buckets::{Buckets, RATE_EDGES, RATIO_EDGES, TIME_EDGES};
pub use ecn::{EcnEvidence, EcnUse};
pub use error::FileError;
pub use histogram::Distribution;
pub use json::{read_json_lines, write_json_lines};
pub use labelled::{Label, LabelColumn, Labelled, TableHead};
pub use publish::publish;
pub use record::{
    FlowRecord, LARGE_BYTES, LabRecord, ObjectRow, Playback, Quantiles, RequestRecord,
};
pub use series::{RunSeries, SeriesPoint, SeriesRow};
pub use service::{Arm, Choice, ClientNetwork, Scope, Service};
pub use start::{ResumeUse, StartExit, StartRecord};
pub use stats::{jain_index, mean, quantile};
pub use transport::{TransportFigures, rtt_quantiles};
