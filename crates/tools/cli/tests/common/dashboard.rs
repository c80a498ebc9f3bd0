//! The dashboards for Grafana.

use std::fs;

use serde_json::Value;

/// That of hosts and servers.
pub const HOSTS: &str = "uncork-host.json";
/// That of a fleet.
pub const FLEET: &str = "uncork-fleet.json";

/// A panel with queries.
pub struct Panel {
    pub title: String,
    pub description: String,
    /// With values for the dashboard's variables.
    pub queries: Vec<String>,
}

fn dashboard(name: &str) -> Value {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/grafana");
    serde_json::from_str(&fs::read_to_string(format!("{directory}/{name}")).unwrap()).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// `query` with everything for each variable.
fn with_values(dashboard: &Value, query: &str) -> String {
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let names = variables.map(|variable| text(&variable["name"]));
    let set = |query: String, name: String| query.replace(&format!("\"${name}\""), "\".+\"");
    names.fold(query.replace("$__rate_interval", "1m"), set)
}

/// The panels of a dashboard that have queries.
pub fn panels(name: &str) -> Vec<Panel> {
    let dashboard = dashboard(name);
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let panel = |panel: &Value| {
        let queries = panel["targets"].as_array()?.iter();
        let queries = queries.map(|target| with_values(&dashboard, &text(&target["expr"])));
        let (title, description) = (text(&panel["title"]), text(&panel["description"]));
        Some(Panel { title, description, queries: queries.collect() })
    };
    panels.filter_map(panel).collect()
}

/// For each variable of a dashboard that asks Prometheus, a query for its values: `label_values(METRIC, LABEL)` is of Grafana.
pub fn variables(name: &str) -> Vec<String> {
    let dashboard = dashboard(name);
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let query = |variable: &Value| {
        let inner = text(&variable["definition"]);
        let (metric, label) =
            inner.strip_prefix("label_values(")?.strip_suffix(')')?.rsplit_once(", ")?;
        Some(format!("count by ({label}) ({})", with_values(&dashboard, metric)))
    };
    variables.filter_map(query).collect()
}
