//! `countersign notifications`: a webhook is added, listed, tested and removed.

use super::run;
use crate::client::people::ClientScene;

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_added_listed_tested_and_removed() {
    let world = ClientScene::start().await;
    world.approver("alice", "laptop").await;
    // Nothing listens there, and it is not allowed anyway.
    let refused = run(
        &world,
        "laptop",
        &["notifications", "add", "https://127.0.0.1/hook"],
    );
    assert!(refused.expect(77).err.contains("public addresses"));
    let added = run(
        &world,
        "laptop",
        &[
            "notifications",
            "add",
            "https://localhost:1/secret-path",
            "--json",
        ],
    );
    let added = added.expect(0).json();
    assert!(
        added["secret"].as_str().unwrap().starts_with("whsec_"),
        "{added}"
    );
    let id = added["notificationId"].as_str().unwrap();
    let again = run(
        &world,
        "laptop",
        &["notifications", "add", "https://localhost:1/secret-path"],
    );
    let again = again.expect(0);
    assert_eq!(again.out.trim(), id);
    assert!(again.err.contains("already there"), "{}", again.err);
    let listed = run(&world, "laptop", &["notifications"]).expect(0);
    assert!(
        listed.out.starts_with(&id[28..]) && listed.out.contains("localhost:1"),
        "{}",
        listed.out
    );
    assert!(!listed.out.contains("secret-path"), "{}", listed.out);
    let tested = run(&world, "laptop", &["notifications", "test", &id[28..]]).expect(77);
    assert!(
        tested.err.contains("the address is not public"),
        "{}",
        tested.err
    );
    run(&world, "laptop", &["notifications", "remove", "none"]).expect(64);
    run(&world, "laptop", &["notifications", "remove", id]).expect(0);
    let listed = run(&world, "laptop", &["notifications", "list", "--json"]).expect(0);
    assert_eq!(listed.json(), serde_json::json!([]));
}
