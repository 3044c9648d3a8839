//! The parts of a release: images pinned by digest, actions by commit, as few rights as possible,
//! signatures over digests.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::compose::services;
use super::{ROOT, after, read};

/// A checkout that has the files with images, and a `docker` that knows one digest for all of them.
struct Checkout(tempfile::TempDir);

const DIGEST: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

impl Checkout {
    fn new(docker: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for path in [
            "scripts/pin-images",
            "deploy/Dockerfile",
            "docker-compose.yml",
        ] {
            let copy = directory.path().join(path);
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(Path::new(ROOT).join(path), copy).unwrap();
        }
        let stub = directory.path().join("docker");
        std::fs::write(&stub, format!("#!/bin/sh\n{docker}\n")).unwrap();
        std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(directory)
    }

    fn pin(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("bash");
        command
            .arg(self.0.path().join("scripts/pin-images"))
            .args(arguments);
        command.env("PATH", format!("{}:{path}", self.0.path().display()));
        command.output().unwrap()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.path().join(path)).unwrap()
    }
}

/// Every image that is not ours, by the compose file as parsed and the Dockerfile's stages.
fn images() -> Vec<String> {
    let mut images: Vec<String> = services()
        .values()
        .map(|service| service["image"].as_str().unwrap().to_owned())
        .filter(|image| !image.starts_with("countersign:"))
        .collect();
    let file = read("deploy/Dockerfile");
    let stages = file.lines().filter_map(|line| line.strip_prefix("FROM "));
    images.extend(stages.map(|stage| stage.split(' ').next().unwrap().to_owned()));
    images.sort_unstable();
    images.dedup();
    assert!(images.len() >= 8, "{images:?}");
    images
}

fn without_digests(text: &str) -> String {
    let mut parts = text.split("@sha256:");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| all + &part[64..])
}

