//! A directory to serve, next to one that must not be served.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uncork_serve::site::{Site, SiteOptions};

/// Content that no response may contain.
pub(crate) const SECRET: &[u8] = b"not for clients!!";
/// The modification time of all files, in seconds since 1970: 06 Nov 1994 08:49:37.
const CHANGED: u64 = 784_111_777;

pub(crate) struct TestDirectory {
    pub(crate) site: Site,
    /// The files, by decoded path.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    directory: PathBuf,
}

impl TestDirectory {
    /// Creates the files in a new directory below `parent`.
    pub(crate) fn new(parent: &Path) -> Self {
        let directory = parent.join(format!("requests-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let root = directory.join("root");
        fs::create_dir_all(root.join("d")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        let mut files = BTreeMap::new();
        let sizes = [
            ("a", 1),
            ("empty", 0),
            ("c d", 300),
            ("d/e.txt", 1000),
            ("d/é", 40),
            ("long", 200_000),
        ];
        for (name, size) in sizes {
            let content: Vec<u8> =
                (0..size).map(|at: usize| (at * at / 5 + at * 7 + size) as u8).collect();
            fs::write(root.join(name), &content).unwrap();
            files.insert(format!("/{name}"), content);
        }
        for hidden in ["root/.hidden", "root/.git/config", "secret", "root-secret"] {
            fs::write(directory.join(hidden), SECRET).unwrap();
        }
        symlink("../secret", root.join("out")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("d/e.txt", root.join("in")).unwrap();
        files.insert("/in".to_owned(), files["/d/e.txt"].clone());
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(CHANGED);
        for path in files.keys() {
            let file = fs::File::options().write(true).open(root.join(&path[1..])).unwrap();
            file.set_modified(changed).unwrap();
        }
        let site = Site::open(&root, SiteOptions::default()).unwrap();
        Self { site, files, directory }
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
