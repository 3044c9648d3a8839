//! The files that we ship besides the binary agree with it: every variable is a key of the
//! configuration, versions are one version, and nobody is less patient than a node that drains.

pub mod compose;
mod nginx;
mod release;
mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign::config::Config;
use serde_json::Value;

pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The volumes of the first start.
pub const VOLUMES: [&str; 4] = ["gateway", "migrate", "database", "balancer"];

pub fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|_| panic!("{path}"))
}

/// Every file in `deploy/` and `docs/`, and the compose file.
pub fn shipped() -> Vec<PathBuf> {
    let mut files = vec![Path::new(ROOT).join("docker-compose.yml")];
    let mut directories: Vec<_> = ["deploy", "docs"]
        .map(|directory| Path::new(ROOT).join(directory))
        .into();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_none_or(|it| it != "png") {
                files.push(path);
            }
        }
    }
    files
}

/// The text after a word, up to the end of its line.
fn after<'a>(text: &'a str, word: &str) -> &'a str {
    let (_, rest) = text
        .split_once(word)
        .unwrap_or_else(|| panic!("no {word:?}"));
    rest.lines().next().unwrap().trim().trim_matches('"')
}

/// The seconds that follow a word, written as `30`, `30s` or `500ms`.
fn seconds(text: &str, word: &str) -> f64 {
    let rest = after(text, word);
    let digits = rest.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = rest.split_at(digits.unwrap_or(rest.len()));
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("{word}: {rest}"));
    if unit.starts_with("ms") {
        number / 1_000.0
    } else {
        number
    }
}

#[test]
fn every_variable_we_ship_is_a_key_of_the_configuration() {
    let known = serde_json::to_value(Config::default()).unwrap();
    let mut seen = BTreeSet::new();
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        for rest in text.split("COUNTERSIGN_").skip(1) {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let Some((section, key)) = rest[..end.unwrap_or(rest.len())].split_once("__") else {
                continue;
            };
            let (section, key) = (section.to_lowercase(), key.to_lowercase());
            // The chart's own way to name any key.
            if section.is_empty() || key.is_empty() {
                continue;
            }
            // A section may have sections.
            let mut value = known.get(&section);
            for part in key.split("__") {
                value = value.and_then(|keys| keys.get(part));
            }
            let is_key = value.is_some();
            assert!(is_key, "{}: {section}.{key}", path.display());
            seen.insert(format!("{section}.{key}"));
        }
    }
    for expected in ["database.url_file", "tls.proxies", "server.drain_seconds"] {
        assert!(seen.contains(expected), "{seen:?}");
    }
}

/// The compose file's own variables are told at its head, and no others.
#[test]
fn every_variable_of_the_compose_file_is_explained() {
    let text = read("docker-compose.yml");
    let (head, body) = text.split_once("\nname:").unwrap();
    let explained: BTreeSet<&str> = head
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("COUNTERSIGN_"))
        .collect();
    let used: BTreeSet<&str> = body
        .split("${")
        .skip(1)
        .map(|rest| rest.split([':', '}']).next().unwrap())
        .collect();
    assert_eq!(explained, used);
}

#[test]
fn versions_are_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = read("deploy/helm/countersign/Chart.yaml");
    assert_eq!(after(&chart, "\nversion: "), version);
    assert_eq!(after(&chart, "\nappVersion: "), version);
    let compose = read("docker-compose.yml");
    let images: Vec<&str> = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("image: countersign:"))
        .collect();
    assert!(!images.is_empty() && images.iter().all(|tag| *tag == version));
    let build = read("deploy/README.md");
    assert_eq!(after(&build, " -t countersign:"), format!("{version} .` |"));
    let minor = |text: &str| text.split('.').nth(1).unwrap().parse::<u32>().unwrap();
    let image = read("deploy/Dockerfile");
    let (compiler, _) = after(&image, "FROM rust:").split_once('-').unwrap();
    assert!(
        minor(compiler) >= minor(env!("CARGO_PKG_RUST_VERSION")),
        "the image's compiler is new enough"
    );
}

