//! The files of `--output` and `--metrics`.

use std::io;
use std::path::Path;

use crate::failure::Failure;
use crate::output;

/// Writes `content` to the file of `--output` atomically.
pub(crate) fn replace(file: &Path, content: &[u8]) -> Result<(), Failure> {
    write("--output <FILE>", file, content)?
        .map_err(|error| Failure::output(directory(file), &error))
}

/// Writes metrics to the file of `--metrics` atomically.
pub(crate) fn replace_metrics(file: &Path, metrics: &str) -> Result<(), Failure> {
    write("--metrics <FILE>", file, metrics.as_bytes())?.map_err(|error| {
        let file = file.display();
        Failure::Environment(format!(
            "cannot write '{file}' of '--metrics <FILE>': {error}; choose a file that can be written"
        ))
    })
}

fn write(argument: &str, file: &Path, content: &[u8]) -> Result<io::Result<()>, Failure> {
    let Some(name) = file.file_name() else {
        return Err(Failure::value(argument, file.display(), "it names no file"));
    };
    Ok(output::replace(directory(file), &name.to_string_lossy(), content))
}

fn directory(file: &Path) -> &Path {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
