//! The file that client libraries keep beside a profile: the terminal obeys it too.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use countersign::client::enforcer::{ApprovalDenial, Enforcer};
use countersign::client::profile::{ApproverRecord, ProfileError};
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::people::{ClientScene, ask, choice, command, pair, question};

fn learned(record: &ApproverRecord) -> Value {
    json!({
        "id": record.id,
        "routing_token": record.routing_token,
        "checked_at": record.checked_at,
        "devices": record.devices,
        "revoked": record.revoked,
        "added_by": record.added_by,
    })
}

fn write(world: &ClientScene, text: &str) -> PathBuf {
    let path = world.file("bot").path().with_extension("trust.json");
    std::fs::write(&path, text).unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&path, private).unwrap();
    path
}

fn write_record(world: &ClientScene, record: &Value) {
    write(world, &json!({ "v": 1, "approvers": [record] }).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_a_library_knows_to_be_revoked_decides_nothing() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let record = enforcer.approvers()[0].clone();
    let device = enforcer.known_devices(&record).unwrap().remove(0).id;
    let asking = ask(enforcer, question(command(&["git", "push"])), &alice).await;
    let item = asking.item(&alice).await;
    // A library learns of it while the terminal waits.
    let mut revoked = learned(&record);
    revoked["revoked"] = json!([device.to_string()]);
    write_record(&world, &revoked);
    let approve = choice(Verdict::Approve);
    alice.decide(&item, &approve).await.unwrap();
    let (mut enforcer, outcome) = asking.end().await;
    let denial = outcome.unwrap_err();
    assert!(matches!(denial, ApprovalDenial::Untrusted(_)), "{denial}");
    let next = enforcer.prepare(question(command(&["git", "push"]))).await;
    assert!(next.is_err(), "no device of Alice is left");
    // The revocation outlives the pairing.
    revoked["routing_token"] = json!("an earlier pairing's");
    write_record(&world, &revoked);
    let opened = Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    let records = opened.approvers();
    assert!(opened.known_devices(&records[0]).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_an_earlier_pairing_does_not_come_back() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let mut mallory = world.enforcer("other-bot").await;
    let mut stranger = world.approver("mallory", "tablet").await;
    pair(&mut mallory, &mut stranger).await;
    let record = enforcer.approvers()[0].clone();
    let mut other = learned(&record);
    other["devices"] = json!(mallory.approvers()[0].devices);
    other["routing_token"] = json!("an earlier pairing's");
    write_record(&world, &other);
    let opened = Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    assert_eq!(opened.approvers(), std::slice::from_ref(&record));
    // Of this pairing it counts: the library followed signed statements.
    other["routing_token"] = json!(record.routing_token);
    write_record(&world, &other);
    let opened = Enforcer::open(&world.file("bot"), &world.cluster.clock).unwrap();
    let devices = opened.known_devices(&opened.approvers()[0]).unwrap();
    assert_eq!(devices.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_trusted_stops_the_enforcer() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let record = learned(&enforcer.approvers()[0]);
    let whole =
        |version: u8, record: &Value| json!({ "v": version, "approvers": [record] }).to_string();
    let mut unknown = record.clone();
    unknown["more"] = json!(1);
    for text in ["{", "", &whole(2, &record), &whole(1, &unknown)] {
        write(&world, text);
        let opened = world.file("bot").load_enforcer();
        let wrong = matches!(opened, Err(ProfileError::Learned { .. }));
        assert!(wrong, "{text}");
        let asked = enforcer.prepare(question(command(&["git", "push"]))).await;
        assert!(asked.is_err(), "{text}");
    }
    let path = write(&world, &whole(1, &record));
    world.file("bot").load_enforcer().unwrap();
    let exposed = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&path, exposed).unwrap();
    let opened = world.file("bot").load_enforcer();
    assert!(matches!(opened, Err(ProfileError::Learned { .. })));
}
