//! Two terminals of one approver, as processes: the second one is added, and opens and approves
//! without pairing.

use std::process::Stdio;

use countersign::client::approver::EnrolmentProgress;
use countersign::e2e::ReceivedAnswer;
use serde_json::{Value, json};

use super::{prepared, run};
use crate::client::people::{ClientScene, ask, command, question};

/// Approves, and returns the file of the decision's record.
fn approve(world: &ClientScene, profile: &str, id: &str) -> String {
    let file = world.directory.path().join(format!("{id}.json"));
    let file = file.to_str().unwrap();
    let arguments = ["approve", id, "--wait", "20s", "--save", file, "--json"];
    let done = run(world, profile, &arguments).expect(0).json();
    assert_eq!(done["state"], "delivered");
    assert_eq!(done["outcome"], "allowed");
    file.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_terminal_opens_and_approves_without_pairing() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let laptop = world.approver("alice", "laptop").await;
    let attempt = enforcer.begin_pairing(Some("build machine"), None).await;
    let attempt = attempt.unwrap();
    let link = attempt.link("https://page.example.org").to_string();
    run(&world, "laptop", &["pair", &link]).expect(0);
    let completed = enforcer.wait_for_answer(attempt).await.unwrap().unwrap();
    let (ReceivedAnswer::Proven(device), pairing) = completed.split() else {
        panic!("a link proves");
    };
    enforcer.pin(&device, pairing).unwrap();
    let phone = world.device("alice", "phone").await;
    let EnrolmentProgress::Asks(request) = phone.enrol().await.unwrap() else {
        panic!("another device has to add it");
    };
    let link = request.link(&phone.page()).unwrap();
    run(&world, "laptop", &["devices", "add", &link, "--yes"]).expect(0);

    // A request that comes while the second terminal watches.
    let mut watching = prepared(&world, "phone", &["inbox", "--watch", "--json"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let out = watching.stdout.take().unwrap();
    let asked = ask(enforcer, question(command(&["git", "push"])), &laptop).await;
    let first = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    });
    let first = first.await.unwrap();
    assert_eq!(first["requestId"], asked.request_id.as_str());
    assert_eq!(first["opened"], true, "{first}");
    let pid = nix::unistd::Pid::from_raw(watching.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    watching.wait().unwrap();
    for terminal in ["laptop", "phone"] {
        let shown = run(&world, terminal, &["show", &asked.request_id]).expect(0);
        assert!(shown.out.contains("git push"), "{terminal}: {}", shown.out);
    }
    approve(&world, "phone", &asked.request_id);
    let (enforcer, outcome) = asked.end().await;
    assert_eq!(outcome.unwrap().approval.device, phone.device_id());
    let asked = ask(enforcer, question(command(&["git", "pull"])), &laptop).await;
    let record = approve(&world, "laptop", &asked.request_id);
    let (enforcer, outcome) = asked.end().await;
    assert_eq!(outcome.unwrap().approval.device, laptop.device_id());

    let listed = run(&world, "phone", &["pairings"]).expect(0).out;
    let expected = format!("introduced by laptop ({})", laptop.device_id());
    assert!(listed.contains(&expected), "{listed}");
    let listed = run(&world, "laptop", &["pairings", "--json"]).expect(0);
    assert_eq!(listed.json()[0]["introducedBy"], Value::Null);

    // The first one is lost. A record of its decision has no revocation, but the other one knows.
    let verify = ["verify", &record];
    run(&world, "phone", &verify).expect(0);
    let id = laptop.device_id().to_string();
    run(&world, "phone", &["devices", "revoke", &id, "--yes"]).expect(0);
    let refused = run(&world, "phone", &verify).expect(77).err;
    assert!(refused.contains("revoked"), "{refused}");
    run(&world, "phone", &["join"]).expect(0);
    let asked = ask(enforcer, question(command(&["git", "log"])), &phone).await;
    run(&world, "laptop", &["approve", &asked.request_id]).expect(77);
    approve(&world, "phone", &asked.request_id);
    asked.end().await.1.unwrap();
    let listed = run(&world, "phone", &["pairings"]).expect(0).out;
    assert!(listed.contains("which has been revoked since"), "{listed}");
    let listed = run(&world, "phone", &["pairings", "--json"]).expect(0);
    let expected = json!({ "deviceId": id, "name": null, "revoked": true });
    assert_eq!(listed.json()[0]["introducedBy"], expected);

    // It was never paired itself, and can end the pairing all the same.
    run(&world, "phone", &["unpair", "bot"]).expect(0);
    let client = world.cluster.approver("alice").await.client;
    let pairings = client.get("/v1/pairings").await.expect(200).json();
    assert_eq!(pairings["items"], json!([]));
    let listed = run(&world, "phone", &["pairings", "--json"]).expect(0);
    assert_eq!(listed.json(), json!([]));
}
