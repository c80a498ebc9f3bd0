//! Tables with known keys, and values with checked types.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::{ConfigError, Key, Node, Place, Value};

/// A result with a [`ConfigError`].
pub type Result<T> = std::result::Result<T, ConfigError>;

/// A table with a fixed set of keys.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    /// Its name in messages, such as `[path]`.
    name: &'a str,
    place: &'a Place,
    node: &'a Node,
}

impl<'a> Section<'a> {
    /// Fails if `node` is not a table, or has a key outside `known`.
    pub fn new(
        name: &'a str,
        place: &'a Place,
        node: &'a Node,
        known: &'static [Key],
    ) -> Result<Self> {
        if !matches!(node.value, Value::Table(_)) {
            return Err(wrong_type(node, "a table").help(format!("{name} has keys of its own")));
        }
        for entry in node.entries() {
            if !Key::has(known, &entry.name) {
                let message = format!("unknown key `{}` in {name}", entry.name);
                let error = ConfigError::new(&entry.place, message);
                return Err(error.nearest(&entry.name, Key::names(known)));
            }
        }
        Ok(Self { name, place, node })
    }

    /// Its place, for errors of the whole table.
    pub fn place(&self) -> &'a Place {
        self.place
    }

    /// Its name in messages.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The node at `key`.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.node.get(key)
    }

    /// The place of the key itself.
    pub fn key_place(&self, key: &str) -> &'a Place {
        let entry = self.node.entries().iter().find(|entry| entry.name == key);
        entry.map_or(self.place, |entry| &entry.place)
    }

    /// The place of the value at `key`.
    pub fn value_place(&self, key: &str) -> &'a Place {
        self.get(key).map_or(self.place, |node| &node.place)
    }

    /// The node at the required `key`; `example` is a value for the error's help.
    pub fn need(&self, key: &str, example: &str) -> Result<&'a Node> {
        self.get(key).ok_or_else(|| {
            ConfigError::new(self.place, format!("{} has no `{key}`", self.name))
                .help(format!("write {key} = {example}"))
        })
    }

    /// The value at `key` converted by `read`, or `None` without the key.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Node) -> Result<T>,
    ) -> Result<Option<T>> {
        self.get(key).map(read).transpose()
    }

    /// The value at `key` parsed from a string, or `otherwise` without the key.
    pub fn parse_or<T: FromStr<Err: fmt::Display>>(&self, key: &str, otherwise: T) -> Result<T> {
        Ok(self.read(key, Node::parse)?.unwrap_or(otherwise))
    }

    /// The flag at `key`, or false without the key.
    pub fn flag(&self, key: &str) -> Result<bool> {
        Ok(self.read(key, Node::flag)?.unwrap_or(false))
    }

    /// The text at `key`, or an empty string without the key.
    pub fn text(&self, key: &str) -> Result<String> {
        Ok(self.read(key, Node::text)?.unwrap_or_default().to_owned())
    }

    /// Fails with `reason` if any of `keys` is present.
    pub fn forbid(&self, keys: &[&str], reason: &str) -> Result<()> {
        match keys.iter().find(|key| self.get(key).is_some()) {
            Some(key) => {
                let message = format!("`{key}` has no meaning here: {reason}");
                Err(ConfigError::new(self.key_place(key), message).help("leave it out"))
            }
            None => Ok(()),
        }
    }

    /// The one of `keys` that is present, with its node. Fails unless exactly one is; `what` names them in
    /// messages.
    pub fn exactly_one(
        &self,
        keys: impl IntoIterator<Item = &'static str, IntoIter: Clone>,
        what: &str,
    ) -> Result<(&'static str, &'a Node)> {
        let keys = keys.into_iter();
        let mut there = keys.clone().filter_map(|key| Some((key, self.get(key)?)));
        let list = || keys.map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match (there.next(), there.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(ConfigError::new(self.place, format!("{} has no {what}", self.name))
                .help(format!("use one of {}", list()))),
            (Some((one, _)), Some((other, _))) => {
                let message = format!("{} has two of {what}: `{one}` and `{other}`", self.name);
                Err(ConfigError::new(self.key_place(other), message)
                    .help(format!("use one of {}", list())))
            }
        }
    }
}

