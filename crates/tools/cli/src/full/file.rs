//! The file of `--output`.

use std::path::Path;

use crate::failure::Failure;
use crate::output;

/// Writes `content` to the file of `--output` atomically.
pub(crate) fn replace(file: &Path, content: &[u8]) -> Result<(), Failure> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    let Some(name) = file.file_name() else {
        return Err(Failure::value("--output <FILE>", file.display(), "it names no file"));
    };
    output::replace(directory, &name.to_string_lossy(), content)
        .map_err(|error| Failure::output(directory, &error))
}
