//! A policy's table of networks: its file, the settings of its arms, and what was read from the file.

use crate::table::{Entry, Section, Table};
use crate::{Fact, Facts, Settings, TableError, UnixTime};

/// The `[table]` of a policy.
#[derive(Clone, Debug)]
pub(crate) struct TableUse {
    /// As written, relative to the policy's own file.
    pub(crate) file: Box<str>,
    /// Names and settings of the arms.
    pub(crate) arms: Box<[(Box<str>, Settings)]>,
    /// The sections that rules ask for, and how explanations write them.
    pub(crate) sections: Vec<(Box<str>, Box<str>)>,
    /// None until the file was read.
    pub(crate) loaded: Option<LoadedTable>,
}

/// A table that has all that its policy asks for.
#[derive(Clone, Debug)]
pub(crate) struct LoadedTable {
    table: Table,
    /// For each section of the policy, its index in the table.
    sections: Box<[usize]>,
    /// For each arm of the table, its index in the policy.
    arms: Box<[usize]>,
}

impl LoadedTable {
    /// A section, by its index in the policy.
    fn section(&self, section: usize) -> Option<&Section> {
        self.sections.get(section).and_then(|it| self.table.sections.get(*it))
    }
}

impl TableUse {
    /// Takes a table, whole or not at all. The result is its hash.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<[u8; 32], TableError> {
        let table = Table::parse(bytes)?;
        let lacks = |what: String, remedy: String| TableError { line: None, problem: what, remedy };
        let sections = self.sections.iter().map(|(wanted, _)| {
            let found = table.sections.iter().position(|section| section.name == *wanted);
            found.ok_or_else(|| {
                let problem = format!("it has no section `{wanted}`, for which a rule asks");
                lacks(problem, "use the table that was made with this policy".to_owned())
            })
        });
        let sections = sections.collect::<Result<_, _>>()?;
        let arms = table.arms.iter().map(|used| {
            let found = self.arms.iter().position(|(name, _)| name == used);
            found.ok_or_else(|| {
                let remedy = format!("write [table.arm.{used}] into the policy");
                lacks(format!("it has the arm `{used}`, which the policy does not"), remedy)
            })
        });
        let arms = arms.collect::<Result<_, _>>()?;
        let digest = table.digest;
        self.loaded = Some(LoadedTable { table, sections, arms });
        Ok(digest)
    }

    /// The settings of the client's entry in a section.
    pub(crate) fn settings(&self, section: usize, facts: &Facts<'_>) -> Fact<&Settings> {
        self.entry(section, facts).and_then(|(_, arm)| {
            Fact::known_or_absent(self.arms.get(arm).map(|(_, settings)| settings))
        })
    }

    /// The client's entry, and the index of its arm; absent once the table has expired.
    fn entry(&self, section: usize, facts: &Facts<'_>) -> Fact<(Entry, usize)> {
        let Some(loaded) = &self.loaded else { return Fact::Absent };
        let not_expired = facts
            .accepted
            .and_then(|now| Fact::known_or_absent((now < loaded.table.expires).then_some(())));
        not_expired.and_then(|()| {
            let Some(section) = loaded.section(section) else { return Fact::Absent };
            section.entry(facts).and_then(|entry| {
                let arm = loaded.arms.get(usize::from(entry.arm));
                Fact::known_or_absent(arm.map(|arm| (entry, *arm)))
            })
        })
    }

    /// From when on no entry matches.
    pub(crate) fn expires(&self) -> Option<UnixTime> {
        self.loaded.as_ref().map(|loaded| loaded.table.expires)
    }

    /// The networks of a section, IPv4 mapped with 96 bits more, and the indices of their arms; some come twice.
    pub(crate) fn each_network(&self, section: usize, mut visit: impl FnMut(u128, u8, usize)) {
        let Some(loaded) = &self.loaded else { return };
        let Some(section) = loaded.section(section) else { return };
        section.each_network(|first, bits, arm| {
            if let Some(arm) = loaded.arms.get(usize::from(arm)) {
                visit(first, bits, *arm);
            }
        });
    }

    /// How many entries are by system or country, and what those for all clients give.
    pub(crate) fn wide_entries(&self) -> (usize, Vec<&Settings>) {
        let Some(loaded) = &self.loaded else { return (0, Vec::new()) };
        let sections = (0..self.sections.len()).filter_map(|index| loaded.section(index));
        let (mut origins, mut all_clients) = (0, Vec::new());
        for section in sections {
            origins += section.by_origin();
            let arm = section.all_clients().and_then(|arm| loaded.arms.get(usize::from(arm)));
            all_clients
                .extend(arm.and_then(|arm| self.arms.get(*arm)).map(|(_, settings)| settings));
        }
        (origins, all_clients)
    }

    /// Whether entries are for systems or countries.
    pub(crate) fn asks_origin(&self) -> bool {
        let mut loaded = self.loaded.iter().flat_map(|loaded| &loaded.table.sections);
        loaded.any(Section::asks_origin)
    }

    /// The index of the arm of the client's entry by system, by country or for all clients.
    pub(crate) fn arm_by_origin(&self, section: usize, facts: &Facts<'_>) -> Option<usize> {
        let loaded = self.loaded.as_ref()?;
        let facts = Facts { client: Fact::Absent, ..*facts };
        let Fact::Known(entry) = loaded.section(section)?.entry(&facts) else { return None };
        loaded.arms.get(usize::from(entry.arm)).copied()
    }

    /// `table = "large"`.
    pub(crate) fn written(&self, section: usize) -> &str {
        self.sections.get(section).map_or("", |(_, written)| written)
    }

    /// The entry in words.
    pub(crate) fn found(&self, section: usize, facts: &Facts<'_>) -> String {
        let Some(LoadedTable { table, .. }) = &self.loaded else {
            return format!("`{}` was not read", self.file);
        };
        let version = table.version;
        match (facts.accepted, self.entry(section, facts)) {
            (Fact::Unknown, _) => format!("whether version {version} has expired is not known yet"),
            (Fact::Known(now), _) if now >= table.expires => {
                format!("version {version} has expired")
            }
            (_, Fact::Known((entry, arm))) => {
                let arm = self.arms.get(arm).map_or("", |(name, _)| name);
                format!("version {version} has arm `{arm}` for {}", entry.of)
            }
            (_, Fact::Absent) => format!("version {version} has no entry for the client"),
            (_, Fact::Unknown) => "the client's network or origin is not known yet".to_owned(),
        }
    }

    /// `a table of 2 arms`, with the version once it was read.
    pub(crate) fn summary(&self) -> String {
        let arms = self.arms.len();
        let arms = format!("{arms} arm{}", if arms == 1 { "" } else { "s" });
        match &self.loaded {
            Some(loaded) => format!("table version {} of {arms}", loaded.table.version),
            None => format!("a table of {arms}, not read"),
        }
    }
}
