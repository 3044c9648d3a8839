//! The documents are true: their commands run as printed, their configuration and SQL are valid,
//! their links resolve.

use std::path::{Path, PathBuf};
use std::process::Command;

use countersign::config::Config;
use figment::Figment;
use figment::providers::{Format as _, Toml};

use crate::support::Cluster;
use crate::support::process::{Process, countersign};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// More would not be read in five minutes.
const README_LINES: usize = 150;

struct Document {
    path: PathBuf,
    text: String,
}

impl Document {
    fn read(path: impl AsRef<Path>) -> Self {
        let path = Path::new(ROOT).join(path);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", path.display()));
        Self { path, text }
    }

    /// The fenced blocks of one language. One inside a list item keeps its indentation.
    fn blocks(&self, language: &str) -> Vec<String> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            let Some(found) = line.trim_start().strip_prefix("```") else {
                continue;
            };
            let block = lines
                .by_ref()
                .take_while(|line| line.trim() != "```")
                .map(|line| format!("{line}\n"));
            let block: String = block.collect();
            if found == language {
                blocks.push(block);
            }
        }
        blocks
    }

    /// The lines outside fenced blocks.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut fenced = false;
        self.text.lines().filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fence && !fenced
        })
    }

    /// The targets of the links.
    fn links(&self) -> Vec<&str> {
        self.prose()
            .flat_map(|line| line.split("](").skip(1))
            .map(|rest| rest.split(')').next().unwrap())
            .collect()
    }

    /// The anchors of the headings, as GitHub and others derive them.
    fn anchors(&self) -> Vec<String> {
        self.prose()
            .filter(|line| line.starts_with('#'))
            .map(|line| {
                let heading = line.trim_start_matches('#').trim().to_lowercase();
                let kept = heading.chars().filter_map(|c| match c {
                    ' ' => Some('-'),
                    c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                    _ => None,
                });
                kept.collect()
            })
            .collect()
    }
}

/// The Markdown files of a directory.
fn markdown(directory: &str) -> Vec<Document> {
    let entries = std::fs::read_dir(Path::new(ROOT).join(directory)).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .map(Document::read)
        .collect()
}

