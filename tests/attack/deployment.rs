//! Attacks on a deployment as we ship it: from a node that was taken over, and by a user of the
//! machine.

use std::net::IpAddr;

use crate::deployment::compose::{compose, mounts, services};
use crate::deployment::{first_start, read};
use crate::support::fleet::Fleet;
use crate::support::{Cluster, http};

/// Someone in a node looks for a role that row-level security does not bind.
#[test]
fn a_node_finds_no_password_of_the_owner_or_the_superuser() {
    let directory = tempfile::tempdir().unwrap();
    // A file of an earlier version.
    let old = directory.path().join("gateway/owner-url");
    std::fs::create_dir(directory.path().join("gateway")).unwrap();
    std::fs::write(&old, "postgres://countersign_owner:old@postgres").unwrap();
    first_start(directory.path());
    assert!(!old.exists(), "it is taken away");

    let secret = |path: &str| std::fs::read_to_string(directory.path().join(path)).unwrap();
    let passwords = ["database/owner", "database/superuser"].map(secret);
    // The holders of the passwords, by their mounts.
    let mut holders = Vec::new();
    for (name, service) in services() {
        let mut seen = String::new();
        for (source, target) in mounts(&service) {
            assert!(target != "/secrets", "{name} mounts everything");
            // Wherever it is mounted to.
            let Some(volume) = source.strip_suffix("-secrets") else {
                continue;
            };
            for file in std::fs::read_dir(directory.path().join(volume)).unwrap() {
                seen += &std::fs::read_to_string(file.unwrap().path()).unwrap();
            }
        }
        if passwords
            .iter()
            .any(|password| seen.contains(password.trim()))
        {
            holders.push(name);
        }
    }
    holders.sort_unstable();
    let expected = ["first-start", "grants", "migrate", "postgres", "roles"];
    assert_eq!(holders, expected);
    // Each volume is one thing: the same name where it is written and where it is read.
    for (name, service) in services() {
        for (source, target) in mounts(&service) {
            let of_source = source.strip_suffix("-secrets");
            assert_eq!(of_source, target.strip_prefix("/secrets/"), "{name}");
        }
    }
    // In the chart, the migration's pod has the owner's URL, and the nodes do not.
    let template = |name: &str| read(&format!("deploy/helm/countersign/templates/{name}.yaml"));
    assert!(template("migrate").contains("\"owner-url\""));
    let nodes = template("deployment");
    assert!(!nodes.contains("owner-url"));
    let secrets = nodes.split_once("secretName: {{ include \"countersign.secret\" . }}");
    let (_, secrets) = secrets.expect("the secret");
    let items = secrets
        .lines()
        .find(|line| !line.trim().starts_with('#') && !line.is_empty());
    assert_eq!(
        items.map(str::trim),
        Some("items:"),
        "not all of it is mounted"
    );
}

/// The network of balancer and nodes, played on loopback addresses: a node, the balancer's address,
/// and the host's, which is the bridge's own and reaches every container.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_the_machine_says_that_he_came_by_tls() {
    let compose = compose();
    let network = &compose["networks"]["edge"]["ipam"]["config"][0];
    let subnet = network["subnet"].as_str().unwrap();
    let (prefix, _) = subnet.rsplit_once('.').unwrap();
    // The host's own address, as Docker chooses it unless it is told otherwise.
    let host = format!("{prefix}.1");
    assert_eq!(network["gateway"].as_str().unwrap_or(&host), host);
    let balancer = &compose["services"]["balancer"]["networks"]["edge"]["ipv4_address"];
    let balancer = balancer
        .as_str()
        .map_or(format!("{prefix}.2"), str::to_owned);
    let proxies = &compose["services"]["gateway"]["environment"]["COUNTERSIGN_TLS__PROXIES"];
    let here = |address: &str| address.replace(prefix, "127.0.0");

    let cluster = Cluster::start(1).await;
    let settings = [
        ("TLS__MODE", "upstream"),
        ("TLS__PROXIES", &here(proxies.as_str().unwrap())),
    ];
    let fleet = Fleet::start_alike(&cluster.database.url, &["127.0.0.130"], &settings);
    let approver = cluster.approver("alice").await;
    let inbox = format!("{}/v1/approvers/alice/inbox", fleet.urls()[0]);
    let call = async |from: &str| {
        let from: IpAddr = here(from).parse().unwrap();
        let client = http().local_address(from).build();
        let call = client
            .unwrap()
            .get(&inbox)
            .bearer_auth(approver.client.key());
        let call = call.header("X-Forwarded-Proto", "https");
        let answer = call.header("X-Forwarded-For", "192.0.2.1").send().await;
        answer.map(|answer| answer.status().as_u16())
    };
    assert_eq!(call(&balancer).await.unwrap(), 200);
    // On another machine the connection is closed; on its own one may ask for health.
    assert_eq!(call(&host).await.unwrap(), 403);
    // Nor is a neighbour believed.
    let neighbour = call(&format!("{prefix}.129")).await;
    assert!(!matches!(neighbour, Ok(200)), "{neighbour:?}");
}
