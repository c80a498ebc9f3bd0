//! The manifest of a directory of runs, for `--resume` and `merge`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, Value};

use super::plan::Shard;
use super::stored::checksum;
use crate::VERSION;
use crate::engine::Engine;
use crate::scenario::{Files, Scenario, ScenarioError};

/// File name, in the directory of the runs.
pub const MANIFEST_NAME: &str = "sweep.json";

/// The scenario and build of the runs in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Manifest {
    #[cfg_attr(test, schemars(extend("const" = Self::SCHEMA)))]
    schema: String,
    /// Version of uncork, with the hash of its sources.
    version: String,
    /// The engine that ran them.
    engine: String,
    /// The scenario's name.
    pub name: String,
    /// The command that runs everything.
    pub command: String,
    /// The scenario's text, including values set on the command line.
    pub scenario: String,
    /// The files used by the scenario, with their text.
    pub files: BTreeMap<String, String>,
    /// The number of shards in which the runs were started last; absent if one process runs everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u64>,
}

/// Why a text is not a valid manifest for this build.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Invalid JSON.
    #[error("not a manifest of runs: {0}")]
    Json(serde_json::Error),
    /// The runs were made by another build, which may give different results.
    #[error(
        "its runs were made by uncork {0}, this is uncork {VERSION}, and results of different \
         builds are not mixed: use the build that made them, or run everything again in another \
         directory"
    )]
    Build(String),
}

/// The common part of manifests of all builds.
#[derive(Deserialize)]
struct ManifestHeader {
    schema: String,
    version: String,
}

impl Manifest {
    const SCHEMA: &str = "uncork.sweep/2";

    /// The manifest of `scenario`, parsed with `files` and run on `engine` by `command`.
    pub fn new(
        scenario: &Scenario,
        files: BTreeMap<String, String>,
        engine: Engine,
        command: String,
    ) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            version: VERSION.to_owned(),
            engine: engine.to_string(),
            name: scenario.name.clone(),
            command,
            scenario: scenario.text.clone(),
            files,
            shards: None,
        }
    }

    /// The same with the number of shards, so that a merge can name the incomplete ones.
    #[must_use]
    pub fn of_shard(self, shard: Shard) -> Self {
        Self { shards: (!shard.is_whole()).then(|| shard.count()), ..self }
    }

    /// Its JSON.
    pub fn to_json(&self) -> String {
        // Only texts, which always serialize.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Parses [`Self::to_json`].
    pub fn from_json(text: &str) -> Result<Self, ManifestError> {
        let origin: ManifestHeader = serde_json::from_str(text).map_err(ManifestError::Json)?;
        if (origin.schema.as_str(), origin.version.as_str()) != (Self::SCHEMA, VERSION) {
            return Err(ManifestError::Build(origin.version));
        }
        serde_json::from_str(text).map_err(ManifestError::Json)
    }

    /// The scenario.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.name, &self.scenario, &[], &self.files)
    }

    /// A fingerprint shared by interchangeable runs: a hash of everything that affects them.
    /// Evaluations, the number of seeds and of shards are excluded.
    pub fn fingerprint(&self) -> String {
        let Self { schema, version, engine, name: _, command: _, scenario, files, shards: _ } =
            self;
        let decisive = serde_json::to_vec(&(schema, version, engine, decisive(scenario), files));
        checksum(&decisive.unwrap_or_default())
    }

    /// Why runs of `self` cannot replace those of `other`; `None` if they can.
    pub fn obstacle(&self, other: &Self) -> Option<String> {
        if self.fingerprint() == other.fingerprint() {
            return None;
        }
        if self.engine != other.engine {
            return Some(self.other_engine(other));
        }
        let [one, two] = [self, other].map(|manifest| decisive(&manifest.scenario));
        let only = |lines: &[String], others: &[String]| {
            lines.iter().find(|line| !others.contains(line)).cloned()
        };
        Some(match (only(&one, &two), only(&two, &one)) {
            (Some(one), Some(two)) => format!("`{one}`, not `{two}`"),
            (Some(one), None) => format!("`{one}`, which is no longer there"),
            (None, Some(two)) => format!("they lack `{two}`"),
            (None, None) if one != two => "the same in another order".to_owned(),
            (None, None) => self.other_file(other),
        })
    }

    /// How `self` differs from `other`, so that their runs cannot be combined; `None` if they can.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (one, two) = (self.scenario.lines(), other.scenario.lines());
        let mut lines = (1..).zip(one.zip(two)).filter(|(_, (one, two))| one != two);
        if self.name != other.name {
            Some(format!("scenario '{}' instead of '{}'", self.name, other.name))
        } else if self.engine != other.engine {
            Some(self.other_engine(other))
        } else if let Some((number, (one, two))) = lines.next() {
            Some(format!("line {number} of the scenario is `{}`, not `{}`", one.trim(), two.trim()))
        } else if self.scenario != other.scenario {
            Some("one scenario goes on where the other ends".to_owned())
        } else {
            (self.files != other.files).then(|| self.other_file(other))
        }
    }

    fn other_engine(&self, other: &Self) -> String {
        format!("played by {}, not by {}", self.engine, other.engine)
    }

    /// The engine of the runs.
    pub fn engine(&self) -> Option<Engine> {
        self.engine.parse().ok()
    }

    fn other_file(&self, other: &Self) -> String {
        let same = |name: &&String| self.files.get(*name) == other.files.get(*name);
        let mut names = self.files.keys().chain(other.files.keys());
        let name = names.find(|name| !same(name)).map_or("", String::as_str);
        format!("the content of the scenario's file {name} differs")
    }
}

