//! The build ID is equal for equal sources anywhere, and different for different sources.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use uncork_testkit::Scratch;

#[path = "../build/digest.rs"]
mod digest;

/// A source tree with `content` in `file`.
fn tree(scratch: &Scratch, name: &str, file: &str, content: &str) -> PathBuf {
    let root = scratch.path(name);
    fs::create_dir_all(root.join("bbr3")).unwrap();
    fs::write(root.join("lib.rs"), "mod bbr3;\n").unwrap();
    fs::write(root.join(file), content).unwrap();
    root
}

fn id(root: &Path) -> String {
    digest::digest(&[("cc".to_owned(), root.to_path_buf())]).unwrap()
}

#[test]
fn build_id_depends_on_names_and_contents_only() {
    let scratch = Scratch::new("build-id");
    let one = tree(&scratch, "one", "bbr3/gain.rs", "2.77");
    let copy = tree(&scratch, "elsewhere/copy", "bbr3/gain.rs", "2.77");
    let touched = fs::File::options().append(true).open(copy.join("lib.rs")).unwrap();
    touched.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(id(&one), id(&copy));
    let constant = tree(&scratch, "constant", "bbr3/gain.rs", "2.89");
    let renamed = tree(&scratch, "renamed", "bbr3/gains.rs", "2.77");
    let moved = tree(&scratch, "moved", "gain.rs", "2.77");
    for other in [constant, renamed, moved] {
        assert_ne!(id(&one), id(&other), "{}", other.display());
    }
}

#[test]
fn build_id_is_part_of_the_version() {
    let id = uncork_lab::VERSION.split_once(" (build ").unwrap().1;
    assert_eq!(id.len(), "0123456789abcdef)".len());
}
