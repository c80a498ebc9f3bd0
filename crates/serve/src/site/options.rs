//! How a directory is served.

use http::HeaderValue;

/// What an owner chooses about a directory. By default: files only, no headers but the needed ones.
#[derive(Clone, Debug, Default)]
pub struct SiteOptions {
    /// A directory answers with its `index.html`.
    pub index: bool,
    /// `file.br`, `file.zst` and `file.gz` are sent in place of `file` to who takes them.
    pub precompressed: bool,
    /// Pages of this origin, or `*`, may read what is served.
    pub cors: Option<HeaderValue>,
    /// `Cache-Control` of all files.
    pub cache_control: Option<HeaderValue>,
}
