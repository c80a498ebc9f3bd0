//! Parsing of conditions.

use uncork_config::{ConfigError, Key, Node, Place, Result, Section, Value, wrong_type};
use uncork_units::ByteCount;

use super::{keys, members, time};
use crate::Country;
use crate::condition::{Condition, Named, Test};
use crate::glob::{Glob, GlobError, GlobKind, MAX_TAIL};
use crate::prefix::{Prefix, Prefixes};

/// The conditions of a rule, in the order in which their facts become known.
pub(crate) fn conditions(section: &Section<'_>) -> Result<Vec<Condition>> {
    let mut conditions = Vec::new();
    for key in Key::names(keys::CONDITIONS) {
        let Some(node) = section.get(key) else { continue };
        let place = section.key_place(key);
        let tests = match key {
            "listener" => vec![Test::Listener(globs(node, GlobKind::Name)?)],
            "client" => vec![Test::Client(clients(node)?)],
            "asn" => vec![Test::Asn(systems(node)?)],
            "country" => vec![Test::Country(countries(node)?)],
            "time" => vec![Test::Time(time::window(place, node)?)],
            "sni" => vec![Test::Sni(hosts(node)?)],
            "host" => vec![Test::Host(hosts(node)?)],
            "path" => vec![Test::Path(paths(node)?)],
            "query" => named(key, place, node, query_name)?.into_iter().map(Test::Query).collect(),
            "header" => {
                named(key, place, node, header_name)?.into_iter().map(Test::Header).collect()
            }
            "cookie" => {
                named(key, place, node, cookie_name)?.into_iter().map(Test::Cookie).collect()
            }
            "size" => vec![size(place, node)?],
            _ => continue,
        };
        conditions.extend(
            tests
                .into_iter()
                .map(|test| Condition { written: written(key, &test, node).into(), test }),
        );
    }
    Ok(conditions)
}

/// A condition's text for explanations.
fn written(key: &str, test: &Test, node: &Node) -> String {
    match test {
        Test::Query(Named { name, .. })
        | Test::Header(Named { name, .. })
        | Test::Cookie(Named { name, .. }) => {
            let entry = node.entries().iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
            let values = entry.map_or_else(String::new, |entry| entry.node.label());
            format!("{key} {name} = {values}")
        }
        _ => format!("{key} = {}", node.label()),
    }
}

fn globs(node: &Node, kind: GlobKind) -> Result<Box<[Glob]>> {
    members(node)?.iter().map(|member| glob(member, kind)).collect()
}

fn glob(node: &Node, kind: GlobKind) -> Result<Glob> {
    let text = node.text()?;
    if text.is_empty() && kind != GlobKind::Value {
        return Err(ConfigError::new(&node.place, "an empty pattern never matches")
            .help("write * for anything, or leave it out"));
    }
    Glob::new(text, kind).map_err(|error| match error {
        GlobError::Unfinished => {
            ConfigError::new(&node.place, "a backslash must precede `*` or another backslash")
                .help(r"write '\*' for a star, '\\' for a backslash")
        }
        GlobError::TooLong => ConfigError::new(
            &node.place,
            format!("from the first star on a pattern has at most {MAX_TAIL} characters"),
        )
        .help("write a shorter one, or several in a list"),
    })
}

fn hosts(node: &Node) -> Result<Box<[Glob]>> {
    for member in members(node)? {
        let text = member.text()?;
        let wrong =
            |message: &str, help: String| Err(ConfigError::new(&member.place, message).help(help));
        let address = text.starts_with('[') && text.ends_with(']');
        if text.contains('/') {
            let bare = text.split("://").last().and_then(|text| text.split('/').next());
            return wrong("a host contains no `/`", format!("write {}", bare.unwrap_or_default()));
        }
        if text.contains(':') && !address {
            let bare = text.split(':').next().unwrap_or_default();
            return wrong("hosts are compared without their ports", format!("write {bare}"));
        }
        if !text.is_ascii() {
            let help = "write the name as it is sent, such as xn--bcher-kva.example";
            return wrong("a host's name is sent in ASCII", help.to_owned());
        }
    }
    globs(node, GlobKind::Name)
}

fn paths(node: &Node) -> Result<Box<[Glob]>> {
    for member in members(node)? {
        let text = member.text()?;
        let wrong =
            |message: &str, help: String| Err(ConfigError::new(&member.place, message).help(help));
        if !text.starts_with(['/', '*']) {
            return wrong("a path begins with `/`", format!("write /{text} or **/{text}"));
        }
        if text.contains('?') {
            let help = "ask for what follows with query = { NAME = \"…\" }";
            return wrong("a path ends before `?`", help.to_owned());
        }
        let hex = |pair: &[u8]| pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        let encoded = |(at, _): (usize, &str)| text.as_bytes().get(at + 1..at + 3).is_some_and(hex);
        if text.match_indices('%').any(encoded) {
            let help = "write the character itself instead of %XX";
            return wrong("paths are compared decoded", help.to_owned());
        }
    }
    globs(node, GlobKind::Path)
}