#[test]
fn images_are_pinned_by_digest_or_the_check_names_them() {
    let checkout = Checkout::new(&format!("echo {DIGEST}"));
    let output = checkout.pin(&[]);
    assert!(output.status.success(), "{output:?}");
    let pinned = checkout.read("docker-compose.yml") + &checkout.read("deploy/Dockerfile");
    for image in images() {
        let tag = image.split('@').next().unwrap();
        let all = pinned.matches(&format!(" {tag}")).count();
        let with_digest = pinned.matches(&format!(" {tag}@{DIGEST}")).count();
        assert!(
            all > 0 && all == with_digest,
            "{tag}: {with_digest} of {all}"
        );
    }
    // Pinned is pinned: the check asks nobody, and a second run changes nothing.
    assert!(checkout.pin(&["--check"]).status.success());
    assert!(checkout.pin(&[]).status.success());
    let again = checkout.read("docker-compose.yml") + &checkout.read("deploy/Dockerfile");
    assert_eq!(again, pinned);
    // Nothing else has changed.
    let shipped = read("docker-compose.yml") + &read("deploy/Dockerfile");
    assert_eq!(without_digests(&pinned), without_digests(&shipped));

    let file = checkout.0.path().join("docker-compose.yml");
    let loose = pinned.replace(&format!("haproxy:3.0@{DIGEST}"), "haproxy:3.0");
    std::fs::write(file, loose).unwrap();
    let output = checkout.pin(&["--check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("not pinned: haproxy:3.0\n"), "{said}");
}

/// A registry that is away, or says something else: nothing is written, half of it neither.
#[test]
fn images_are_all_pinned_or_none_is() {
    let half = format!("case $4 in postgres:*) exit 1 ;; esac; echo {DIGEST}");
    for docker in ["exit 1", "echo latest", &half] {
        let checkout = Checkout::new(docker);
        assert!(!checkout.pin(&[]).status.success(), "{docker}");
        for path in ["docker-compose.yml", "deploy/Dockerfile"] {
            assert_eq!(checkout.read(path), read(path), "{docker}");
        }
    }
}

fn workflow(name: &str) -> Value {
    serde_saphyr::from_str(&read(&format!(".github/workflows/{name}"))).unwrap()
}

/// The steps of a job, as text, in order.
fn steps(job: &Value) -> Vec<String> {
    let steps = job["steps"].as_array().unwrap();
    steps.iter().map(Value::to_string).collect()
}

#[test]
fn a_release_has_no_more_rights_than_it_needs() {
    let workflow = workflow("release.yml");
    assert_eq!(workflow["permissions"], json!({}));
    let expected = json!({
        "check": {"contents": "read"},
        "publish": {"contents": "write", "packages": "write", "id-token": "write", "attestations": "write"},
    });
    let jobs = workflow["jobs"].as_object().unwrap();
    for (name, job) in jobs {
        assert_eq!(job["permissions"], expected[name], "{name}");
    }
    assert_eq!(jobs.len(), 2);
    // A tag of a version, and nothing that a stranger can cause.
    let tag = json!({ "push": { "tags": ["v[0-9]+.[0-9]+.[0-9]+"] } });
    assert_eq!(workflow["on"], tag);
    // Commands of a step find no token in the checkout.
    for (name, job) in jobs {
        let steps = job["steps"].as_array().unwrap();
        let uses = |step: &&Value, action| {
            step["uses"]
                .as_str()
                .is_some_and(|uses| uses.starts_with(action))
        };
        let mut checkouts = steps.iter().filter(|step| uses(step, "actions/checkout@"));
        let kept = |step: &Value| step["with"]["persist-credentials"] != json!(false);
        assert!(!checkouts.any(kept), "{name}");
    }
}

#[test]
fn actions_are_pinned_by_commit() {
    let names = [
        "libraries.yml",
        "publish-libraries.yml",
        "release.yml",
        "test.yml",
    ];
    let text = names
        .map(|name| read(&format!(".github/workflows/{name}")))
        .concat();
    let mut actions = 0;
    for action in text.lines().filter_map(|line| line.split_once("uses: ")) {
        let (_, pin) = action.1.split_once('@').unwrap();
        let (commit, version) = pin.split_once(" # v").unwrap_or_else(|| panic!("{pin}"));
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{pin}");
        actions += 1;
    }
    // All of them, however they are written; and what comes from outside is passed in the
    // environment, never pasted into a script.
    let mut used = 0;
    for name in names {
        for job in workflow(name)["jobs"].as_object().unwrap().values() {
            for step in job["steps"].as_array().unwrap() {
                used += usize::from(step["uses"].is_string());
                let script = step["run"].as_str().unwrap_or_default();
                assert!(!script.contains("${{"), "{script}");
            }
        }
    }
    assert_eq!(used, actions);
}

/// A pull request may come from anyone: its checks can read the code and nothing else.
#[test]
fn the_checks_of_a_change_have_no_rights_but_to_read() {
    let workflow = workflow("test.yml");
    assert_eq!(workflow["permissions"], json!({}));
    let jobs = workflow["jobs"].as_object().unwrap();
    for (name, target) in [("check", "make check"), ("test", "make test")] {
        let job = &jobs[name];
        assert_eq!(job["permissions"], json!({"contents": "read"}), "{name}");
        assert!(steps(job).concat().contains(target), "{name}");
    }
    assert_eq!(jobs.len(), 2);
    let on = workflow["on"].as_object().unwrap();
    assert!(on.contains_key("push") && on.contains_key("pull_request"));
    // This one would run with the rights and secrets of the repository.
    assert!(!on.contains_key("pull_request_target"), "{on:?}");
}

/// The registries trust the workflow by its name, so only the jobs that publish may have its
/// identity, and they run nothing but the packages that the tests have passed.
#[test]
fn the_libraries_are_tested_before_they_are_published_without_a_token() {
    let libraries = workflow("libraries.yml");
    let test = &libraries["jobs"]["test"];
    assert_eq!(libraries["permissions"], json!({}));
    assert_eq!(test["permissions"], json!({"contents": "read"}));
    assert!(steps(test).concat().contains("make test-sdk"));
    let publish = workflow("publish-libraries.yml");
    assert_eq!(publish["permissions"], json!({}));
    let jobs = publish["jobs"].as_object().unwrap();
    assert_eq!(jobs.len(), 3);
    let build = steps(&jobs["build"]);
    let place = |step: &str| build.iter().position(|it| it.contains(step)).unwrap();
    assert!(place("make test-sdk") < place("make sdk-packages"));
    assert_eq!(jobs["build"]["permissions"], json!({"contents": "read"}));
    for name in ["npm", "pypi"] {
        let job = &jobs[name];
        assert_eq!(job["permissions"], json!({"id-token": "write"}), "{name}");
        assert_eq!(job["needs"], "build", "{name}");
        let steps = steps(job).concat();
        assert!(!steps.contains("checkout") && !steps.contains("secrets."));
    }
    assert!(steps(&jobs["npm"]).concat().contains("--provenance"));
}

/// One version for the gateway, the program and the libraries.
#[test]
fn the_libraries_have_the_version_of_the_gateway() {
    let version = env!("CARGO_PKG_VERSION");
    let python = read("sdk/python/src/countersign/version.py");
    assert!(python.contains(&format!("\"{version}\"")), "{python}");
    let package: Value = serde_json::from_str(&read("sdk/typescript/package.json")).unwrap();
    assert_eq!(package["version"], version);
}

#[test]
fn the_tests_run_on_every_system_and_every_postgresql_that_we_support() {
    let workflow = workflow("test.yml");
    let runs = workflow["jobs"]["test"]["strategy"]["matrix"]["include"].as_array();
    let all = |name: &str| -> BTreeSet<String> {
        let values = runs.unwrap().iter().map(|run| &run[name]);
        values
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    };
    let set = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let systems: BTreeSet<String> = set(&["Debian 12", "Debian 13", "Ubuntu 24.04"]);
    assert_eq!(all("system"), systems);
    let versions: BTreeSet<String> = set(&["15", "16", "17", "18"]);
    assert_eq!(all("postgresql"), versions);
}

#[test]
fn developers_and_the_image_have_the_same_compiler() {
    let channel = after(&read("rust-toolchain.toml"), "channel = ").to_owned();
    let image = after(&read("deploy/Dockerfile"), "FROM rust:").to_owned();
    let (image, _) = image.split_once('-').unwrap();
    assert!(
        channel.starts_with(&format!("{image}.")),
        "{channel} {image}"
    );
}

#[test]
fn a_release_is_checked_first_then_signed_by_its_digest() {
    let workflow = workflow("release.yml");
    assert_eq!(workflow["jobs"]["publish"]["needs"], "check");
    let check = steps(&workflow["jobs"]["check"]).concat();
    for step in [
        r#"test \"$GITHUB_REF_NAME\" = \"v$("#,
        "scripts/pin-images --check",
        "make check",
        "make test",
        "check advisories",
    ] {
        assert!(check.contains(step), "{step}");
    }
    let publish = steps(&workflow["jobs"]["publish"]);
    let position = |word: &str| {
        let found = publish.iter().position(|step| step.contains(word));
        found.unwrap_or_else(|| panic!("no step {word}"))
    };
    assert!(position("buildx build") < position("cosign sign "));
    assert!(position("make sbom") < position("cosign attest "));
    assert!(position("cosign sign ") < position("gh release create"));
    let build = &publish[position("buildx build")];
    assert!(build.contains("--provenance mode=max") && build.contains("--sbom true"));
    let sign = &publish[position("cosign sign ")];
    let image = r#""IMAGE":"${{ steps.image.outputs.name }}@${{ steps.image.outputs.digest }}""#;
    let taken = &publish[position("docker cp ")];
    for step in [sign, taken] {
        assert!(step.contains(image), "{step}");
    }
    for command in ["cosign sign --yes", "cosign attest --yes --type cyclonedx"] {
        let (_, rest) = sign.split_once(command).unwrap();
        let rest = rest.split("\\n").next().unwrap();
        assert!(rest.ends_with(r#" \"$IMAGE\""#), "{command}{rest}");
    }
    // The files as the image: by what is in them.
    let sums = taken.find(r"sha256sum -- * >SHA256SUMS\n").unwrap();
    assert!(sums < taken.find("cosign sign-blob --yes ").unwrap());
    let provenance = |subject: Value| {
        let steps = workflow["jobs"]["publish"]["steps"].as_array().unwrap();
        steps.iter().any(|step| {
            let action = step["uses"].as_str().unwrap_or_default();
            action.starts_with("actions/attest-build-provenance@") && step["with"] == subject
        })
    };
    assert!(provenance(json!({
        "subject-name": "${{ steps.image.outputs.name }}",
        "subject-digest": "${{ steps.image.outputs.digest }}",
        "push-to-registry": true,
    })));
    assert!(provenance(json!({ "subject-path": "dist/*" })));
    assert!(publish[position("gh release create")].contains(" --verify-tag "));
}

/// The list of dependencies is in the binary, and the same build without the tests' and `dev`'s is
/// what the bill lists.
#[test]
fn the_image_is_built_with_its_list_of_dependencies() {
    let image = read("deploy/Dockerfile");
    let builds = image.matches("build --release").count();
    let auditable = image.matches(
        "cargo auditable build --release --locked --no-default-features --features gateway",
    );
    assert!(builds == 2 && auditable.count() == builds);
    let tool = image
        .split("cargo install --locked cargo-auditable@")
        .nth(1);
    assert!(tool.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    let bill = read("Makefile");
    let (_, bill) = bill.split_once("\nsbom:").unwrap();
    let (bill, _) = bill.split_once("\n.PHONY").unwrap();
    assert!(bill.contains("--no-default-features") && bill.contains("cargo-cyclonedx@"));
}
