//! The admin page, which shows the server's activity live. It loads nothing but `status.json`, and
//! runs only its own script.

use std::sync::LazyLock;

use uncork_page as page;

/// SHA-256 of the page's style and of its script, in base64. When they change, a browser test
/// reports the new values.
pub(super) const SECURITY_POLICY: &str = "default-src 'none'; \
    style-src 'sha256-DprkY5sozO6bjrq0XztY0pyG6cfK6QpTy2OPRC0PhVQ='; \
    script-src 'sha256-XfgMef9NEE7oSwKWjhsy1VU1TQS9UinhyPqO3c3oguQ='; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page.
pub(super) static HTML: LazyLock<String> = LazyLock::new(|| {
    include_str!("page.html")
        .replace("/*style*/", &[page::STYLE, page::UPLOT_STYLE, include_str!("page.css")].concat())
        .replace("/*script*/", &[page::UPLOT_SCRIPT, include_str!("page.js")].concat())
});
