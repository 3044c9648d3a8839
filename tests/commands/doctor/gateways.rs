//! The parts behind the hook: profile, gateway, clock, approvers. A gateway that lies is one more
//! finding.

use std::os::unix::fs::PermissionsExt as _;

use countersign::client::approver::Approver;
use countersign::client::profile::{Profile, ProfileError, SecretText};

use super::{Diagnosis, diagnose};
use crate::client::people::{ClientScene, answers, pair, refusing};
use crate::commands::install::{AGENTS, Home};

async fn paired() -> (ClientScene, Approver) {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    (world, alice)
}

fn change(world: &ClientScene, change: impl FnOnce(&mut Profile)) {
    let changed = world.file("bot").update(|profile: &mut Profile| {
        change(profile);
        Ok::<_, ProfileError>(())
    });
    changed.unwrap();
}

/// The profile of the world, and a home of its own for the agents.
async fn examine(world: &ClientScene, home: Home, arguments: &'static [&'static str]) -> Diagnosis {
    let config = world.directory.path().to_str().unwrap().to_owned();
    let examining = tokio::task::spawn_blocking(move || {
        let variables = [
            ("XDG_CONFIG_HOME", config.as_str()),
            ("COUNTERSIGN_PROFILE", "bot"),
        ];
        diagnose(&home, arguments, &variables)
    });
    examining.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_order_passes() {
    let (world, alice) = paired().await;
    let home = Home::new();
    for (agent, _) in AGENTS.into_iter().filter(|(agent, _)| *agent != "opencode") {
        assert_eq!(
            home.run(&["install", agent, "--yes", "--profile", "bot"])
                .code,
            0
        );
    }
    let diagnosis = examine(&world, home, &[]).await;
    diagnosis.expect("profile", "ok", "enforcer bot");
    diagnosis.expect("gateway", "ok", "accepts the credential");
    diagnosis.expect("clock", "ok", "");
    diagnosis.expect("approver alice", "ok", "laptop");
    diagnosis.expect("claude canary", "ok", "");
    // Both ends of this world have one directory.
    diagnosis.expect("approver's keys", "warning", "laptop.toml");
    assert_eq!(diagnosis.code, 0);
    assert!(
        alice.find("").await.unwrap().is_empty(),
        "the canary asks nobody"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_cannot_be_used_fails() {
    let (world, _alice) = paired().await;
    let path = world.file("bot").path().to_owned();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    examine(&world, Home::new(), &["claude"])
        .await
        .expect("profile", "failed", "chmod 600");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    change(&world, |profile| profile.enforcer = None);
    examine(&world, Home::new(), &["claude"])
        .await
        .expect("profile", "failed", "no enforcer");
    std::fs::write(&path, "[enforcer\n").unwrap();
    examine(&world, Home::new(), &["claude"])
        .await
        .expect("profile", "failed", "line 1");
    std::fs::remove_file(&path).unwrap();
    let diagnosis = examine(&world, Home::new(), &["claude"]).await;
    diagnosis.expect("profile", "failed", "countersign join");
    assert!(diagnosis.of("gateway").is_empty());
    assert_eq!(diagnosis.code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_refuses_is_told() {
    let (world, _alice) = paired().await;
    let mut good = None;
    change(&world, |profile| {
        let gateway = &mut profile.enforcer.as_mut().unwrap().gateway;
        good = Some(std::mem::replace(
            &mut gateway.api_key,
            SecretText::new("wrong"),
        ));
    });
    let diagnosis = examine(&world, Home::new(), &["claude"]).await;
    diagnosis.expect("gateway", "failed", "does not accept the credential");
    diagnosis.expect("approver alice", "warning", "1 active device(s)");
    change(&world, |profile| {
        profile.enforcer.as_mut().unwrap().gateway.api_key = good.unwrap();
    });
    examine(&world, Home::new(), &["claude"])
        .await
        .expect("gateway", "ok", "");
    change(&world, |profile| {
        profile.enforcer.as_mut().unwrap().approvers[0].id = "bob".to_owned();
    });
    let diagnosis = examine(&world, Home::new(), &["claude"]).await;
    diagnosis.expect("approver bob", "failed", "countersign pair");
    change(&world, |profile| {
        profile.enforcer.as_mut().unwrap().approvers.clear();
    });
    let diagnosis = examine(&world, Home::new(), &["claude"]).await;
    diagnosis.expect("pairing", "failed", "countersign pair");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_or_lies_is_a_finding_and_nothing_worse() {
    let (world, _alice) = paired().await;
    let (_socket, away) = refusing();
    let at = async |url: String| {
        change(&world, |profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = vec![url];
        });
        examine(&world, Home::new(), &["claude"]).await
    };
    let diagnosis = at(away).await;
    diagnosis.expect("gateway", "failed", "cannot be reached");
    assert!(diagnosis.of("clock").is_empty());
    for (answer, check, status, part) in [
        (
            "HTTP/1.1 404 No\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "clock",
            "failed",
            "behind",
        ),
        (
            "HTTP/1.1 404 No\r\ndate: Fri, 31 Dec 9999 23:59:59 GMT\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "clock",
            "failed",
            "ahead",
        ),
        (
            "HTTP/1.1 404 No\r\ndate: soon\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "clock",
            "warning",
            "does not say",
        ),
        (
            "HTTP/1.1 404 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "clock",
            "warning",
            "does not say",
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 15\r\n\r\n{\"statements\":1",
            "approver alice",
            "failed",
            "expected",
        ),
        (
            "HTTP/1.1 418 No\r\nconnection: close\r\ncontent-length: 9\r\n\r\n\x1b[2J\u{202e}\"]}",
            "gateway",
            "failed",
            "status 418",
        ),
        (
            "HTTP/1.1 404 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "approver alice",
            "failed",
            "pair again",
        ),
        ("nonsense\r\n\r\n", "gateway", "failed", ""),
        (
            "HTTP/1.1 999 \x1b[2J\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "gateway",
            "failed",
            "",
        ),
    ] {
        let diagnosis = at(answers(answer.to_owned()).await).await;
        diagnosis.expect(check, status, part);
        assert_eq!(diagnosis.code, 1, "{answer}");
        let said = format!("{:?}", diagnosis.of("gateway"));
        assert!(
            !said.contains('\x1b') && !said.contains('\u{202e}'),
            "{said}"
        );
    }
}