/// Keys of a scenario for evaluations and descriptions.
const QUESTIONS: [&str; 6] = ["title", "about", "assumptions", "threshold", "figure", "published"];

/// The values of a scenario that affect runs, with their keys, sorted.
fn decisive(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    match text.parse::<DocumentMut>() {
        Ok(document) => flatten("", document.as_item(), &mut lines),
        Err(_) => lines.push(text.to_owned()),
    }
    let of = |line: &str, key: &str| {
        line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.']))
    };
    lines.retain(|line| !QUESTIONS.iter().any(|key| of(line, key)) && !of(line, "run.seeds"));
    lines
}

/// Appends the values within `item` to `lines`, without comments and spaces.
fn flatten(place: &str, item: &Item, lines: &mut Vec<String>) {
    match item.as_table_like() {
        Some(table) if !table.is_empty() => {
            for (key, below) in table.iter() {
                let dot = if place.is_empty() { "" } else { "." };
                flatten(&format!("{place}{dot}{}", toml_edit::Key::new(key)), below, lines);
            }
        }
        _ => lines.push(format!("{place} = {}", item.as_value().map_or_else(String::new, plain))),
    }
}

/// A value in normal form.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", text.value()),
        Value::Integer(number) => number.value().to_string(),
        Value::Float(number) => number.value().to_string(),
        Value::Boolean(truth) => truth.value().to_string(),
        Value::Datetime(date) => date.value().to_string(),
        Value::Array(array) => {
            format!("[{}]", array.iter().map(plain).collect::<Vec<_>>().join(", "))
        }
        Value::InlineTable(table) => {
            let entry = |(key, value): (&str, &Value)| format!("{key} = {}", plain(value));
            format!("{{ {} }}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

impl Files for BTreeMap<String, String> {
    fn read(&self, name: &str) -> Result<String, String> {
        self.get(name).cloned().ok_or_else(|| "it is not there".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::{assert_message, assert_schema};

    #[test]
    fn schema_is_current() {
        let title = "`runs/sweep.json`: the scenario and the build of a directory of runs";
        assert_schema!(Manifest, "sweep-2", title);
    }

    fn manifest(name: &str, scenario: &str, file: &str) -> Manifest {
        Manifest {
            schema: Manifest::SCHEMA.to_owned(),
            version: VERSION.to_owned(),
            engine: "sim".to_owned(),
            name: name.to_owned(),
            command: format!("uncork lab run {name}"),
            scenario: scenario.to_owned(),
            files: [("trace".to_owned(), file.to_owned())].into(),
            shards: None,
        }
    }

    #[test]
    fn display_and_parse_round_trip() {
        let written = manifest("a", "title = \"A\"\n", "1\n2\n");
        assert_eq!(Manifest::from_json(&written.to_json()).unwrap(), written);
        assert!(matches!(Manifest::from_json("{"), Err(ManifestError::Json(_))));
    }

    #[test]
    fn from_json_rejects_runs_of_another_build() {
        let other = VERSION.replace("(build ", "(build 0");
        let text = manifest("a", "", "").to_json().replace(VERSION, &other);
        let error = Manifest::from_json(&text).unwrap_err();
        assert!(matches!(&error, ManifestError::Build(theirs) if *theirs == other));
        let message = error.to_string();
        assert!(message.contains(&other) && message.contains(VERSION), "{message}");
        // Before manifests had build IDs.
        let old = r#"{"schema": "uncork.sweep/1", "version": "0.1.0", "engine": "sim"}"#;
        let error = Manifest::from_json(old).unwrap_err();
        assert!(matches!(error, ManifestError::Build(theirs) if theirs == "0.1.0"));
    }

    #[test]
    fn differences_are_named() {
        let one = manifest("a", "x = 1\ny = 1\n", "1");
        assert_eq!(one.difference(&one.clone()), None);
        let mut renamed = one.clone();
        renamed.command = "uncork lab run ./a.toml".into();
        assert_eq!(one.difference(&renamed), None, "the same runs with another file name");
        let mut real = one.clone();
        real.engine = "netns".into();
        assert_message!("engine", one.difference(&real).unwrap());
        assert_eq!(one.obstacle(&real), one.difference(&real));
        for (case, other) in [
            ("name", manifest("b", "x = 1\ny = 1\n", "1")),
            ("line", manifest("a", "x = 1\n  y = 2\n", "1")),
            ("end", manifest("a", "x = 1\n", "1")),
            ("file", manifest("a", "x = 1\ny = 1\n", "2")),
        ] {
            assert_message!(case, one.difference(&other).unwrap());
        }
    }

    const SCENARIO: &str = "title = \"A\"\n[run]\nseeds = 3\n[path]\nrate = \"1mbit\" # slow\n\
                            rtt = \"5ms\"\n[[figure]]\ntitle = \"F\"\n";

    /// Evaluations may change without invalidating runs.
    #[test]
    fn evaluations_and_seeds_do_not_affect_the_fingerprint() {
        let one = manifest("a", SCENARIO, "1");
        for (old, new) in [
            ("\"A\"", "\"B\""),
            ("seeds = 3", "seeds = 30"),
            (" # slow", ""),
            ("[[figure]]\ntitle = \"F\"\n", ""),
            ("rate = ", "rate   =  "),
        ] {
            assert!(SCENARIO.contains(old));
            let other = manifest("b", &SCENARIO.replace(old, new), "1");
            assert_eq!(one.obstacle(&other), None, "{new}");
            assert!(one.difference(&other).is_some(), "{new}");
        }
    }

    #[test]
    fn shards_of_one_scenario_belong_together() {
        let whole = manifest("a", SCENARIO, "1");
        let shard = whole.clone().of_shard("2/3".parse().unwrap());
        assert_eq!((whole.shards, shard.shards), (None, Some(3)));
        assert_eq!((shard.obstacle(&whole), shard.difference(&whole)), (None, None));
        assert_eq!(Manifest::from_json(&shard.to_json()).unwrap(), shard);
        assert_eq!(whole.clone().of_shard(Shard::WHOLE), whole);
    }

    #[test]
    fn merge_rejects_different_runs() {
        let one = manifest("a", SCENARIO, "1");
        for (old, new, words) in [
            ("1mbit", "2mbit", "`path.rate = \"1mbit\"`, not `path.rate = \"2mbit\"`"),
            ("rtt = \"5ms\"\n", "", "`path.rtt = \"5ms\"`, which is no longer there"),
            ("[run]\n", "[run]\nfirst_seed = 2\n", "they lack `run.first_seed = 2`"),
        ] {
            let other = manifest("a", &SCENARIO.replace(old, new), "1");
            assert_eq!(one.obstacle(&other).as_deref(), Some(words));
        }
        let order = "title = \"A\"\n[path]\nrtt = \"5ms\"\nrate = \"1mbit\"\n";
        let other = manifest("a", order, "1");
        assert_eq!(one.obstacle(&other).as_deref(), Some("the same in another order"));
        let other = manifest("a", SCENARIO, "2");
        let words = "the content of the scenario's file trace differs";
        assert_eq!(one.obstacle(&other).as_deref(), Some(words));
    }
}
