//! The default that `load --default` has replaced, kept with the pins so that `unload` restores it.

use std::fs;
use std::path::PathBuf;

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::host::{default, fall_back, set_default};
use crate::map::Map;
use crate::pin::Pins;
use crate::sys;

/// Followed by the network namespace's cookie (socket(7)), which no later namespace gets.
const EARLIER: &str = "default-before-";

impl Pins {
    /// Makes a controller the default of this network namespace, with Careful Resume if it was loaded with that, and keeps which one
    /// was, unless that is one of ours. The result is the default's name.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn make_default(&self, algorithm: Algorithm) -> Result<&'static str, Error> {
        let [name, resuming_name] = algorithm.names();
        let name = if self.resumes(algorithm) { resuming_name } else { name };
        let earlier = default();
        if Algorithm::named(&earlier).is_none()
            && let Some(path) = self.earlier()
        {
            // Of an earlier load, or of a command that was killed.
            let _ = fs::remove_file(&path);
            Map::blob("earlier_default", earlier.as_bytes())?.pin(&path)?;
        }
        set_default(name).map(|()| name)
    }

    /// Makes the earlier default the default of this network namespace again, or one of the kernel's own. The result is its name.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn restore_default(&self) -> Result<String, Error> {
        if let Some(path) = self.earlier()
            && let Some(note) = Map::open(&path)?
        {
            let name =
                note.bytes().map_err(|error| Error::step("read the earlier default", error))?;
            let name = String::from_utf8_lossy(&name).into_owned();
            if set_default(&name).is_ok() {
                return Ok(name);
            }
        }
        fall_back().map(str::to_owned)
    }

    /// Removes what is kept for all network namespaces.
    pub(crate) fn forget_defaults(&self) -> Result<(), Error> {
        for entry in fs::read_dir(self.directory()).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(EARLIER) {
                let path = entry.path();
                fs::remove_file(&path)
                    .map_err(|error| Error::step(format!("remove {}", path.display()), error))?;
            }
        }
        Ok(())
    }

    /// Where the earlier default of this network namespace is, where the kernel numbers namespaces (Linux 5.14).
    fn earlier(&self) -> Option<PathBuf> {
        let cookie = sys::namespace_cookie().ok()?;
        Some(self.directory().join(format!("{EARLIER}{cookie}")))
    }
}
