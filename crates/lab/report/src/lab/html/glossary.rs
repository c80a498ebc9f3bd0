//! Explanations of the result columns.

use crate::escape::escape;
use crate::lab::document::LabDocument;

/// Prefix of the metric names, name in the table, and explanation of each quantity.
const MEANINGS: [(&str, &str, &str); 17] = [
    (
        "completion",
        "completion",
        "Time from the start of a transfer, handshake included, or of a request to its last byte.",
    ),
    (
        "first_byte",
        "first byte",
        "Time from the start of a transfer or of a request to its first byte.",
    ),
    ("playback_latency", "playback latency", "Time from the click to sound or picture."),
    ("stutters", "stutters", "Interruptions of playback for want of data, for each song or film."),
    ("stalled", "stalled", "Share of the playback time spent in such interruptions."),
    ("played_rate", "played rate", "Mean encoded rate that was played."),
    ("switches", "switches", "Changes of the encoded rate, for each viewer."),
    (
        "bandwidth",
        "bandwidth",
        "Payload of a transfer or a client's requests over the time that they took. p10: nine of ten are faster.",
    ),
    (
        "goodput",
        "goodput",
        "Payload that reached the receiver per second, each byte counted once however often it was sent. sum: of all flows together.",
    ),
    (
        "utilisation",
        "utilisation",
        "Payload that reached the receiver, with its headers, over what the bottleneck could carry in that time.",
    ),
    (
        "share",
        "share",
        "Part of what all flows that share links deliver. min and max: over the orders of starts, where the order decides. Then the mean says little.",
    ),
    (
        "jain",
        "Jain",
        "Jain's fairness index of the flows' goodputs: 1 when all are equal, 1/n when one of n flows takes everything.",
    ),
    (
        "rtt",
        "RTT",
        "Round-trip times as the sender measured them: the path's own, plus the wait in queues. p95: one sample in twenty was longer.",
    ),
    (
        "queue_delay",
        "queue delay",
        "Time that packets waited in queues. It delays all flows that share the bottleneck, not just the sender that filled it.",
    ),
    (
        "retransmitted",
        "retransmitted",
        "Part of the payload sent that was sent again, after loss or on suspicion of it.",
    ),
    ("dropped", "dropped", "Packets that queues and policers dropped over packets sent."),
    (
        "timeouts",
        "timeouts",
        "Retransmission timeouts of a flow: too few acknowledgements came back to detect the losses.",
    ),
];

/// An entry for each quantity in the results.
pub(super) fn section(document: &LabDocument) -> String {
    let classes = || document.cells.iter().flat_map(|cell| &cell.classes);
    let has = |name: &str| {
        let mut metrics = classes().flat_map(|class| &class.metrics);
        metrics.any(|metric| metric.name.starts_with(name))
    };
    let known = MEANINGS.iter().filter(|(name, ..)| has(name));
    let entry = |(_, term, meaning): &(&str, &str, &str)| {
        format!("<dt>{term}</dt><dd>{}</dd>\n", escape(meaning))
    };
    let entries: String = known.map(entry).collect();
    if entries.is_empty() {
        return entries;
    }
    format!(
        "<section id=\"glossary\">\n<h2>What the columns mean</h2>\n<dl class=\"glossary\">\n{entries}</dl>\n\
         </section>\n"
    )
}
