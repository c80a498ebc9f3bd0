//! The keys of tables of the configuration file, as its parser and its reference page have them. Other keys are flags.

use uncork_config::Key;

/// Keys of `[[host]]`.
pub(super) const HOST: &[Key] = &[
    Key::required("names", "host names; `*.example.org` matches one label below `example.org`"),
    Key::with_default("root", "the server's", "directory of its files"),
    Key::with_default("tls_cert", "the server's", "file of its certificate chain, with `tls_key`"),
    Key::with_default("tls_key", "the server's", "file of its private key"),
    Key::with_default("index", "the server's", "as `--index`"),
    Key::with_default("precompressed", "the server's", "as `--precompressed`"),
    Key::with_default("cors", "the server's", "as `--cors`"),
    Key::with_default("cache_control", "the server's", "as `--cache-control`"),
    Key::with_default("headers", "the server's", "its [headers](#headers)"),
    Key::with_default("error_pages", "the server's", "its [error pages](#error_pages)"),
    Key::with_default("redirect", "the server's", "its [redirects](#redirect)"),
];

/// Keys of `[[redirect]]`.
pub(super) const REDIRECT: &[Key] = &[
    Key::required("from", "a path, or all paths below one: `/old/*`"),
    Key::required("to", "a path or a URL; with `/*` at its end it keeps the rest of the path"),
    Key::with_default("status", "`308`", "301, 302, 303, 307 or 308"),
];

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_keys;

    use super::*;

    #[test]
    fn tables_of_keys_are_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/serve.md");
        for (section, keys) in [("host", HOST), ("redirect", REDIRECT)] {
            let rows = keys.iter().map(|key| (key.name, key.meaning, key.default));
            assert_keys(
                page.as_ref(),
                section,
                "UPDATE_DOCS=1 cargo test -p uncork-serve --lib keys",
                rows,
            );
        }
    }
}