impl Node {
    /// The value as a string.
    pub fn text(&self) -> Result<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(wrong_type(self, "a string")),
        }
    }

    /// The value as a boolean.
    pub fn flag(&self) -> Result<bool> {
        match &self.value {
            Value::Flag(flag) => Ok(*flag),
            _ => Err(wrong_type(self, "true or false")),
        }
    }

    /// The value as a whole number within `range`.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Result<u64> {
        let Value::Number(text) = &self.value else {
            return Err(wrong_type(self, "a whole number"));
        };
        let number = text.replace('_', "").parse::<u64>().ok();
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            ConfigError::new(&self.place, format!("{text} is out of range"))
                .help(format!("use a whole number from {least} to {most}"))
        })
    }

    /// The value as a non-negative number.
    pub fn number(&self) -> Result<f64> {
        let Value::Number(text) = &self.value else { return Err(wrong_type(self, "a number")) };
        let number = text.replace('_', "").parse::<f64>().ok();
        number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| {
            ConfigError::new(&self.place, format!("{text} is out of range"))
                .help("use a number that is not negative")
        })
    }

    /// The value parsed from a string, such as a quantity with a unit or a name. A bare number is
    /// parsed too, because the type's error explains best what to write instead.
    pub fn parse<T: FromStr<Err: fmt::Display>>(&self) -> Result<T> {
        let parsed = self.written()?.parse();
        let value = parsed.map_err(|error| ConfigError::worded(&self.place, error))?;
        self.check_quoted()?;
        Ok(value)
    }

    /// The text of a string or a number.
    fn written(&self) -> Result<Cow<'_, str>> {
        match &self.value {
            Value::Text(text) => Ok(Cow::Borrowed(text)),
            Value::Number(text) => Ok(Cow::Owned(text.replace('_', ""))),
            _ => Err(wrong_type(self, "a string")),
        }
    }

    fn check_quoted(&self) -> Result<()> {
        let Value::Number(text) = &self.value else { return Ok(()) };
        Err(wrong_type(self, "a string").help(format!("write \"{text}\"")))
    }

    /// The value parsed from a name with options, such as `bbr3:loss_floor`. The error calls it `what`, and
    /// suggests similar names and options from `known`.
    pub fn named<T: FromStr<Err: fmt::Display>>(
        &self,
        what: &str,
        known: &[(&str, &[&str])],
    ) -> Result<T> {
        let text = self.text()?;
        text.parse().map_err(|error: T::Err| self.misnamed(what, text, known, error.to_string()))
    }

    /// The error for `text`, which is not the name of a `what`, or has an unknown option; or else `error`.
    fn misnamed(
        &self,
        what: &str,
        text: &str,
        known: &[(&str, &[&str])],
        error: String,
    ) -> ConfigError {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let Some((_, all)) = known.iter().find(|(known, _)| *known == name) else {
            let names = known.iter().map(|(name, _)| *name);
            let error = ConfigError::new(&self.place, format!("unknown {what} `{name}`"));
            let expected = names.clone().collect::<Vec<_>>().join(", ");
            return error.expected(format!("one of {expected}")).nearest(name, names);
        };
        match options.split(':').find(|option| !all.contains(option)) {
            Some(unknown) => {
                let message = format!("{name} has no option `{unknown}`");
                ConfigError::new(&self.place, message).nearest(unknown, all.iter().copied())
            }
            None => ConfigError::worded(&self.place, error),
        }
    }

    /// The value parsed from a string, within an inclusive range.
    pub fn within<T>(&self, (least, most): (T, T)) -> Result<T>
    where
        T: FromStr<Err: fmt::Display> + PartialOrd + fmt::Display,
    {
        let value: T = self.parse()?;
        if value >= least && value <= most {
            return Ok(value);
        }
        Err(self.out_of_range(&value, [&least, &most]))
    }

    fn out_of_range(&self, value: &dyn fmt::Display, range: [&dyn fmt::Display; 2]) -> ConfigError {
        let [least, most] = range;
        ConfigError::new(&self.place, format!("{value} is out of range"))
            .help(format!("expected {least} to {most}"))
    }

    /// The members of a list.
    pub fn list(&self) -> Result<&[Self]> {
        match &self.value {
            Value::List(nodes) => Ok(nodes),
            _ => Err(wrong_type(self, "a list")),
        }
    }

    /// The members of a list of pairs; `example` is a pair for the error's help.
    pub fn pairs(&self, example: &str) -> Result<Vec<[&Self; 2]>> {
        let pair = |node: &'_ Self| match node.list() {
            Ok([_, _]) => Ok(()),
            _ => Err(wrong_type(node, "a list of two").help(format!("write {example}"))),
        };
        let nodes = self.list()?;
        nodes.iter().try_for_each(pair)?;
        let pairs = nodes.iter().filter_map(|node| match node.list() {
            Ok([one, other]) => Some([one, other]),
            _ => None,
        });
        Ok(pairs.collect())
    }

    /// The one of `known` with this name. The error calls it `what`.
    pub fn choice<T: Copy>(&self, what: &str, known: &[(&'static str, T)]) -> Result<T> {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        self.position(what, &names).map(|at| known[at].1)
    }

    /// Which of `names` this is.
    fn position(&self, what: &str, names: &[&str]) -> Result<usize> {
        let expected = || format!("one of {}", names.join(", "));
        let text = self.text().map_err(|error| error.expected(expected()))?;
        names.iter().position(|name| *name == text).ok_or_else(|| {
            ConfigError::new(&self.place, format!("unknown {what} `{text}`"))
                .expected(expected())
                .nearest(text, names.iter().copied())
        })
    }
}

/// The tables of `[[name]]`, each converted by `read`.
pub fn each<T>(
    tree: &Node,
    name: &str,
    known: &'static [Key],
    mut read: impl FnMut(&Section<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(node) = tree.get(name) else { return Ok(Vec::new()) };
    let Ok(nodes) = node.list() else {
        return Err(wrong_type(node, "a list of tables")
            .help(format!("write [[{name}]] with two brackets on each side")));
    };
    let title = format!("[[{name}]]");
    nodes.iter().map(|node| read(&Section::new(&title, &node.place, node, known)?)).collect()
}

/// The error for a `node` that should be `expected`.
pub fn wrong_type(node: &Node, expected: &str) -> ConfigError {
    let message = format!("{} where {expected} belongs", node.kind());
    ConfigError::new(&node.place, message).expected(format!("expected {expected}"))
}
