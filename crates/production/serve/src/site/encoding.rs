//! Which compressed form of a file a client takes (RFC 9110 §12.5.3).

use http::{HeaderMap, header};

/// A content coding, with the ending of files that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    pub(super) name: &'static str,
    pub(super) ending: &'static str,
}

/// The smaller ones first.
const CODINGS: [Coding; 3] = [
    Coding { name: "br", ending: ".br" },
    Coding { name: "zstd", ending: ".zst" },
    Coding { name: "gzip", ending: ".gz" },
];

/// The codings that the client accepts, the ones it likes best first.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<Coding> {
    let mut accepted: Vec<(u16, Coding)> = CODINGS
        .into_iter()
        .filter_map(|coding| Some((weight(headers, coding.name)?, coding)))
        .filter(|(weight, _)| *weight > 0)
        .collect();
    // Stable: between equals ours decides.
    accepted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    accepted.into_iter().map(|(_, coding)| coding).collect()
}

/// The weight of a coding in thousandths, if it or `*` is listed.
fn weight(headers: &HeaderMap, name: &str) -> Option<u16> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut any = None;
    for element in values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')) {
        let (coding, parameters) = element.split_once(';').unwrap_or((element, ""));
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case(name) => return Some(quality(parameters)),
            "*" => any = Some(quality(parameters)),
            _ => {}
        }
    }
    any
}

/// `q=0.5` in thousandths (RFC 9110 §12.4.2). What cannot be read is not accepted.
fn quality(parameters: &str) -> u16 {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return 1000;
    }
    let value =
        parameters.strip_prefix(['q', 'Q']).and_then(|rest| rest.trim_start().strip_prefix('='));
    let value = value.and_then(|value| value.trim().parse::<f32>().ok());
    value.filter(|value| (0.0..=1.0).contains(value)).map_or(0, |value| (value * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn names(accept: &'static str) -> Vec<&'static str> {
        let value = (header::ACCEPT_ENCODING, HeaderValue::from_static(accept));
        accepted(&HeaderMap::from_iter([value])).iter().map(|coding| coding.name).collect()
    }

    #[test]
    fn the_clients_order_comes_before_ours() {
        assert_eq!(names("gzip, deflate, br, zstd"), ["br", "zstd", "gzip"]);
        assert_eq!(names("gzip;q=1.0, br;q=0.5"), ["gzip", "br"]);
        assert_eq!(names("*"), ["br", "zstd", "gzip"]);
        assert_eq!(names("br;q=0, *;q=0.1"), ["zstd", "gzip"]);
        assert_eq!(names("GZIP ; q=0.001"), ["gzip"]);
    }

    #[test]
    fn what_is_not_wanted_is_not_sent() {
        for accept in ["", "identity", "gzip;q=0", "br;q=nan", "br;q=2", "br;level=3", "deflate"] {
            assert_eq!(names(accept), [""; 0], "{accept}");
        }
        assert!(accepted(&HeaderMap::new()).is_empty());
    }
}
