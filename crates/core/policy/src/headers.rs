//! Header fields, cookies and query parameters.

/// Access to the header fields of a request, in any representation.
pub trait Headers {
    /// Whether `test` accepts any value of the field `name` (lower case). Calls `test` in order until it
    /// returns true.
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

/// Pairs of name and value; names are case-insensitive.
impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for [(N, V)] {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.iter()
            .filter(|(known, _)| known.as_ref().eq_ignore_ascii_case(name))
            .any(|(_, value)| test(value.as_ref()))
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const COUNT: usize> Headers for [(N, V); COUNT] {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.as_slice().any(name, test)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for Vec<(N, V)> {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.as_slice().any(name, test)
    }
}

/// Whether `test` accepts any value of the cookie `name` (RFC 6265 §4.2.1). HTTP/2 and HTTP/3 may send
/// several `Cookie` fields (RFC 9113 §8.2.3).
pub(crate) fn any_cookie(
    headers: &dyn Headers,
    name: &str,
    test: &mut dyn FnMut(&[u8]) -> bool,
) -> bool {
    headers.any("cookie", &mut |field| {
        field.split(|byte| *byte == b';').any(|pair| {
            let (known, value) = split_once(pair.trim_ascii(), b'=');
            known == name.as_bytes() && test(value)
        })
    })
}

/// Whether `test` accepts any value of the query parameter `name`; without `=` the value is empty.
pub(crate) fn any_parameter(query: &str, name: &str, mut test: impl FnMut(&[u8]) -> bool) -> bool {
    query.as_bytes().split(|byte| *byte == b'&').any(|pair| {
        let (known, value) = split_once(pair, b'=');
        known == name.as_bytes() && test(value)
    })
}

fn split_once(bytes: &[u8], at: u8) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == at) {
        Some(position) => (&bytes[..position], &bytes[position + 1..]),
        None => (bytes, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(fields: &[(&str, &str)], name: &str) -> Vec<String> {
        let mut found = Vec::new();
        any_cookie(&Owned(fields), name, &mut |value| {
            found.push(String::from_utf8_lossy(value).into_owned());
            false
        });
        found
    }

    struct Owned<'a>(&'a [(&'a str, &'a str)]);

    impl Headers for Owned<'_> {
        fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
            self.0.any(name, test)
        }
    }

    #[test]
    fn cookies_of_all_fields_are_found() {
        let fields = [("Cookie", "a=1; b=2=3 ;c"), ("x", "a=9"), ("cookie", "a=4")];
        assert_eq!(cookies(&fields, "a"), ["1", "4"]);
        assert_eq!(cookies(&fields, "b"), ["2=3"]);
        assert_eq!(cookies(&fields, "c"), [""]);
        assert!(cookies(&fields, "A").is_empty(), "names of cookies are case-sensitive");
    }

    #[test]
    fn flags_of_a_query_are_found() {
        assert!(any_parameter("x&bbr=1&y=2", "bbr", |value| value == b"1"));
        assert!(any_parameter("x&bbr", "bbr", <[u8]>::is_empty));
        assert!(!any_parameter("bbrx=1", "bbr", |_| true));
        assert!(!any_parameter("", "bbr", |_| true));
    }
}
