//! What the doctor says about each host in `tests/hosts`. `UPDATE_DOCS=1` writes the texts again.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use uncork_host::{HostFacts, diagnose};
use uncork_testkit::assert_snapshot;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts");

fn files(extension: &str) -> BTreeSet<PathBuf> {
    let paths = fs::read_dir(DIRECTORY).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|it| it == extension)).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn each_host_has_the_diagnosis_in_its_file() {
    for file in files("json") {
        let facts: HostFacts = serde_json::from_str(&fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let said = |wanted: Option<&str>| {
            let option = wanted.map_or_else(String::new, |wanted| format!(" --expect {wanted}"));
            let text = diagnose(&facts, wanted).unwrap().text(true);
            format!("$ uncork host doctor --notes{option}\n{text}")
        };
        let text = [None, Some("bbr")].map(said).join("\n");
        assert_snapshot(&file.with_extension("txt"), &text);
    }
}

#[test]
fn the_readme_names_each_host_and_no_text_is_left_over() {
    let hosts: BTreeSet<String> = files("json").iter().map(|path| name(path)).collect();
    let texts: BTreeSet<String> = files("txt").iter().map(|path| name(path)).collect();
    assert_eq!(hosts, texts);
    let readme = fs::read_to_string(Path::new(DIRECTORY).join("README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(".json`"));
    assert_eq!(rows.map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>(), hosts);
}
