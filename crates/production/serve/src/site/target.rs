//! What a request's path asks for.
//!
//! Only plain names pass: a part that means more to a file system than a name in a directory is
//! refused before anything is opened. The kernel refuses again what leads out of the root.

use std::borrow::Cow;

/// The only served directory with a dot in front of its name (RFC 8615): it has `security.txt` and the challenges of
/// ACME.
const WELL_KNOWN: &str = ".well-known";

/// A path, decoded: `/`, and names separated by `/`. A directory's ends with one, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target(String);

/// Why a path is not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not a path: an invalid escape, bytes that are not UTF-8, no `/` in front.
    Malformed,
    /// It is not public, whether it exists or not.
    Hidden,
}

impl Target {
    /// Reads the path of a URI (RFC 3986 §3.3) as it came. Escapes are decoded once, name by name, so
    /// that an escaped `/` never separates names.
    pub(super) fn parse(raw: &str) -> Result<Self, Refused> {
        let names = raw.strip_prefix('/').ok_or(Refused::Malformed)?;
        let mut path = String::with_capacity(raw.len());
        let mut names = names.split('/').peekable();
        while let Some(name) = names.next() {
            path.push('/');
            let is_well_known = path == "/" && name == WELL_KNOWN && names.peek().is_some();
            if is_well_known {
                path.push_str(WELL_KNOWN);
            } else if !name.is_empty() || names.peek().is_some() {
                path.push_str(&plain(name)?);
            }
        }
        Ok(Self(path))
    }

    pub(super) fn is_directory(&self) -> bool {
        self.0.ends_with('/')
    }

    /// The path below the root, empty for the root itself.
    pub(super) fn below_root(&self) -> &str {
        self.0.trim_matches('/')
    }

    pub(super) fn into_path(self) -> String {
        self.0
    }
}

/// The name, decoded, if it is just a name. A dot in front hides it: `.`, `..`, `.git`.
fn plain(name: &str) -> Result<Cow<'_, str>, Refused> {
    let name = if name.contains('%') {
        String::from_utf8(decoded(name)?).map_err(|_| Refused::Malformed)?.into()
    } else {
        Cow::Borrowed(name)
    };
    let special = |c: char| matches!(c, '/' | '\\') || c.is_control();
    if name.is_empty() || name.starts_with('.') || name.contains(special) {
        return Err(Refused::Hidden);
    }
    Ok(name)
}

fn decoded(name: &str) -> Result<Vec<u8>, Refused> {
    let mut bytes = name.bytes();
    let mut decoded = Vec::with_capacity(name.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => digit(bytes.next())? << 4 | digit(bytes.next())?,
            byte => byte,
        });
    }
    Ok(decoded)
}

fn digit(byte: Option<u8>) -> Result<u8, Refused> {
    let value = byte.and_then(|byte| char::from(byte).to_digit(16));
    value.map(|value| value as u8).ok_or(Refused::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_once() {
        for (raw, path, below_root, is_directory) in [
            ("/a/b%20c.txt", "/a/b c.txt", "a/b c.txt", false),
            ("/%61", "/a", "a", false),
            ("/%2561", "/%61", "%61", false),
            ("/%C3%A9", "/é", "é", false),
            ("/a..b/c.", "/a..b/c.", "a..b/c.", false),
            ("/", "/", "", true),
            ("/a/b/", "/a/b/", "a/b", true),
            ("/.well-known/acme/x", "/.well-known/acme/x", ".well-known/acme/x", false),
        ] {
            let target = Target::parse(raw).expect("a path");
            assert_eq!((target.below_root(), target.is_directory()), (below_root, is_directory));
            assert_eq!(target.into_path(), path);
        }
    }

    #[test]
    fn texts_that_are_not_paths_are_malformed() {
        for path in ["", "*", "a", "/%", "/%4", "/%4g", "/%+1", "/%ff", "/%c0%ae%c0%ae/x"] {
            assert_eq!(Target::parse(path), Err(Refused::Malformed), "{path}");
        }
    }

    #[test]
    fn only_the_well_known_directory_of_the_root_begins_with_a_dot() {
        for path in ["/.well-known", "/a/.well-known/x", "/.well-known/.x", "/.well-known/../x"] {
            assert_eq!(Target::parse(path), Err(Refused::Hidden), "{path}");
        }
    }

    #[test]
    fn what_is_more_than_a_name_is_hidden() {
        for path in ["/..", "/./a", "//a", "/a//b", "/.git", "/a%2fb", "/a%5Cb", "/a%00", "/%0a"] {
            assert_eq!(Target::parse(path), Err(Refused::Hidden), "{path}");
        }
    }
}