/// Every document for people.
fn documents() -> Vec<Document> {
    let documents: Vec<_> = [".", "docs", "docs/agents", "deploy", "tests"]
        .into_iter()
        .flat_map(markdown)
        .collect();
    for name in ["README.md", "docs/operations.md", "docs/configuration.md"] {
        assert!(
            documents
                .iter()
                .any(|document| document.path.ends_with(name)),
            "{name}"
        );
    }
    documents
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_api_guide_work_as_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ready.json");
    let mut dev = Process::start(
        countersign()
            .args([
                "dev",
                "--ephemeral",
                "--listen",
                "127.0.0.1:0",
                "--ready-file",
            ])
            .arg(&file),
    );
    let ready = dev.await_json(&file);
    let text = |pointer: &str| ready.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let script = (Document::read("docs/api.md").blocks("sh"))
        .join("\n")
        .replace("http://127.0.0.1:8080", &text("/nodes/0"))
        .replacen("csk_…", &text("/admin/apiKey"), 1)
        .replacen("csk_…", &text("/enforcer/apiKey"), 1)
        .replacen("csk_…", &text("/approver/apiKey"), 1);
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for expected in [
        "artifact.accepted",
        "inbox.page",
        "\"verified\":true",
        "decision.deliver",
        "ack.accepted",
        "\"workspaceName\":\"widgets\"",
        "\"status\":\"completed\"",
        "\"agentHost\":\"laptop-7\"",
        "\"status\":\"queued\"",
        "\"signerKeyId\":\"laptop\"",
    ] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
    // Each answer is on a line of its own.
    assert!(!printed.contains("}{"), "{printed}");
    assert!(printed.ends_with("}\n"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_the_documents_run() {
    let cluster = Cluster::start(1).await;
    let mut run = 0;
    for document in documents() {
        // Its queries are run, and their results compared, by the tests of the history.
        if document.path.ends_with("docs/history.md") {
            continue;
        }
        for query in document.blocks("sql") {
            let query = format!("begin; create role cs_app; {query} rollback;");
            cluster.database.run(&query).await;
            run += 1;
        }
    }
    assert!(run > 1);
}

#[test]
fn every_configuration_of_the_documents_is_one() {
    let mut files = 0;
    // A policy is no configuration of a gateway; `agents` reads these examples.
    let policies = ["docs/agents/policy.md", "docs/teams.md"];
    let of_gateways = |document: &Document| !policies.iter().any(|it| document.path.ends_with(it));
    for document in documents().into_iter().filter(of_gateways) {
        for file in document.blocks("toml") {
            let read = Figment::from(Toml::string(&file)).extract::<Config>();
            assert!(
                read.is_ok(),
                "{}: {file}: {read:?}",
                document.path.display()
            );
            files += 1;
        }
    }
    assert!(files > 6);
}

#[test]
fn the_readme_is_short() {
    let lines = Document::read("README.md").text.lines().count();
    assert!(lines <= README_LINES, "{lines}");
}

#[test]
fn every_link_resolves_and_stays_inside_the_repository() {
    let root = Path::new(ROOT).canonicalize().unwrap();
    let mut checked = 0;
    for document in documents() {
        let here = document.path.display();
        assert!(!document.text.contains("../shared"), "{here}");
        for link in document.links() {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                document.path.clone()
            } else {
                document.path.parent().unwrap().join(path)
            };
            let target = target
                .canonicalize()
                .unwrap_or_else(|_| panic!("{here}: {link}"));
            assert!(target.starts_with(&root), "{here}: {link} is outside");
            if !anchor.is_empty() {
                let anchors = Document::read(target).anchors();
                assert!(
                    anchors.iter().any(|known| known == anchor),
                    "{here}: {link}"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 20);
}

#[test]
fn every_test_in_the_table_of_threats_exists() {
    let document = Document::read("docs/security.md");
    let (_, table) = document.text.split_once("\n## Threats\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| threat"));
    let mut named = 0;
    for row in rows {
        let tests: Vec<_> = row
            .split('`')
            .filter(|code| code.contains("::") && !code.contains(' '))
            .collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let (module, name) = test.rsplit_once("::").unwrap();
            let path = module.replace("::", "/");
            // The first name of a path is a file of its own, and so may be every further one.
            let crates = [
                "",
                "crates/countersign-e2e/",
                "crates/countersign-protocol/",
            ];
            let mut files = crates
                .map(|place| format!("{place}tests/{path}.rs"))
                .into_iter();
            let source =
                files.find_map(|file| std::fs::read_to_string(Path::new(ROOT).join(file)).ok());
            let source = source.unwrap_or_default();
            assert!(source.contains(&format!("fn {name}(")), "{test}: {row}");
            named += 1;
        }
    }
    assert!(named > 50, "{named}");
}

/// Every path of the API that the paragraph names, from its first words to the next paragraph.
fn paths_in(document: &str, start: &str) -> Vec<String> {
    let document = Document::read(document);
    let (_, rest) = document.text.split_once(start).unwrap();
    let paragraph = rest.split("\n\n").next().unwrap();
    let named = paragraph.split('`').filter(|code| code.starts_with('/'));
    named.map(str::to_owned).collect()
}

#[test]
fn the_documents_name_every_path_that_answers_in_plain_json() {
    let openapi = Document::read("src/http/api/openapi/openapi.json");
    let openapi: serde_json::Value = serde_json::from_str(&openapi.text).unwrap();
    let paths = openapi["paths"].as_object().unwrap();
    let is_plain = |path: &str| {
        let operations = paths[path].as_object().unwrap();
        let mut errors = operations.values().map(|operation| {
            let error = operation["responses"]["500"]["$ref"].as_str();
            error.is_some_and(|error| error.contains("/plain."))
        });
        let first = errors.next().unwrap();
        assert!(errors.all(|other| other == first), "{path}");
        first
    };
    let named = paths_in("docs/protocol.md", "**22.1 Form.**");
    assert_eq!(paths_in("docs/api.md", "**Bodies.**"), named);
    let mut unused = named.clone();
    for path in paths.keys() {
        let is_api = path.starts_with("/v1/") || path.starts_with("/platform/");
        let mut above = named.iter().filter(|name| {
            let below = path.strip_prefix(name.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let name = above.next();
        assert!(!is_api || is_plain(path) == name.is_some(), "{path}");
        unused.retain(|other| Some(other) != name);
    }
    assert_eq!(unused, Vec::<String>::new(), "named, and not there");
}

#[test]
fn pictures_are_small_and_shown_somewhere() {
    let documents = documents();
    for entry in std::fs::read_dir(Path::new(ROOT).join("docs/images")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let size = entry.metadata().unwrap().len();
        assert!(size < 150_000, "{name} has {size} bytes");
        let link = format!("images/{name})");
        let shows = |document: &Document| document.text.contains(&link);
        assert!(documents.iter().any(shows), "{name}");
    }
}

/// Every `countersign` command of the guides for one server exists, with its options.
#[test]
fn the_commands_of_the_guide_for_one_server_exist() {
    let mut commands = 0;
    for block in Document::read("docs/one-server.md").blocks("console") {
        for line in block.lines().filter(|line| !line.contains("alias")) {
            let line = line.split(" # ").next().unwrap();
            let Some((_, rest)) = line.split_once("countersign ") else {
                continue;
            };
            let words: Vec<_> = rest.split_whitespace().collect();
            let words = words.split(|word| *word == "--").next().unwrap();
            // A path or a name of something else.
            let named = words
                .iter()
                .take_while(|word| word.bytes().all(|b| b.is_ascii_lowercase()));
            let named: Vec<_> = named.copied().collect();
            let Some(first) = named.first() else {
                continue;
            };
            if line.contains("systemctl") || line.contains("psql") || line.contains("pg_dump") {
                continue;
            }
            let help = |path: &[&str]| {
                let output = countersign().args(path).arg("--help").output().unwrap();
                (
                    output.status.success(),
                    String::from_utf8_lossy(&output.stdout).into_owned(),
                )
            };
            let (ok, text) = help(&[first]);
            assert!(ok, "{line}");
            // Of the subcommand, where there is one.
            let inner = named.get(1).map(|second| help(&[first, second]));
            let text = inner
                .filter(|(ok, _)| *ok)
                .map_or(text.clone(), |(_, inner)| inner + &text);
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(text.contains(option), "{line}: {option}");
            }
            commands += 1;
        }
    }
    assert!(commands >= 8, "{commands}");
}