#[test]
fn nobody_is_less_patient_than_a_node() {
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let key = |section: &str, key: &str| {
        let config = serde_json::to_value(Config::default()).unwrap();
        config[section][key].as_u64().unwrap() as f64
    };
    let drain = key("server", "drain_seconds");
    let compose = read("docker-compose.yml");
    let (_, gateway) = compose.split_once("\n  gateway:\n").unwrap();
    assert!(seconds(gateway, "stop_grace_period: ") > drain);
    let unit = read("deploy/countersign.service");
    assert!(seconds(&unit, "TimeoutStopSec=") > drain);
    let values = read("deploy/helm/countersign/values.yaml");
    let (_, chart_drain) = values.split_once("\ndrain:\n").unwrap();
    assert!((seconds(chart_drain, "\n  seconds: ") - drain).abs() < f64::EPSILON);
    let chart = read("deploy/helm/countersign/templates/deployment.yaml");
    let told = after(&chart, "COUNTERSIGN_SERVER__DRAIN_SECONDS\n");
    assert_eq!(told, "value: {{ .Values.drain.seconds | quote }}");
    let grace = after(&chart, "terminationGracePeriodSeconds: ");
    let parts = "{{ add .Values.drain.preStopSeconds .Values.drain.seconds ";
    let room = grace.strip_prefix(parts).expect("more than both");
    assert_ne!(room, "0 }}");

    let balancer = read("deploy/haproxy/haproxy.cfg");
    let wait = key("limits", "wait_max_seconds");
    // Those around it: the balancer has a drain of its own, and the database waits for the nodes.
    let after_service = |name: &str| compose.split_once(name).unwrap().1;
    let grace = |name: &str| seconds(after_service(name), "stop_grace_period: ");
    assert!(grace("\n  balancer:\n") > seconds(&balancer, "hard-stop-after "));
    assert!(grace("\n  postgres:\n") > grace("\n  gateway:\n"));
    assert!(seconds(&balancer, "timeout client ") > wait);
    assert!(seconds(&balancer, "timeout server ") > wait);
    assert!(seconds(&balancer, "timeout tunnel ") > key("push", "idle_seconds"));
    // It is seen to stop while it still takes connections: one round to the first answer, another,
    // and the answers themselves.
    let seen = seconds(&balancer, "check inter ") + seconds(&balancer, "fastinter ");
    assert!(2.0 * seen < key("server", "lame_duck_ms") / 1_000.0);
    let nginx = read("deploy/nginx/nginx.conf");
    // The side that keeps connections for later calls closes them first: balancers, and clients as
    // they come.
    let idle = key("server", "idle_timeout_seconds");
    assert!(seconds(&nginx, "keepalive_timeout ") < idle);
    assert!(seconds(&balancer, "timeout http-keep-alive ") < idle);
    assert!(90.0 < idle, "as long as clients in Rust and Go keep them");
    assert!(seconds(&nginx, "proxy_read_timeout ") > key("push", "idle_seconds").max(wait));
}

