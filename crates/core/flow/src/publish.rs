//! Atomic publication of finished files.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Renames the finished file `part` to `whole` in the same directory. After a power failure there
/// is either the complete new file or the previous one: the content is synced before the rename,
/// and the rename is synced before this returns.
///
/// # Errors
///
/// An I/O error. `part` remains unless it has been renamed.
pub fn publish(part: &Path, whole: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    fs::rename(part, whole)?;
    let directory = whole.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publish_replaces_an_existing_file() {
        let directory = std::env::temp_dir().join(format!("uncork-publish-{}", std::process::id()));
        fs::create_dir(&directory).expect("a directory");
        let (part, whole) = (directory.join(".file.part"), directory.join("file"));
        for content in ["one", "two"] {
            fs::write(&part, content).expect("written");
            publish(&part, &whole).expect("published");
            assert_eq!(fs::read_to_string(&whole).expect("the file"), content);
            assert!(!part.exists());
        }
        assert!(publish(&part, &whole).is_err(), "the part does not exist");
        assert_eq!(fs::read_to_string(&whole).expect("the file"), "two");
        fs::remove_dir_all(&directory).expect("removed");
    }
}
