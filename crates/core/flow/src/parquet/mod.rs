//! Records, objects and series as Parquet tables. Equal rows give equal bytes: files contain no
//! time, place or library version.

mod flows;
mod objects;
mod read;
mod series;
mod service;
mod write;

pub use flows::{read_flows, write_flows};
pub use objects::{read_objects, write_objects};
pub use series::{read_series, write_series};

#[cfg(test)]
mod tests {
    use super::write::Column;
    use super::{flows, objects, series};

    const DESCRIPTION: &str = include_str!("../../../../../docs/reference/results.md");

    /// The names in the table of the description's section `title`, in order.
    fn described(title: &str) -> Vec<&'static str> {
        let section = DESCRIPTION.split("\n## ").find(|section| section.starts_with(title));
        let lines = section.unwrap_or_else(|| panic!("no section {title}")).lines();
        let names = lines.filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        names.map(|(name, _)| name).collect()
    }

    fn names<R>(columns: &[Column<R>]) -> Vec<&'static str> {
        columns.iter().map(|column| column.name).collect()
    }

    #[test]
    fn every_column_is_described() {
        assert_eq!(described("`flows.parquet`"), names(&flows::columns(|_| true)));
        assert_eq!(described("`objects.parquet`"), names(&objects::columns()));
        assert_eq!(described("`series.parquet`"), names(&series::columns()));
    }
}
