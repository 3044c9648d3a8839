//! The topology that is deployed: several nodes behind the real `HAProxy`, which ends TLS and has
//! the configuration we ship.

mod edge;
mod restart;

use crate::support::Cluster;
use crate::support::database::Database;
use crate::support::fleet::Fleet;
use crate::support::haproxy::Balancer;
use crate::support::roles::Roles;

/// Where the nodes are, each on an address of its own, as containers are.
const HOSTS: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];

/// Nodes and their balancer.
struct Site {
    cluster: Cluster,
    fleet: Fleet,
    balancer: Balancer,
}

impl Site {
    /// Nodes with the timing they are shipped with, behind the wall, and more settings; and a
    /// balancer with more variables.
    async fn start(settings: &[(&str, &str)], variables: &[(&str, &str)]) -> Self {
        let database = Database::create().await;
        let roles = Roles::make(&database, "").await;
        let cluster = Cluster::on(database, 1, |config| roles.confine(config)).await;
        let mut all = vec![
            ("DATABASE__ROW_SECURITY", "true"),
            ("TLS__MODE", "upstream"),
            ("TLS__PROXIES", "[\"127.0.0.1\"]"),
            ("SERVER__LAME_DUCK_MS", "2000"),
            ("PUSH__DRAIN_SPREAD_MS", "2000"),
        ];
        all.extend_from_slice(settings);
        let fleet = Fleet::start_alike(&roles.url("application"), &HOSTS, &all);
        let balancer = Balancer::start(&fleet.urls(), variables).await;
        Self {
            cluster,
            fleet,
            balancer,
        }
    }
}
