//! The topology that is deployed: several nodes behind the real `HAProxy`, which ends TLS and has the configuration we ship.

mod edge;
mod restart;

use crate::support::Cluster;
use crate::support::fleet::Fleet;
use crate::support::haproxy::Balancer;

/// Where the nodes are, each on an address of its own, as containers are.
const HOSTS: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];

/// Nodes and their balancer.
struct Site {
    cluster: Cluster,
    fleet: Fleet,
    balancer: Balancer,
}

impl Site {
    /// Nodes with the timing they are shipped with, and more settings; and a balancer with more variables.
    async fn start(settings: &[(&str, &str)], variables: &[(&str, &str)]) -> Self {
        let cluster = Cluster::start(1).await;
        let mut all = vec![
            ("TLS__MODE", "upstream"),
            ("TLS__PROXIES", "[\"127.0.0.1\"]"),
            ("SERVER__LAME_DUCK_MS", "2000"),
            ("PUSH__DRAIN_SPREAD_MS", "2000"),
        ];
        all.extend_from_slice(settings);
        let fleet = Fleet::start_alike(&cluster.database.url, &HOSTS, &all);
        let balancer = Balancer::start(&fleet.urls(), variables).await;
        Self {
            cluster,
            fleet,
            balancer,
        }
    }
}
