//! Lines of text.

use uncork_config::visible;

use crate::terminal::Terminal;

/// `text` in bold, wrapped to fit.
pub fn push_bold(out: &mut String, text: &str, terminal: Terminal) {
    for line in wrap(&printable(text), terminal.width) {
        push_line(out, &terminal.style.bold(&line));
    }
}

/// The number of characters.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// `text` in one line, with control characters as escapes.
pub fn printable(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Adds `line` and a newline.
pub fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// `text` broken at spaces into lines of at most `width` characters; longer words are broken too.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().flat_map(|word| pieces(word, width.max(1))) {
        let line = lines.last_mut().expect("starts with one line");
        if line.is_empty() {
            line.push_str(&word);
        } else if self::width(line) + 1 + self::width(&word) <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

/// `word` in pieces of at most `width` characters.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(width).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary word", 5), ["extra", "ordin", "ary", "word"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
