//! What a `Priority` header says, by another parser of structured fields.

use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};
use uncork_h3::Priority;

/// RFC 9218 §4 and §5 on what `sfv` reads.
fn model(text: &[u8]) -> Priority {
    let Ok(members) = Parser::new(text).parse::<Dictionary>() else { return Priority::default() };
    let item = |key: &str| match members.get(key) {
        Some(ListEntry::Item(Item { bare_item, .. })) => Some(bare_item.clone()),
        _ => None,
    };
    let urgency = match item("u") {
        Some(BareItem::Integer(urgency)) => {
            u8::try_from(i64::from(urgency)).ok().filter(|it| *it < 8)
        }
        _ => None,
    };
    Priority {
        urgency: urgency.unwrap_or(3),
        incremental: matches!(item("i"), Some(BareItem::Boolean(true))),
    }
}

pub(crate) fn compare(text: &[u8]) -> Priority {
    let priority = Priority::parse(text);
    assert_eq!(priority, model(text), "{}", text.escape_ascii());
    priority
}
