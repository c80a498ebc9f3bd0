//! Files in a directory as HTTP responses, whatever version of HTTP carries them.

mod body;
mod conditional;
mod encoding;
mod file;
mod open_files;
mod options;
mod pooled_buffer;
mod range;
mod representation;
mod respond;
mod root;
mod target;

pub use body::SiteBody;
pub use options::SiteOptions;
pub use respond::{Answer, Site};
pub(crate) use respond::{malformed, unwanted};
