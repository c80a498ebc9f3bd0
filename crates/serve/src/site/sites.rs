//! Virtual hosts: a directory for each, and one for all other names.

use std::sync::Arc;

use super::host_pattern::HostPattern;
use super::open_files::OpenFiles;
use super::respond::Site;
use crate::error::ServeError;
use crate::spec::ServerSpec;

/// All directories that are served.
#[derive(Debug)]
pub(crate) struct Sites {
    default: Site,
    hosts: Vec<(Vec<HostPattern>, Site)>,
    files: Arc<OpenFiles>,
}

impl Sites {
    /// Opens the directories. `before` are those served so far: descriptors are counted for both.
    pub(crate) fn open(spec: &ServerSpec, before: Option<&Self>) -> Result<Self, ServeError> {
        let files = before.map_or_else(Arc::default, |it| Arc::clone(&it.files));
        let default = Site::with_files(&spec.root, spec.site.clone(), &files)?;
        let hosts = spec.hosts.iter().map(|host| {
            Ok((host.names.clone(), Site::with_files(&host.root, host.site.clone(), &files)?))
        });
        let hosts = hosts.collect::<Result<_, ServeError>>()?;
        Ok(Self { default, hosts, files })
    }

    /// What serves requests for `host`: the first in order that has such a name.
    pub(crate) fn of(&self, host: Option<&str>) -> &Site {
        let Some(host) = host.filter(|_| !self.hosts.is_empty()) else { return &self.default };
        let is_it = |(names, _): &&(Vec<HostPattern>, _)| names.iter().any(|it| it.matches(host));
        self.hosts.iter().find(is_it).map_or(&self.default, |(_, site)| site)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Site> {
        self.hosts.iter().map(|(_, site)| site).chain([&self.default])
    }
}
