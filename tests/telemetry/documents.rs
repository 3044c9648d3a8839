//! `docs/telemetry.md`, the dashboard and the alerts match the metrics of a node.

use std::collections::{BTreeMap, BTreeSet};

use countersign::telemetry::metrics::DEFINITIONS;
use serde_json::Value;

use crate::support::Cluster;
use crate::support::scrape::{scrape, whole};

const GUIDE: &str = include_str!("../../docs/telemetry.md");

/// A metric as the guide or the code describes it.
type Described = BTreeMap<String, [String; 3]>;

fn in_guide() -> Described {
    let rows = GUIDE
        .lines()
        .filter(|line| line.starts_with("| `countersign_"));
    let mut described = Described::new();
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, kind, labels, meaning] = cells[..] else {
            panic!("{row}")
        };
        let labels = labels.replace(['`', '–'], "");
        let row = [kind.to_owned(), labels, meaning.to_owned()];
        let twice = described.insert(name.replace('`', ""), row);
        assert!(twice.is_none(), "{name} is listed twice");
    }
    described
}

fn in_code() -> Described {
    let described = DEFINITIONS.iter().map(|definition| {
        let row = [
            definition.kind.to_owned(),
            definition.labels.join(", "),
            definition.help.to_owned(),
        ];
        (definition.name.to_owned(), row)
    });
    described.collect()
}

#[test]
fn the_guide_names_every_metric_and_no_other() {
    assert_eq!(in_guide(), in_code());
}

const DASHBOARD: &str = include_str!("../../deploy/grafana/countersign.json");
const ALERTS: &str = include_str!("../../deploy/prometheus/alerts.yml");

/// Every metric name in a text, with its suffix.
fn names(text: &str) -> BTreeSet<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.match_indices("countersign_").map(|(at, _)| at);
    let names = starts.map(|at| {
        let rest = &text[at..];
        &rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())]
    });
    names.collect()
}

/// The labels by which an expression groups or selects.
fn labels(expression: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for group in expression.split("by (").skip(1) {
        let group = group.split(')').next().unwrap();
        found.extend(group.split(',').map(str::trim));
    }
    for selector in expression.split('{').skip(1) {
        let selector = selector.split('}').next().unwrap();
        let equals = selector.match_indices(['=', '!']);
        let before =
            equals.filter_map(|(at, _)| selector[..at].rsplit(['{', ',', '"', ' ']).next());
        found.extend(before.filter(|label| !label.is_empty() && !label.ends_with(['!', '='])));
    }
    found
}

/// Every expression of the dashboard and of the alerts.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let mut found: Vec<_> = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    for rule in ALERTS.split("- alert:").skip(1) {
        let expression = rule.split("expr:").nth(1).unwrap();
        found.push(expression.split("for:").next().unwrap().replace(">-", ""));
        for part in ["severity:", "summary:", "description: >-"] {
            assert!(rule.contains(part), "{rule}");
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_and_alerts_ask_for_what_a_node_shows() {
    let cluster = Cluster::start(1).await;
    let read = scrape(&cluster.nodes[0].metrics).await;
    for (name, [kind, _, help]) in in_code() {
        assert_eq!(read.types.get(&name), Some(&kind), "{name}");
        assert_eq!(read.helps.get(&name), Some(&help), "{name}");
    }
    let decisions = "countersign_decision_latency_seconds_count";
    assert_eq!(whole(read.value(decisions, &[])), 0, "at zero, not absent");
    let mut asked = BTreeSet::new();
    for expression in expressions() {
        let mut known = BTreeSet::from(["instance", "job", "le"].map(str::to_owned));
        for name in names(&expression) {
            let suffixes = ["_bucket", "_sum", "_count"];
            let base = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
            let base = base.filter(|base| {
                read.types
                    .get(*base)
                    .is_some_and(|kind| kind == "histogram")
            });
            let base = base.unwrap_or(name);
            let kind = read
                .types
                .get(base)
                .unwrap_or_else(|| panic!("{name} in {expression}"));
            assert_eq!(kind == "histogram", base != name, "{name} in {expression}");
            asked.insert(base.to_owned());
            let described = &in_code()[base];
            known.extend(described[1].split(", ").map(str::to_owned));
        }
        for label in labels(&expression) {
            assert!(known.contains(label), "{label} in {expression}");
        }
    }
    // Every metric is used, except the start time.
    let mut unseen: Vec<_> = read
        .types
        .keys()
        .filter(|name| !asked.contains(*name))
        .collect();
    unseen.retain(|name| *name != "countersign_start_time_seconds");
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn the_dashboard_is_one_that_grafana_takes() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    assert_eq!(dashboard["uid"], "countersign");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{panel}");
        for column in at("x")..at("x") + at("w") {
            for line in at("y")..at("y") + at("h") {
                assert!(
                    taken.insert((column, line)),
                    "panels overlap: {}",
                    panel["title"]
                );
            }
        }
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
        }
    }
}
