//! Our deployments are strict by default: an operator who wants less says so.

use serde_json::{Value, json};

use super::compose::services;
use super::{after, read, shipped};

/// Keys of the configuration, and what they are set to.
const STRICT: [(&str, &str, &str); 4] = [
    ("DATABASE", "ROW_SECURITY", "true"),
    ("DECISIONS", "VERIFY", "required"),
    ("ARTIFACTS", "OPEN", "false"),
    ("PAIRING", "REQUIRED", "true"),
];

#[test]
fn compose_and_the_unit_set_what_is_strict() {
    let gateway = &services()["gateway"];
    let unit = read("deploy/countersign.service");
    for (section, key, value) in STRICT {
        let variable = format!("COUNTERSIGN_{section}__{key}");
        assert_eq!(
            gateway["environment"][&variable],
            json!(value),
            "{variable}"
        );
        let line = format!("\nEnvironment={variable}={value}\n");
        assert!(unit.contains(&line), "{variable}");
        // The last of several would count.
        assert_eq!(unit.matches(&variable).count(), 1, "{variable}");
    }
}

#[test]
fn the_chart_sets_what_is_strict() {
    let values: Value =
        serde_saphyr::from_str(&read("deploy/helm/countersign/values.yaml")).unwrap();
    for (section, key, value) in STRICT {
        let (section, key) = (section.to_lowercase(), key.to_lowercase());
        let set = match (section.as_str(), key.as_str()) {
            // The chart's own value, since migrations depend on it.
            ("database", "row_security") => &values["database"]["rowSecurity"],
            _ => &values["config"][&section][&key],
        };
        let set = set.as_str().map_or(set.to_string(), str::to_owned);
        assert_eq!(set, value, "{section}.{key}");
    }
    // And passes it on.
    let nodes = read("deploy/helm/countersign/templates/deployment.yaml");
    let row_security = after(&nodes, "COUNTERSIGN_DATABASE__ROW_SECURITY\n");
    assert_eq!(
        row_security,
        "value: {{ .Values.database.rowSecurity | quote }}"
    );
    assert!(nodes.contains("            {{- include \"countersign.config\" . | nindent 12 }}\n"));
}

/// Each is told in the guide, with how to relax it.
#[test]
fn the_guide_tells_what_is_strict() {
    let guide = read("docs/operations.md");
    let (_, section) = guide.split_once("\n## Strict settings\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    for (name, key, _) in STRICT {
        let row = format!("\n| `{}.{} = ", name.to_lowercase(), key.to_lowercase());
        assert!(section.contains(&row), "{row}");
    }
}

/// An unbound key acts as every id of its role: no command that we print makes one.
#[test]
fn the_commands_that_we_print_make_bound_credentials() {
    let mut commands = 0;
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let Some((_, command)) = line.split_once("countersign credential create --") else {
                continue;
            };
            let bound = command.contains("--bound-id ") || command.contains("--role admin");
            assert!(bound, "{}: {line}", path.display());
            commands += 1;
        }
    }
    assert!(commands >= 6, "{commands}");
}
