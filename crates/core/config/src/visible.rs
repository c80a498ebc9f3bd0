//! Text for terminals.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with control characters as escapes such as `\u001b`, which JSON and TOML read back: C0 but tab and
/// newline, DEL, C1 (ECMA-48) and the bidirectional controls (UAX #9). Names in files may hold them, and terminals
/// obey them. `conformance/terminal.json` holds this function and the Python package to the same characters.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push(&mut out, c);
    }
    Cow::Owned(out)
}

/// Like [`visible`], but styles (SGR: `ESC [ 1 m`) stay.
pub fn visible_styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = style_length(rest);
        if style > 0 {
            out.push_str(&rest[..style]);
        } else {
            push(&mut out, c);
        }
        rest = &rest[style.max(c.len_utf8())..];
    }
    out
}

/// The length in bytes of the style at the start of `text`; 0: none.
fn style_length(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.filter(|end| parameters[*end..].starts_with('m')).map_or(0, |end| "\u{1b}[".len() + end + 1)
}

fn push(out: &mut String, c: char) {
    if is_control(c) {
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    } else {
        out.push(c);
    }
}

fn is_control(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn rules() -> serde_json::Value {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../conformance/terminal.json");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }

    #[test]
    fn code_points_and_cases_are_those_of_the_conformance_file() {
        let rules = rules();
        let code =
            |text: &serde_json::Value| u32::from_str_radix(text.as_str().unwrap(), 16).unwrap();
        let ranges: Vec<_> = (rules["escaped"].as_array().unwrap().iter())
            .map(|range| code(&range[0])..=code(&range[1]))
            .collect();
        for c in '\0'..=char::MAX {
            let expected = ranges.iter().any(|range| range.contains(&u32::from(c)));
            assert_eq!(is_control(c), expected, "{:x}", u32::from(c));
        }
        for case in rules["cases"].as_array().unwrap() {
            assert_eq!(visible(case["in"].as_str().unwrap()), case["shown"].as_str().unwrap());
        }
    }

    #[test]
    fn styles_stay_only_where_they_are_allowed() {
        let text = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2J \u{1b}[31;1m \u{1b}[\u{1b}]0;x\u{7}";
        assert_eq!(
            visible_styled(text),
            "\u{1b}[1mbold\u{1b}[0m \\u001b[2J \u{1b}[31;1m \\u001b[\\u001b]0;x\\u0007"
        );
        assert!(!visible(text).contains('\u{1b}'));
    }

    #[test]
    fn toml_reads_escapes_back() {
        let name = "\u{1b}\u{9b}\u{202e}";
        let text = format!("name = \"{}\"", visible(name));
        let document: DocumentMut = text.parse().unwrap();
        assert_eq!(document["name"].as_str(), Some(name));
    }
}
