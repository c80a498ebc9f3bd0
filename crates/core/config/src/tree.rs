//! A TOML text as a tree with the place of each value.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use crate::{ConfigError, Place, Source};

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The place of the value.
    pub place: Place,
    /// The value itself.
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// A number, as written.
    Number(String),
    /// True or false.
    Flag(bool),
    /// A date, a time or both, as written.
    Date(String),
    /// A list, or an array of tables.
    List(Vec<Node>),
    /// A table, its keys in the order of the text.
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub name: String,
    /// The place of the key.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Parses a text.
    pub fn of_text(text: &str) -> Result<Self, ConfigError> {
        let document = Document::parse(text).map_err(|error| of_toml(&error, text))?;
        let whole = Place::in_text(0..0);
        Ok(table(document.as_table(), &whole, &Place::in_text))
    }

    /// The value of an override `key=value`: a TOML value if valid, else a string.
    pub fn of_set(index: usize, key: &str, value: &str) -> Self {
        const PREFIX: &str = "v = ";
        let begin = key.len() + 1;
        let place = move |span: Range<usize>| Place {
            source: Source::Set(index),
            span: span.start + begin - PREFIX.len()..span.end + begin - PREFIX.len(),
        };
        let whole = place(PREFIX.len()..PREFIX.len() + value.len());
        match toml_value(value) {
            Some(found) => item(&found, &whole, &place),
            None => Self { place: whole, value: Value::Text(value.to_owned()) },
        }
    }

    /// The value as written, for axes and references.
    pub fn label(&self) -> String {
        match &self.value {
            Value::Text(text) | Value::Number(text) | Value::Date(text) => text.clone(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(nodes) => nodes.iter().map(Self::label).collect::<Vec<_>>().join(", "),
            Value::Table(entries) => {
                let entry = |entry: &Entry| format!("{} = {}", entry.name, entry.node.label());
                format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The name of the value's type, with an article.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Text(_) => "a string",
            Value::Number(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The entries of a table; none for other values.
    pub fn entries(&self) -> &[Entry] {
        if let Value::Table(entries) = &self.value { entries } else { &[] }
    }

    /// The node at `key` of a table.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.name == key).map(|entry| &entry.node)
    }

    /// The node at `key` of a table, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Value::Table(entries) = &mut self.value else { return None };
        entries.iter_mut().find(|entry| entry.name == key).map(|entry| &mut entry.node)
    }

    /// Inserts `node` at the path `keys`. Creates missing tables with `place`. Fails if a value on
    /// the path is not a table.
    pub fn put(&mut self, keys: &[String], place: &Place, node: Self) -> Result<(), ConfigError> {
        let Some((key, rest)) = keys.split_first() else {
            *self = node;
            return Ok(());
        };
        let Value::Table(entries) = &mut self.value else {
            let message = format!("`{key}` cannot be set: the place is not a table");
            return Err(ConfigError::new(&node.place, message));
        };
        if let Some(entry) = entries.iter_mut().find(|entry| entry.name == *key) {
            return entry.node.put(rest, place, node);
        }
        let mut made = Self { place: place.clone(), value: Value::Table(Vec::new()) };
        made.put(rest, place, node)?;
        entries.push(Entry { name: key.clone(), place: place.clone(), node: made });
        Ok(())
    }
}

/// Parses `text` as a TOML value.
pub fn toml_value(text: &str) -> Option<Item> {
    let document = Document::parse(format!("v = {text}")).ok()?;
    let only = document.as_table().len() == 1;
    document.as_table().get("v").filter(|item| only && item.is_value()).cloned()
}

fn of_toml(error: &toml_edit::TomlError, text: &str) -> ConfigError {
    let span = error.span().unwrap_or(text.len()..text.len());
    ConfigError::new(&Place::in_text(span), format!("not valid TOML: {}", error.message()))
        .help("see https://toml.io for the syntax")
}

/// The node of `item`; `otherwise` is its place if the parser reports none.
fn item(item: &Item, otherwise: &Place, place: &dyn Fn(Range<usize>) -> Place) -> Node {
    let own = item.span().map_or_else(|| otherwise.clone(), place);
    match item {
        Item::None => Node { place: own, value: Value::Table(Vec::new()) },
        Item::Value(found) => value(found, own, place),
        Item::Table(found) => table(found, otherwise, place),
        Item::ArrayOfTables(tables) => {
            let nodes = tables.iter().map(|found| {
                let own = found.span().map_or_else(|| otherwise.clone(), place);
                table(found, &own, place)
            });
            Node { place: otherwise.clone(), value: Value::List(nodes.collect()) }
        }
    }
}

fn value(found: &toml_edit::Value, own: Place, place: &dyn Fn(Range<usize>) -> Place) -> Node {
    use toml_edit::Value as Toml;
    let literal = |shown: String| shown.trim().to_owned();
    let value = match found {
        Toml::String(text) => Value::Text(text.value().clone()),
        Toml::Integer(number) => Value::Number(literal(number.display_repr().into_owned())),
        Toml::Float(number) => Value::Number(literal(number.display_repr().into_owned())),
        Toml::Boolean(flag) => Value::Flag(*flag.value()),
        Toml::Datetime(date) => Value::Date(date.value().to_string()),
        Toml::Array(array) => {
            let node = |found: &toml_edit::Value| {
                let own = found.span().map_or_else(|| own.clone(), place);
                value(found, own, place)
            };
            Value::List(array.iter().map(node).collect())
        }
        Toml::InlineTable(found) => return table(found, &own, place),
    };
    Node { place: own, value }
}

fn table(found: &dyn TableLike, own: &Place, place: &dyn Fn(Range<usize>) -> Place) -> Node {
    let entries = found.iter().map(|(name, below)| {
        let span = found.key(name).and_then(toml_edit::Key::span);
        let key = span.map_or_else(|| own.clone(), place);
        Entry { name: name.to_owned(), node: item(below, &key, place), place: key }
    });
    Node { place: own.clone(), value: Value::Table(entries.collect()) }
}