/// Runs the script of the first start in a directory, with a directory in it for each volume.
pub fn first_start(directory: &Path) {
    for volume in VOLUMES {
        std::fs::create_dir_all(directory.join(volume)).unwrap();
    }
    let output = Command::new("sh")
        .arg(Path::new(ROOT).join("deploy/compose/first-start"))
        .env("SECRETS", directory)
        .env("NAME", "gateway.example")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn the_first_start_makes_secrets_once() {
    let directory = tempfile::tempdir().unwrap();
    let all = || -> Vec<(PathBuf, String)> {
        let files = VOLUMES.iter().flat_map(|volume| {
            let files = std::fs::read_dir(directory.path().join(volume)).unwrap();
            files.map(|file| file.unwrap().path())
        });
        files
            .map(|file| (file.clone(), std::fs::read_to_string(file).unwrap()))
            .collect()
    };
    first_start(directory.path());
    let made = all();
    assert_eq!(made.len(), 10, "{made:?}");
    let different: BTreeSet<&String> = made.iter().map(|(_, text)| text).collect();
    assert_eq!(different.len(), made.len(), "no two are alike");
    for (path, _) in &made {
        let mode = path.metadata().unwrap().mode() & 0o777;
        // Those of the image's own user; others are read by the users of other images.
        let own = ["gateway", "migrate"].map(|volume| path.parent().unwrap().ends_with(volume));
        let expected = if own.contains(&true) { 0o400 } else { 0o444 };
        assert_eq!(mode, expected, "{}", path.display());
    }
    // Existing secrets stay, lost ones are made again; certificate and authority go together.
    let certificate = ["balancer/ca.pem", "balancer/server.pem"];
    let passwords = ["application", "owner", "reader", "superuser"];
    let mut made: BTreeMap<_, _> = made.into_iter().collect();
    for (lost, renewed) in [
        (None, &[][..]),
        (Some("gateway/operator-key"), &["gateway/operator-key"]),
        (Some("gateway/cluster-secret"), &["gateway/cluster-secret"]),
        (Some("balancer/ca.pem"), &certificate),
        (Some("balancer/server.pem"), &certificate),
    ] {
        if let Some(lost) = lost {
            std::fs::remove_file(directory.path().join(lost)).unwrap();
        }
        first_start(directory.path());
        let now: BTreeMap<_, _> = all().into_iter().collect();
        assert!(now.keys().eq(made.keys()), "{lost:?}");
        for (path, text) in &now {
            let renewed = renewed.iter().any(|name| path.ends_with(name));
            assert_eq!(*text != made[path], renewed, "{lost:?}: {}", path.display());
        }
        let verified = Command::new("openssl")
            .args(["verify", "-verify_hostname", "gateway.example", "-CAfile"])
            .args(certificate.map(|name| directory.path().join(name)))
            .output()
            .unwrap();
        assert!(verified.status.success(), "{lost:?}: {verified:?}");
        made = now;
    }
    for role in passwords {
        let password = &made[&directory.path().join("database").join(role)];
        assert_eq!(password.trim().len(), 64, "{role}");
    }
}

/// The names in a schema, down to where it lets anything pass.
fn names_in(schema: &Value, prefix: &str, names: &mut BTreeSet<String>) {
    let properties = schema["properties"].as_object();
    for (name, inner) in properties.into_iter().flatten() {
        let path = format!("{prefix}{name}");
        names_in(inner, &format!("{path}."), names);
        names.insert(path);
    }
}

/// The chart's schema names every value there is, and no other.
#[test]
fn the_charts_schema_names_every_value() {
    let schema: Value =
        serde_json::from_str(&read("deploy/helm/countersign/values.schema.json")).unwrap();
    let mut known = BTreeSet::new();
    names_in(&schema, "", &mut known);
    // Helm's own.
    known.remove("global");
    let text = read("deploy/helm/countersign/values.yaml");
    let (mut found, mut path) = (BTreeSet::new(), Vec::new());
    for line in text.lines() {
        let word = line.trim_start();
        if !word.starts_with(|c: char| c.is_ascii_lowercase()) {
            continue;
        }
        path.truncate((line.len() - word.len()) / 2);
        let holder = path.join(".");
        path.push(word.split(':').next().unwrap());
        // Keys below a name that the schema does not describe further are free.
        let described = |name: &String| name.starts_with(&format!("{holder}."));
        if holder.is_empty() || known.iter().any(described) {
            found.insert(path.join("."));
        }
    }
    assert_eq!(found, known);
}

/// The alert for a node that is down goes by the job, which the chart names after itself.
#[test]
fn the_alerts_know_the_charts_job() {
    let chart = read("deploy/helm/countersign/Chart.yaml");
    let job = format!("job=\"{}\"", after(&chart, "\nname: "));
    assert!(read("deploy/prometheus/alerts.yml").contains(&job), "{job}");
    let monitor = read("deploy/helm/countersign/templates/monitoring.yaml");
    assert_eq!(after(&monitor, "jobLabel: "), "app.kubernetes.io/name");
    let labels = read("deploy/helm/countersign/templates/_helpers.tpl");
    assert_eq!(
        after(&labels, "app.kubernetes.io/name: "),
        "{{ .Chart.Name }}"
    );
}