fn clients(node: &Node) -> Result<Prefixes> {
    let prefixes = members(node)?.iter().map(Node::parse::<Prefix>);
    prefixes.collect::<Result<Vec<_>>>().map(Prefixes::new)
}

fn systems(node: &Node) -> Result<Box<[u32]>> {
    let system = |member: &Node| {
        let (Value::Text(text) | Value::Number(text)) = &member.value else {
            return Err(wrong_type(member, "a string").help("write \"AS64500\""));
        };
        let wrong = |help: String| {
            let message = format!("`{text}` is not an AS number");
            ConfigError::new(&member.place, message).help(help)
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        match text.strip_prefix("AS") {
            Some(number) if digits(number) => {
                number.parse().map_err(|_| wrong("give AS0 to AS4294967295".to_owned()))
            }
            _ if digits(text) => Err(wrong(format!("write \"AS{text}\""))),
            _ => Err(wrong("write \"AS64500\"".to_owned())),
        }
    };
    let mut systems: Vec<u32> = members(node)?.iter().map(system).collect::<Result<_>>()?;
    systems.sort_unstable();
    Ok(systems.into())
}

fn countries(node: &Node) -> Result<Box<[Country]>> {
    let mut countries: Vec<Country> =
        members(node)?.iter().map(Node::parse).collect::<Result<_>>()?;
    countries.sort_unstable();
    Ok(countries.into())
}

/// Parses a table of names and patterns; `name` parses the names.
fn named(
    key: &str,
    place: &Place,
    node: &Node,
    name: impl Fn(&Place, &str) -> Result<Box<str>>,
) -> Result<Vec<Named>> {
    if node.entries().is_empty() {
        let error = match &node.value {
            Value::Table(_) => ConfigError::new(place, format!("`{key}` names none")),
            _ => wrong_type(node, "a table"),
        };
        return Err(error.help(format!("write {key} = {{ NAME = \"VALUE\" }}")));
    }
    let read = |entry: &uncork_config::Entry| {
        let name = name(&entry.place, &entry.name)?;
        Ok(Named { name, values: globs(&entry.node, GlobKind::Value)? })
    };
    node.entries().iter().map(read).collect()
}

/// Parses the name of a query parameter, which is not decoded.
fn query_name(place: &Place, name: &str) -> Result<Box<str>> {
    if !name.is_empty() && name.bytes().all(|it| it.is_ascii_graphic() && !b"&=#".contains(&it)) {
        return Ok(name.into());
    }
    Err(ConfigError::new(place, format!("no query has the name `{name}`"))
        .help("write the name as in the URL, without & and ="))
}

/// Parses the name of a header field (RFC 9110 §5.1) into lower case.
pub(crate) fn header_name(place: &Place, name: &str) -> Result<Box<str>> {
    if is_token(name) {
        return Ok(name.to_ascii_lowercase().into());
    }
    Err(ConfigError::new(place, format!("no header has the name `{name}`"))
        .help("write a name such as x-client"))
}

/// Parses the name of a cookie (RFC 6265 §4.1.1).
pub(crate) fn cookie_name(place: &Place, name: &str) -> Result<Box<str>> {
    if is_token(name) {
        return Ok(name.into());
    }
    Err(ConfigError::new(place, format!("no cookie has the name `{name}`"))
        .help("write a name such as uid"))
}

/// Whether `name` is a token (RFC 9110 §5.6.2).
fn is_token(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

fn size(place: &Place, node: &Node) -> Result<Test> {
    let section = Section::new("`size`", place, node, keys::SIZE)?;
    let bytes = |key| section.read(key, Node::parse::<ByteCount>);
    let (min, below) = (bytes("min")?, bytes("below")?);
    if min.is_none() && below.is_none() {
        return Err(ConfigError::new(place, "a size without bounds always matches")
            .help("write size = { min = \"1MB\" } or size = { below = \"1MB\" }"));
    }
    let min = min.map_or(0, ByteCount::as_u64);
    let below_bytes = below.map_or(u64::MAX, ByteCount::as_u64);
    if min >= below_bytes {
        return Err(ConfigError::new(section.value_place("below"), "no size is in this range")
            .help("let `min` be less than `below`"));
    }
    Ok(Test::Size { min, below: below_bytes })
}
