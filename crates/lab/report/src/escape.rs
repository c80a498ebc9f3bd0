//! Escaping of text in markup.

/// `text` escaped for XML and HTML, in content and in quoted attributes. Characters not allowed in
/// XML become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn all_markup_is_escaped() {
        assert_eq!(
            escape("<b a='x' c=\"y\">&\0\u{1b}µ\n"),
            "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;\u{fffd}\u{fffd}µ\n"
        );
    }
}
