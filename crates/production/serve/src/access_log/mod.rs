//! A line for each response, with path and address: off unless asked for.

mod line;
mod writer;

pub(crate) use line::Line;
pub(crate) use writer::{AccessLog, AccessLogWriter};
