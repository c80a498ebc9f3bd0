//! Rules, tags and their evaluation.

mod table;
mod tests;

pub(crate) use table::render;

/// Requirement level of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Must,
    Should,
    May,
}

impl Level {
    pub(crate) const ALL: [Self; 3] = [Self::Must, Self::Should, Self::May];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        }
    }
}

/// Why a rule needs no code in this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It applies to the host of a controller.
    Host(String),
    /// It is not followed, or the option is not used.
    Exception(String),
}

/// A rule of a specification.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) id: String,
    pub(crate) level: Level,
    pub(crate) text: String,
    pub(crate) reason: Option<Reason>,
}

/// A section and its rules.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) rules: Vec<Rule>,
}

/// A specification: a file in `spec`.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Its name in tags.
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) sections: Vec<Section>,
}

impl Spec {
    /// Reads `title: …`, `§ 5.3 Section`, `5.3-1 MUST Rule.`, and below a rule `host: …` or
    /// `exception: …`; `#` begins a comment.
    pub(crate) fn parse(key: &str, text: &str) -> Result<Self, String> {
        let mut spec = Self { key: key.to_owned(), title: String::new(), sections: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            if !line.is_empty() && !line.starts_with('#') {
                spec.take(line).map_err(|error| format!("{key}.txt:{}: {error}", number + 1))?;
            }
        }
        Ok(spec)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(title) = line.strip_prefix("title: ") {
            title.clone_into(&mut self.title);
        } else if let Some(title) = line.strip_prefix("§ ") {
            self.sections.push(Section { title: title.to_owned(), rules: Vec::new() });
        } else if let Some(reason) = line.strip_prefix("  ") {
            let rule = self.sections.last_mut().and_then(|section| section.rules.last_mut());
            let rule = rule.ok_or("a reason without a rule")?;
            rule.reason = Some(parse_reason(reason)?);
        } else {
            let rule = parse_rule(line)?;
            if self.rules().any(|known| known.id == rule.id) {
                return Err(format!("{} is there twice", rule.id));
            }
            self.sections.last_mut().ok_or("a rule outside a section")?.rules.push(rule);
        }
        Ok(())
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.sections.iter().flat_map(|section| &section.rules)
    }
}

fn parse_reason(text: &str) -> Result<Reason, String> {
    match text.split_once(": ") {
        Some(("host", reason)) => Ok(Reason::Host(reason.to_owned())),
        Some(("exception", reason)) => Ok(Reason::Exception(reason.to_owned())),
        _ => Err(format!("neither host nor exception: {text}")),
    }
}

fn parse_rule(line: &str) -> Result<Rule, String> {
    let mut words = line.splitn(3, ' ');
    let (Some(id), Some(level), Some(text)) = (words.next(), words.next(), words.next()) else {
        return Err(format!("no rule: {line}"));
    };
    let level = Level::ALL.into_iter().find(|known| known.name() == level);
    let level = level.ok_or_else(|| format!("{id} has no level"))?;
    Ok(Rule { id: id.to_owned(), level, text: text.to_owned(), reason: None })
}

/// An item of the source tagged with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) spec: String,
    pub(crate) rule: String,
    pub(crate) is_test: bool,
    pub(crate) file: String,
    pub(crate) item: String,
}

impl Tag {
    /// The tags of a source file.
    pub(crate) fn scan(file: &str, source: &str) -> Result<Vec<Self>, String> {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let mut tags = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let Some(line) = line.strip_prefix("//= ") else { continue };
            let at = |error: &str| format!("{file}:{}: {error}", index + 1);
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let is_test = words.last() == Some(&"test");
            words.truncate(words.len() - usize::from(is_test));
            let [spec, rules @ ..] = &words[..] else { return Err(at("an empty tag")) };
            let item = item_below(&lines[index + 1..]);
            let item = item.ok_or_else(|| at("a tag above nothing that has a name"))?;
            if is_test && !is_directly_above_fn(&lines[index + 1..]) {
                return Err(at(TOO_HIGH));
            }
            if is_test != is_at_test(&lines, index) {
                return Err(at(NOT_OF_A_TEST));
            }
            tags.extend(rules.iter().map(|&rule| Self {
                spec: (*spec).to_owned(),
                rule: rule.to_owned(),
                is_test,
                file: file.to_owned(),
                item: item.to_owned(),
            }));
        }
        Ok(tags)
    }

    fn claims(&self, spec: &Spec, rule: &Rule) -> bool {
        self.spec == spec.key && self.rule == rule.id
    }
}

/// If it were higher, a newly added test could come between the tag and its own test.
const TOO_HIGH: &str = "the tag of a test stands directly above its `fn`: move it below `#[test]` \
                        and all other attributes";

const NOT_OF_A_TEST: &str = "`test` at the end belongs to tags of tests, and to no others";

fn is_prelude(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("#[")
}

/// The name of the item that these lines begin with.
fn item_below<'a>(lines: &[&'a str]) -> Option<&'a str> {
    lines.iter().find(|line| !is_prelude(line)).and_then(|line| name_of(line))
}

/// Whether these lines have a function right after any further tags.
fn is_directly_above_fn(lines: &[&str]) -> bool {
    lines.iter().find(|line| !line.starts_with("//= ")).is_some_and(|line| line.starts_with("fn "))
}

/// Whether the comments and attributes around this line belong to a test.
fn is_at_test(lines: &[&str], index: usize) -> bool {
    let above = lines[..index].iter().rev().take_while(|line| is_prelude(line));
    let below = lines[index..].iter().take_while(|line| is_prelude(line));
    above.chain(below).any(|line| *line == "#[test]")
}

fn name_of(line: &str) -> Option<&str> {
    let keywords = ["fn ", "struct ", "enum ", "static ", "type ", "const "];
    let after = |keyword: &str| {
        let at = line.find(keyword)?;
        let is_word = at == 0 || line[..at].ends_with(' ');
        is_word.then(|| &line[at + keyword.len()..])
    };
    let rest = keywords.into_iter().find_map(after)?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The items tagged with a rule, either code or tests.
pub(crate) fn claims<'a>(
    tags: &'a [Tag],
    spec: &'a Spec,
    rule: &'a Rule,
    is_test: bool,
) -> impl Iterator<Item = &'a Tag> {
    tags.iter().filter(move |tag| tag.is_test == is_test && tag.claims(spec, rule))
}

/// The problems found, one line each.
pub(crate) fn problems(specs: &[Spec], tags: &[Tag]) -> Vec<String> {
    let mut problems = Vec::new();
    for tag in tags {
        let spec = specs.iter().find(|spec| spec.key == tag.spec);
        if !spec.is_some_and(|spec| spec.rules().any(|rule| rule.id == tag.rule)) {
            problems.push(format!(
                "{}: {} claims {} {}, which is not a known rule",
                tag.file, tag.item, tag.spec, tag.rule
            ));
        }
    }
    for spec in specs {
        for rule in spec.rules() {
            let has = |is_test| claims(tags, spec, rule, is_test).next().is_some();
            let what = match (rule.reason.is_some(), has(false), has(true)) {
                (true, false, false) | (false, true, true) => continue,
                (true, ..) => "a reason to have none, and a tag",
                (false, false, true) => "a test, but no code",
                (false, true, false) => "code, but no test",
                (false, false, false) => "neither code nor test nor a reason",
            };
            problems.push(format!("{} {} {} has {what}", spec.key, rule.id, rule.level.name()));
        }
    }
    problems
}
