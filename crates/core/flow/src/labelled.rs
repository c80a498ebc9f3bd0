//! Labels of a table's rows, and its origin.

/// Columns before those of a table, such as the axes of a matrix, and the file's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableHead {
    /// The columns.
    pub labels: Vec<LabelColumn>,
    /// Keys and values of the file's metadata.
    pub metadata: Vec<(String, String)>,
}

/// A column of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelColumn {
    /// Its name.
    pub name: String,
    /// Whether its labels are numbers.
    pub is_number: bool,
}

/// The value of a column of labels.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// A text.
    Text(String),
    /// A number, or null.
    Number(Option<f64>),
}

/// A row with its labels, in the order of [`TableHead::labels`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Labelled<'a, R> {
    /// The labels.
    pub labels: &'a [Label],
    /// The row itself.
    pub row: R,
}

impl<R> Labelled<'_, R> {
    /// A row of a table without labels.
    pub fn plain(row: R) -> Self {
        Self { labels: &[], row }
    }
}

#[cfg(not(target_family = "wasm"))]
impl<R> Labelled<'_, R> {
    /// The text in the column with index `nth`; empty if there is none.
    pub(crate) fn text(&self, nth: usize) -> &str {
        match self.labels.get(nth) {
            Some(Label::Text(text)) => text,
            _ => "",
        }
    }

    /// The number in the column with index `nth`.
    pub(crate) fn number(&self, nth: usize) -> Option<f64> {
        match self.labels.get(nth) {
            Some(Label::Number(number)) => *number,
            _ => None,
        }
    }
}
