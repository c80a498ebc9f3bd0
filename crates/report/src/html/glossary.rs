//! What the columns of the summary mean.

use crate::document::CompareDocument;
use crate::escape::escape;
use crate::metrics::Summary;

/// An entry for each group of columns that the summary has.
pub(super) fn section(document: &CompareDocument) -> String {
    let metrics = Summary::of(document).metrics;
    let groups = metrics.chunk_by(|a, b| a.group == b.group).map(|group| group[0].group);
    let entry = |group: &str| format!("<dt>{group}</dt><dd>{}</dd>\n", escape(meaning(group)));
    let entries: Vec<String> = groups.map(entry).collect();
    format!(
        "<section id=\"glossary\">\n<h2>What the columns mean</h2>\n<dl class=\"glossary\">\n{}</dl>\n\
         </section>\n",
        entries.concat()
    )
}

fn meaning(group: &str) -> &'static str {
    match group {
        "completion s" => {
            "Seconds from the start of a transfer, handshake included, to its last byte at the \
             receiver, over the transfers of all seeds: of ten, one is faster than p10, five are faster than p50 and nine \
             are faster than p90."
        }
        "goodput" => {
            "Payload that reached the receiver, per second of transfer, each byte counted once \
             however often it was sent. Of all flows together; for a flow of a mix, its own."
        }
        "link" => {
            "Share of the link: payload that reached the receiver, with its headers, over what the \
             bottleneck could carry in that time. Each byte is counted once however often it was \
             sent."
        }
        "RTT ms" => {
            "Round-trip times as the sender measured them: the path's own, plus the wait in queues. \
             p95: one sample in twenty was longer."
        }
        "queue ms" => {
            "How long packets waited in the bottleneck's queue. It delays everybody who shares the \
             bottleneck, not just the sender that filled it."
        }
        "resent" => {
            "Part of the payload sent that was sent again, after loss or on suspicion of it."
        }
        "RTOs" => {
            "Retransmission timeouts: the sender had to wait in silence, because too few \
             acknowledgements came back to tell what was lost."
        }
        "Jain" => {
            "Jain's fairness index of the flows' goodputs: 1 when all are equal, 1/n when one of n \
             flows takes everything."
        }
        _ => "A flow's part of the goodput of its mix.",
    }
}
