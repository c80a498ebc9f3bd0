//! `[headers]`, `[error_pages]` and `[[redirect]]`, of the server and of its hosts.

use http::{HeaderValue, StatusCode};
use uncork_config::{ConfigError, Entry, Node, Result, Section, Value, wrong_type};

use super::keys;
use crate::site::{
    OwnHeader, OwnHeaderError, PAGED_STATUSES, Redirect, RedirectError, SiteOptions,
};

/// Adds what the tables of the file say of the server's directory to `options`.
///
/// # Errors
///
/// A table that is wrong, with its place.
pub fn read_site(file: &Node, options: &mut SiteOptions) -> Result<()> {
    site_tables(|key| file.get(key), options)
}

/// The same for the tables that `get` finds.
pub(super) fn site_tables<'a>(
    get: impl Fn(&str) -> Option<&'a Node>,
    options: &mut SiteOptions,
) -> Result<()> {
    if let Some(headers) = get("headers") {
        options.headers = own_headers(headers)?;
    }
    if let Some(pages) = get("error_pages") {
        options.error_pages = error_pages(pages)?;
    }
    if let Some(list) = get("redirect") {
        options.redirects = redirects(list)?;
    }
    Ok(())
}

pub(super) fn header_value(node: &Node) -> Result<HeaderValue> {
    HeaderValue::try_from(node.text()?)
        .map_err(|_| ConfigError::worded(&node.place, OwnHeaderError::Value))
}

fn table(node: &Node) -> Result<&[Entry]> {
    match &node.value {
        Value::Table(entries) => Ok(entries),
        _ => Err(wrong_type(node, "a table")),
    }
}

fn own_headers(node: &Node) -> Result<Vec<OwnHeader>> {
    let header = |entry: &Entry| {
        OwnHeader::new(&entry.name, entry.node.text()?).map_err(|error| {
            let place =
                if error == OwnHeaderError::Value { &entry.node.place } else { &entry.place };
            ConfigError::worded(place, error)
        })
    };
    table(node)?.iter().map(header).collect()
}

fn error_pages(node: &Node) -> Result<Vec<(StatusCode, String)>> {
    let page = |entry: &Entry| {
        let status = entry.name.parse().ok().filter(|status| PAGED_STATUSES.contains(status));
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.ok_or_else(|| {
            let all = PAGED_STATUSES.map(|status| status.to_string()).join(", ");
            ConfigError::new(&entry.place, format!("`{}` has no error page", entry.name))
                .help(format!("write one of {all}"))
        })?;
        let path = entry.node.text()?;
        if !path.starts_with('/') || path.ends_with('/') {
            return Err(ConfigError::new(&entry.node.place, "not the path of a file")
                .help("write a path below the root, such as \"/404.html\""));
        }
        Ok((status, path.to_owned()))
    };
    table(node)?.iter().map(page).collect()
}

fn redirects(node: &Node) -> Result<Vec<Redirect>> {
    let Ok(tables) = node.list() else {
        return Err(wrong_type(node, "a list of tables")
            .help("write [[redirect]] with two brackets on each side"));
    };
    tables.iter().map(redirect).collect()
}

fn redirect(node: &Node) -> Result<Redirect> {
    let redirect = Section::new("[[redirect]]", &node.place, node, keys::REDIRECT)?;
    let (from, to) =
        (redirect.need("from", "\"/old/*\"")?.text()?, redirect.need("to", "\"/new/*\"")?.text()?);
    let status = redirect.read("status", |node| node.whole(300..=399))?.unwrap_or(308);
    Redirect::new(from, to, status as u16).map_err(|error| {
        let key = match error {
            RedirectError::From => "from",
            RedirectError::To | RedirectError::NoRest => "to",
            RedirectError::Status => "status",
        };
        ConfigError::worded(redirect.value_place(key), error)
    })
}
