//! What tells the rows of a table apart beside what is in them.

/// A row with the values of columns that not every table has, such as the axes of a matrix. Their
/// names are given once for the whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled<'a, R> {
    /// The values, in the order of the names.
    pub labels: &'a [String],
    /// The row itself.
    pub row: R,
}

impl<R> Labelled<'_, R> {
    /// A row of a table without such columns.
    pub fn plain(row: R) -> Self {
        Self { labels: &[], row }
    }

    /// The value of the column of index `nth`; empty where there is none.
    pub(crate) fn label(&self, nth: usize) -> &str {
        self.labels.get(nth).map_or("", String::as_str)
    }
}
