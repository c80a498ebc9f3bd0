//! Text tables of two columns.

/// Why a text is not a valid table. The message has the line and what to write there; the caller
/// adds the file name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TableError {
    /// Counted from 1; `None` if the whole table is invalid.
    line: Option<usize>,
    problem: String,
}

impl TableError {
    /// The invalid line, counted from 1; `None` if the whole table is invalid.
    pub const fn line(&self) -> Option<usize> {
        self.line
    }

    /// The problem without the line.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    pub(crate) fn at(line: usize, problem: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into() }
    }

    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into() }
    }
}

/// A line of a table: its number, counted from 1, and its two columns.
pub(crate) type TableRow<'a> = (usize, &'a str, &'a str);

/// The rows of `text`. Empty lines and text after `#` are ignored; `columns` names the columns in
/// error messages.
pub(crate) fn rows<'a>(
    text: &'a str,
    columns: &'static str,
) -> impl Iterator<Item = Result<TableRow<'a>, TableError>> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let mut fields = line.split('#').next().unwrap_or_default().split_whitespace();
        let first = fields.next()?;
        Some(match (fields.next(), fields.next()) {
            (Some(second), None) => Ok((index + 1, first, second)),
            _ => Err(TableError::at(index + 1, format!("a line has two columns, `{columns}`"))),
        })
    })
}

/// Parses a whole number of bytes.
pub(crate) fn bytes(line: usize, text: &str) -> Result<u64, TableError> {
    text.parse().map_err(|_| {
        TableError::at(line, format!("`{text}` is not a whole number of bytes, such as 10000"))
    })
}

/// Parses a decimal number, such as `0.25`, in billionths.
pub(crate) fn billionths(line: usize, text: &str) -> Result<u64, TableError> {
    parse_billionths(text).ok_or_else(|| {
        TableError::at(
            line,
            format!("`{text}` is not a number such as 0.25, with at most 9 decimal places"),
        )
    })
}

fn parse_billionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let places = fraction.len() as u32;
    let fraction = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - places);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    #[test]
    fn table_reads_two_columns_and_skips_comments() {
        let text = "# a b\n1 2\n\n  3\t4  # five\n";
        let rows: Result<Vec<TableRow<'_>>, TableError> = rows(text, "a b").collect();
        assert_eq!(rows, Ok(vec![(2, "1", "2"), (4, "3", "4")]));
    }

    #[test]
    fn table_errors_name_the_line() {
        for text in ["1 2\n3\n", "1 2\n3 4 5\n"] {
            let error = rows(text, "a b").find_map(Result::err).expect("refused").to_string();
            assert!(error.starts_with("line 2: "), "{error}");
            assert_message!(text, error);
        }
        assert_message!("10kB", bytes(7, "10kB").expect_err("refused"));
    }

    #[test]
    fn table_reads_decimals_exactly() {
        for (text, value) in [
            ("0", 0),
            ("1", 1_000_000_000),
            ("0.25", 250_000_000),
            ("1.000000001", 1_000_000_001),
            ("18446744073.709551615", u64::MAX),
        ] {
            assert_eq!(billionths(1, text), Ok(value), "{text}");
        }
        for text in ["", ".5", "5.", "-1", "+1", "1e3", "0.0000000001", "18446744073.709551616"] {
            let error = billionths(3, text).expect_err(text).to_string();
            assert!(error.starts_with("line 3: `"), "{error}");
        }
    }
}
