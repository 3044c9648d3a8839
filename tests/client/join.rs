//! Joining with an invitation: the profile is written before anything else, and nothing that it has
//! is lost.

use std::time::Duration;

use countersign::client::approver::{EnrolmentProgress, InvitationLink, JoinOutcome, join};
use countersign::client::{ClientError, GatewayLocation};
use countersign::e2e::DeviceName;
use serde_json::{Value, json};

use super::people::ClientScene;

async fn invite(world: &ClientScene, role: &str, id: &str) -> String {
    let admin = world.cluster.admin().await;
    let body = json!({ "role": role, "boundId": id });
    let made = admin
        .post("/platform/v1/invitations", &body)
        .await
        .expect(201);
    made.json()["link"].as_str().unwrap().to_owned()
}

async fn joins(
    world: &ClientScene,
    profile: &str,
    link: &str,
    replace: bool,
) -> Result<JoinOutcome, ClientError> {
    let invitation = InvitationLink::parse(link)?;
    let urls = [invitation.page().unwrap().to_owned()];
    let location = GatewayLocation {
        urls: &urls,
        ..GatewayLocation::default()
    };
    let name = DeviceName::parse("terminal").unwrap();
    let file = world.file(profile);
    join(
        &file,
        replace,
        &world.cluster.clock,
        &invitation,
        &location,
        &name,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_and_an_enforcer_join_into_one_profile() {
    let world = ClientScene::start().await;
    let link = invite(&world, "approver", "alice").await;
    let JoinOutcome::Approver(alice) = joins(&world, "default", &link, false).await.unwrap() else {
        panic!("an approver");
    };
    assert_eq!(alice.id().as_str(), "alice");
    assert_eq!(alice.tenant(), &world.cluster.tenant);
    assert!(matches!(
        alice.enrol().await.unwrap(),
        EnrolmentProgress::InForce
    ));
    let link = invite(&world, "enforcer", "bot").await;
    let JoinOutcome::Enforcer(id, file) = joins(&world, "default", &link, false).await.unwrap()
    else {
        panic!("an enforcer");
    };
    assert_eq!(id.as_str(), "bot");
    let profile = file.load().unwrap();
    assert!(profile.approver.is_some() && profile.enforcer.is_some());
    // Now it has both, so a third invitation is not used up for nothing.
    let link = invite(&world, "approver", "alice").await;
    let refused = joins(&world, "default", &link, false).await.err().unwrap();
    assert!(matches!(refused, ClientError::RolesTaken), "{refused}");
    joins(&world, "other", &link, false)
        .await
        .expect("the code still works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_not_overwritten_unless_asked_for_and_no_credential_is_lost() {
    let world = ClientScene::start().await;
    let first = invite(&world, "approver", "alice").await;
    let JoinOutcome::Approver(first) = joins(&world, "default", &first, false).await.unwrap()
    else {
        panic!("an approver");
    };
    assert!(matches!(
        first.enrol().await.unwrap(),
        EnrolmentProgress::InForce
    ));
    let link = invite(&world, "approver", "alice").await;
    let JoinOutcome::Approver(second) = joins(&world, "default", &link, false).await.unwrap()
    else {
        panic!("an approver");
    };
    assert_eq!(second.profile().path(), world.file("default-2").path());
    let kept = world.file("default").load().unwrap().approver.unwrap();
    assert_eq!(kept.bundle().unwrap(), *first.bundle(), "untouched");
    // A second device: the first has to add it.
    assert!(matches!(
        second.enrol().await.unwrap(),
        EnrolmentProgress::Asks(_)
    ));
    let link = invite(&world, "approver", "alice").await;
    let JoinOutcome::Approver(third) = joins(&world, "default", &link, true).await.unwrap() else {
        panic!("an approver");
    };
    assert_eq!(third.profile().path(), world.file("default").path());
    assert_ne!(third.device_id(), first.device_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_works_once_and_in_time_and_a_bad_profile_costs_none() {
    let world = ClientScene::start().await;
    let link = invite(&world, "approver", "alice").await;
    // The profile is looked at first.
    let file = world.file("damaged");
    std::fs::create_dir_all(file.path().parent().unwrap()).unwrap();
    std::fs::write(file.path(), "no = [").unwrap();
    assert!(matches!(
        joins(&world, "damaged", &link, false).await,
        Err(ClientError::Profile(_))
    ));
    joins(&world, "good", &link, false)
        .await
        .expect("the code was not used up");
    let refused = joins(&world, "again", &link, false).await.err().unwrap();
    assert!(
        matches!(refused, ClientError::NoSuchInvitation),
        "{refused}"
    );
    assert!(
        !world.file("again").path().exists(),
        "nothing is left behind"
    );
    let link = invite(&world, "enforcer", "bot").await;
    world.cluster.pass(Duration::from_secs(25 * 3_600));
    let refused = joins(&world, "late", &link, false).await.err().unwrap();
    assert!(
        matches!(refused, ClientError::NoSuchInvitation),
        "{refused}"
    );
}

#[test]
fn what_is_no_invitation_is_refused_before_anything_is_sent() {
    for text in [
        "",
        "https://gateway.example.org",
        "https://gateway.example.org/#/join/",
        "https://gateway.example.org/#/join/short",
        "https://gateway.example.org/#/join/with spaces in the code of it",
        "https://gateway.example.org/#/pair/7K3M-9QRT/aaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbb",
    ] {
        assert!(
            matches!(InvitationLink::parse(text), Err(ClientError::Invitation)),
            "{text}"
        );
    }
    let good =
        InvitationLink::parse(" https://gateway.example.org/base/#/join/abcdefghijklmnopqrstuv\n");
    assert_eq!(
        good.unwrap().page(),
        Some("https://gateway.example.org/base")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_joins_from_standard_input_and_hides_the_code() {
    let world = ClientScene::start().await;
    let link = invite(&world, "approver", "alice").await;
    let mut command = crate::support::process::countersign();
    command
        .env("XDG_CONFIG_HOME", world.directory.path())
        .args(["join", "-", "--name", "desk", "--json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), link.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out} {err}");
    let joined: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(joined["state"], "inForce");
    let (_, code) = link.rsplit_once('/').unwrap();
    let key = world
        .file("default")
        .load()
        .unwrap()
        .approver
        .unwrap()
        .gateway
        .api_key;
    for secret in [code, key.expose()] {
        assert!(
            !out.contains(secret) && !err.contains(secret),
            "{out} {err}"
        );
    }
    assert_eq!(
        world.file("default").load().unwrap().approver.unwrap().name,
        "desk"
    );
}
