//! What a request's path asks for.
//!
//! Only plain names go through: whatever means more to a file system than a name in a directory is
//! refused before anything is opened. The kernel refuses again what leads out of the root.

/// A path below the root: names separated by `/`, empty for the root itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) path: String,
    /// The path ended with `/`, or was the root.
    pub(super) is_directory: bool,
}

/// Why a path is not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is no path: an escape that is none, bytes that are not UTF-8, no `/` in front.
    Malformed,
    /// It is not for everybody, whether it exists or not.
    Hidden,
}

impl Target {
    /// Reads the path of a URI (RFC 3986 §3.3) as it came. Escapes are decoded once, name by name, so
    /// that an escaped `/` never separates names.
    pub(super) fn parse(raw: &str) -> Result<Self, Refused> {
        let names = raw.strip_prefix('/').ok_or(Refused::Malformed)?;
        let mut path = String::with_capacity(names.len());
        let mut is_directory = false;
        let mut names = names.split('/').peekable();
        while let Some(name) = names.next() {
            is_directory = name.is_empty() && names.peek().is_none();
            if is_directory {
                break;
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&plain(name)?);
        }
        Ok(Self { path, is_directory })
    }
}

/// The name, decoded, if it is no more than a name. A dot in front hides it: `.`, `..`, `.git`.
fn plain(name: &str) -> Result<String, Refused> {
    let name = String::from_utf8(decoded(name)?).map_err(|_| Refused::Malformed)?;
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
        let file = |path: &str| Ok(Target { path: path.into(), is_directory: false });
        assert_eq!(Target::parse("/a/b%20c.txt"), file("a/b c.txt"));
        assert_eq!(Target::parse("/%61"), file("a"));
        assert_eq!(Target::parse("/%2561"), file("%61"));
        assert_eq!(Target::parse("/%C3%A9"), file("é"));
        assert_eq!(Target::parse("/a..b/c."), file("a..b/c."));
        let directory = |path: &str| Ok(Target { path: path.into(), is_directory: true });
        assert_eq!(Target::parse("/"), directory(""));
        assert_eq!(Target::parse("/a/b/"), directory("a/b"));
    }

    #[test]
    fn what_is_no_path_is_malformed() {
        for path in ["", "*", "a", "/%", "/%4", "/%4g", "/%+1", "/%ff", "/%c0%ae%c0%ae/x"] {
            assert_eq!(Target::parse(path), Err(Refused::Malformed), "{path}");
        }
    }

    #[test]
    fn what_is_more_than_a_name_is_hidden() {
        for path in ["/..", "/./a", "//a", "/a//b", "/.git", "/a%2fb", "/a%5Cb", "/a%00", "/%0a"] {
            assert_eq!(Target::parse(path), Err(Refused::Hidden), "{path}");
        }
    }
}
