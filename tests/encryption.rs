//! The way to PostgreSQL, encrypted: to a server that takes nothing else, and to no server that
//! cannot say who it is.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use crate::support::database::{Database, Server};
use crate::support::process::{countersign, run};
use crate::support::tls::{Authority, Files};
use crate::support::{Cluster, compact, request_id, sealed, until};

/// A server that takes encrypted connections alone, and files: `ca.pem` with who signed its
/// certificate, `other.pem` with someone else.
async fn server() -> (Server, Files) {
    let authority = Authority::new("databases");
    let pair = authority.server();
    let files = Files::with(&pair);
    files.put("ca.pem", &authority.pem());
    files.put("other.pem", &Authority::new("others").pem());
    let server = Server::start();
    let database = Database {
        url: server.url.clone(),
    };
    for (name, text) in [
        ("server.crt", pair.certificate.as_str()),
        ("server.key", &pair.key),
        ("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust"),
    ] {
        // By the server itself, whose user and directory are its own.
        let put = format!(
            "copy (select unnest(string_to_array($text${text}$text$, chr(10))))
               to program 'umask 077; cat >{name}'"
        );
        database.run(&put).await;
    }
    database.run("alter system set ssl = on").await;
    database.run("select pg_reload_conf()").await;
    let plain = format!("{}?sslmode=disable", server.url);
    until(
        "plain connections are refused",
        Duration::from_secs(10),
        async || PgConnection::connect(&plain).await.is_err(),
    )
    .await;
    (server, files)
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_commands_reach_a_server_that_takes_nothing_but_tls() {
    let (server, files) = server().await;
    let trusting = format!(
        "{}?sslmode=verify-full&sslrootcert={}",
        server.url,
        files.path("ca.pem").display()
    );
    let with = |url: &str, arguments: &[&str]| {
        run(countersign()
            .args(arguments)
            .env("COUNTERSIGN_DATABASE__URL", url))
    };
    let (ok, text) = with(&trusting, &["migrate"]);
    assert!(ok, "{text}");
    let database = Database {
        url: trusting.clone(),
    };
    let cluster = Cluster::on(database, 2, |_| {}).await;
    let (enforcer, approver) = (
        cluster.enforcer("build-bot").await,
        cluster.approver("alice").await,
    );
    let request = request_id();
    let submitted = enforcer.submit(&request, "alice", sealed()).await;
    submitted.expect(202);
    let decided = approver.decide(&request, compact("approve")).await;
    decided.expect(200);
    enforcer.wait(&request, 10).await.expect(200);
    // Every kind of connection that a node has.
    let kinds = "select coalesce(string_agg(distinct concat_ws(' ', a.application_name, s.version), ','
                                            order by concat_ws(' ', a.application_name, s.version)), '')
                   from pg_stat_activity a join pg_stat_ssl s using (pid)
                  where a.application_name like 'countersign%'";
    let expected = "countersign TLSv1.3,countersign-listen TLSv1.3,countersign-notify TLSv1.3";
    until(
        "all of them are there",
        Duration::from_secs(10),
        async || cluster.database.text(kinds).await == expected,
    )
    .await;
    let (ok, text) = with(&trusting, &["check"]);
    assert!(ok && text.contains(", TLSv1.3\n"), "{text}");

    let elsewhere = |mode: &str| {
        let here = trusting.replace("127.0.0.1", "0.0.0.0");
        here.replace("verify-full", mode)
    };
    let (ok, text) = with(&elsewhere("verify-ca"), &["check"]);
    assert!(ok, "the certificate's name does not matter: {text}");
    for (what, url, why) in [
        (
            "signed by someone else",
            trusting.replace("ca.pem", "other.pem"),
            "UnknownIssuer",
        ),
        (
            "for another name",
            elsewhere("verify-full"),
            "not valid for name",
        ),
        (
            "not encrypted",
            format!("{}?sslmode=disable", server.url),
            "no encryption",
        ),
    ] {
        for arguments in [
            &["migrate"][..],
            &["check"],
            &["serve", "--listen", "127.0.0.1:0"],
        ] {
            let (ok, text) = with(&url, arguments);
            assert!(!ok && text.contains(why), "{what}: {arguments:?}: {text}");
        }
    }
    for node in cluster.nodes {
        node.stop().await;
    }
}
