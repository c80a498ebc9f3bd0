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

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;
    use crate::site::SiteOptions;

    #[test]
    fn the_first_host_with_the_name_counts_and_finding_it_does_not_allocate() {
        let scratch = Scratch::new("sites");
        let open = |name: &str| {
            scratch.write(&format!("{name}/file"), "");
            Site::open(&scratch.path(name), SiteOptions::default()).unwrap()
        };
        let host = |names: &[&str], name| {
            (names.iter().map(|it| it.parse().unwrap()).collect(), open(name))
        };
        let hosts = vec![
            host(&["a.example", "*.b.example"], "one"),
            host(&["*.example", "x.b.example"], "two"),
        ];
        let mut sites = Sites { default: open("default"), hosts, files: Arc::default() };
        for (asked, found) in [
            (Some("a.example:443"), "one"),
            (Some("x.b.example"), "one"),
            (Some("C.Example"), "two"),
            (Some("b.c.example"), "default"),
            (Some(""), "default"),
            (None, "default"),
        ] {
            let allocated = allocation_counter::measure(|| {
                assert!(sites.of(asked).path().ends_with(found), "{asked:?}");
            });
            assert_eq!(allocated.count_total, 0, "{asked:?}");
        }
        sites.hosts.clear();
        assert!(sites.of(Some("a.example")).path().ends_with("default"));
    }
}
