//! The verdicts as a document: `docs/schemas/policy-ecn-1.json`.

use serde::Serialize;

use crate::network::NetworkEvidence;
use crate::networks::Networks;
use crate::verdict::{Bottleneck, Verdict};

const SCHEMA: &str = "uncork.policy-ecn/1";

/// The verdict of each client network at one time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EcnDocument<'a> {
    /// Version of this format.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Time of the verdicts, in seconds since 1970 (UTC).
    as_of_unix_s: u64,
    /// Connections that do not count because they ended after that time.
    later: u64,
    /// By name.
    networks: Vec<NetworkDocument<'a>>,
}

/// A client network.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NetworkDocument<'a> {
    /// Its name: `203.0.113.0/24`.
    network: &'a str,
    /// The kind of its bottleneck.
    bottleneck: Bottleneck,
    /// The policy's setting `ecn`: `l4s`, `classic` or `none`; null leaves the policy's default.
    ecn: Option<&'static str>,
    /// The verdict with its evidence, in words.
    reason: String,
    /// End of its newest connection, in seconds since 1970 (UTC).
    newest_unix_s: u64,
    /// When its verdict expires without a newer connection, in seconds since 1970 (UTC).
    expires_unix_s: u64,
    /// Connections that sent ECT(1) and ended in the seven days before that time. Of one hour, they have one vote.
    flows: u32,
    /// Of these, connections with marks at a short queue.
    l4s: u32,
    /// Connections with marks at a standing queue.
    classic: u32,
    /// Connections without working ECN.
    no_ecn: u32,
    /// Connections that found a classic queue themselves.
    fell_back: u32,
    /// The mean of the smallest queue that was marked in a round trip, in milliseconds; null without marks.
    marked_queue_ms: Option<f64>,
}

impl Networks {
    /// The verdicts of all networks.
    pub fn document(&self) -> EcnDocument<'_> {
        let networks = self
            .dated_verdicts()
            .map(|(network, verdict, newest_unix_s)| document(network, &verdict, newest_unix_s));
        EcnDocument {
            schema: SCHEMA,
            as_of_unix_s: self.as_of_unix_s(),
            later: self.later(),
            networks: networks.collect(),
        }
    }
}

fn document<'a>(network: &'a str, verdict: &Verdict, newest_unix_s: u64) -> NetworkDocument<'a> {
    let NetworkEvidence { flows, l4s, classic, no_ecn, fell_back, .. } = verdict.evidence;
    NetworkDocument {
        network,
        bottleneck: verdict.bottleneck,
        ecn: verdict.bottleneck.ecn(),
        reason: verdict.to_string(),
        newest_unix_s,
        expires_unix_s: newest_unix_s.saturating_add(Networks::MAX_AGE_S),
        flows,
        l4s,
        classic,
        no_ecn,
        fell_back,
        marked_queue_ms: verdict.evidence.marked_queue_ms(),
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_schema;

    use super::*;
    use crate::flow::FlowEvidence;

    #[test]
    fn schema_is_current() {
        assert_schema!(EcnDocument<'_>, "policy-ecn-1", "`uncork policy ecn --format json`");
    }

    #[test]
    fn network_without_a_verdict_is_listed_with_its_reason_and_expiry() {
        let mut networks = Networks::new(2_000);
        networks.add("192.0.2.0/24", &FlowEvidence::default(), 1_000);
        networks.add("192.0.2.0/24", &FlowEvidence::default(), 2_001);
        let document = serde_json::to_value(networks.document()).expect("JSON");
        assert_eq!(document["later"], 1);
        let network = &document["networks"][0];
        assert_eq!(network["bottleneck"], "unknown");
        assert_eq!(network["ecn"], serde_json::Value::Null);
        assert_eq!(network["expires_unix_s"], 1_000 + 7 * 86_400);
        assert_eq!(network["flows"], 1);
        assert!(network["reason"].as_str().is_some_and(|it| it.contains("unknown")), "{network}");
    }
}
