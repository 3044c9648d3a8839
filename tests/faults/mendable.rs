//! Conditions that an operator can mend: the call was right, and can be repeated.

use crate::support::{Cluster, request_id, sealed};

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_can_mend_is_unavailable_and_a_defect_is_internal() {
    let cluster = Cluster::start(1).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let fail_with = async |code: &str| {
        let function = format!(
            "create or replace function fail() returns trigger language plpgsql as
             $$ begin raise exception 'on purpose' using errcode = '{code}'; end $$"
        );
        cluster.database.run(&function).await;
    };
    fail_with("53100").await;
    let trigger =
        "create trigger fail before insert on exchanges for each row execute function fail()";
    cluster.database.run(trigger).await;
    let (request, body) = (request_id(), sealed());
    for (code, meaning) in [
        ("53000", "insufficient resources"),
        ("53100", "disk full"),
        ("53200", "out of memory"),
        ("53300", "too many connections"),
        ("53400", "a configured limit"),
        ("54000", "no new transactions until a vacuum"),
        ("55000", "not in the right state"),
        ("55006", "in use"),
        ("55P03", "a lock was not free"),
        ("57014", "cancelled"),
        ("57P01", "shut down"),
        ("57P02", "crashed"),
        ("57P03", "starting"),
        ("58000", "system error"),
        ("58030", "input or output failed"),
        ("25006", "read-only"),
    ] {
        fail_with(code).await;
        let refused = enforcer.submit(&request, "alice", body.clone()).await;
        assert_eq!(refused.outcome(), "503 UNAVAILABLE", "{code}: {meaning}");
        assert_eq!(refused.body("/retryable"), true);
        assert!(refused.header("retry-after").is_some());
    }
    for code in ["XX000", "42501", "0A000"] {
        fail_with(code).await;
        let refused = enforcer.submit(&request, "alice", body.clone()).await;
        assert_eq!(refused.outcome(), "500 INTERNAL", "{code}");
    }
    cluster.database.run("drop trigger fail on exchanges").await;
    let submitted = enforcer.submit(&request, "alice", body).await;
    assert_eq!(submitted.outcome(), "202");
}
