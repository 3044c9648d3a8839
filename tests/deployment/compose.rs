//! The compose file starts on small machines, with few open files allowed, and leaves nothing
//! behind.

use countersign::config::Config;
use serde_json::{Map, Value};

use super::read;

/// The compose file as it is without variables in the environment: anchors resolved, defaults
/// filled in.
pub fn compose() -> Value {
    let text = read("docker-compose.yml");
    let mut filled = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("${") {
        let (variable, after) = after.split_once('}').unwrap();
        let (_, default) = variable.split_once(":-").unwrap_or((variable, ""));
        filled.push_str(before);
        filled.push_str(default);
        rest = after;
    }
    filled.push_str(rest);
    serde_saphyr::from_str(&filled).unwrap()
}

pub fn services() -> Map<String, Value> {
    let services = compose()["services"].take();
    services.as_object().unwrap().clone()
}

/// A service's mounts: where from, if that has a name, and where to.
pub fn mounts(service: &Value) -> Vec<(String, String)> {
    let volumes = service["volumes"].as_array();
    let mounts = volumes.into_iter().flatten().map(|volume| {
        if let Some(short) = volume.as_str() {
            let mut parts = short.split(':').map(str::to_owned);
            (parts.next().unwrap(), parts.next().unwrap())
        } else {
            let text = |member: &str| volume[member].as_str().unwrap_or_default().to_owned();
            (text("source"), text("target"))
        }
    });
    mounts.collect()
}

/// Docker refuses a limit of more processors than there are.
#[test]
fn a_machine_with_one_processor_suffices() {
    for (name, service) in services() {
        let limits = &service["deploy"]["resources"]["limits"];
        for cpus in [&service["cpus"], &limits["cpus"]] {
            let text = cpus.as_str().map_or(cpus.to_string(), str::to_owned);
            let few = cpus.is_null() || text.parse::<f64>().unwrap() <= 1.0;
            assert!(few, "{name}: {cpus}");
        }
    }
}

/// A daemon's own limit may be 1024. `HAProxy` ends where it gets fewer than it needs, and would be
/// started again and again.
#[test]
fn open_files_suffice_for_the_clients() {
    let services = services();
    let files = |service: &str| {
        let limit = &services[service]["ulimits"]["nofile"];
        let (soft, hard) = (&limit["soft"], &limit["hard"]);
        assert_eq!(soft, hard, "{service}");
        hard.as_u64().unwrap_or(0)
    };
    let clients = &services["balancer"]["environment"]["MAXCONN"];
    let clients = clients.as_u64().unwrap();
    assert!(files("balancer") >= 2 * clients + 1_000);
    let most = Config::default().server.max_connections as u64;
    assert!(files("gateway") >= most + 1_000);
}

/// An image's own volumes are anonymous, and `down` leaves them behind, unless something else is
/// mounted there.
#[test]
fn no_container_leaves_a_volume_behind() {
    let declared = [
        ("postgres:", "/var/lib/postgresql/data"),
        ("prom/prometheus:", "/prometheus"),
        ("jaegertracing/all-in-one:", "/tmp"),
    ];
    let mut seen = 0;
    for (name, service) in services() {
        let image = service["image"].as_str().unwrap();
        for (_, volume) in declared.iter().filter(|(of, _)| image.starts_with(of)) {
            let covered = mounts(&service).iter().any(|(_, target)| target == volume);
            assert!(covered, "{name}: {volume}");
            seen += 1;
        }
    }
    assert_eq!(seen, 5, "postgres, roles, grants, prometheus, jaeger");
}

/// Docker gives out addresses from the range alone, so no node can have the balancer's before it
/// has started.
#[test]
fn the_balancers_address_is_given_to_nobody_else() {
    let compose = compose();
    let network = &compose["networks"]["edge"]["ipam"]["config"][0];
    let parse = |text: &Value| text.as_str().unwrap().parse::<ipnet::Ipv4Net>().unwrap();
    let (subnet, range) = (parse(&network["subnet"]), parse(&network["ip_range"]));
    let balancer = &compose["services"]["balancer"]["networks"]["edge"]["ipv4_address"];
    let balancer: std::net::Ipv4Addr = balancer.as_str().unwrap().parse().unwrap();
    assert!(subnet.contains(&range) && subnet.contains(&balancer));
    assert!(!range.contains(&balancer));
    assert_ne!(
        network["gateway"].as_str(),
        Some(balancer.to_string().as_str())
    );
    // As many nodes as the balancer has room for, and those of the next version.
    assert!(range.hosts().count() >= 64);
    let proxies = &compose["services"]["gateway"]["environment"]["COUNTERSIGN_TLS__PROXIES"];
    assert_eq!(proxies.as_str().unwrap(), format!("[\"{balancer}\"]"));
}
