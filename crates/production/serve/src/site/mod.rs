//! Files in a directory as HTTP responses, for every version of HTTP.

mod body;
mod conditional;
mod encoding;
mod file;
mod host_pattern;
mod open_files;
mod options;
mod pooled_buffer;
mod range;
mod redirect;
mod representation;
mod respond;
mod root;
mod sites;
mod small_files;
mod target;
mod throttle;

pub use body::SiteBody;
pub(crate) use host_pattern::without_port;
pub use host_pattern::{HostPattern, HostPatternError};
pub use options::{OwnHeader, OwnHeaderError, PAGED_STATUSES, SiteOptions};
pub(crate) use redirect::https_url;
pub use redirect::{Redirect, RedirectError};
pub use respond::{Answer, Site};
pub(crate) use respond::{bad_request, malformed, moved, too_many, unwanted, with_length};
pub(crate) use sites::Sites;
pub(crate) use throttle::Throttle;
