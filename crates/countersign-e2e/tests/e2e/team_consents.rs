//! Joining a team, and introductions to it.

use countersign_e2e::{Error, Introduction, IntroductionClaims, SignedConsent, TeamLink};
use serde_json::{Value, json};

use super::people::{known, node, now, tenant, world};
use super::several::person;
use super::team_scene::{TeamScene, bundle, key};
use super::texts::{canon, parsed};

fn link() -> TeamLink {
    TeamLink::generate(
        TeamScene::new(1).chain.head().team,
        &mut known("invitation"),
    )
    .unwrap()
}

fn consent(link: &TeamLink, id: &str, by: &'static str) -> SignedConsent {
    let devices = [bundle("erin"), bundle("new")];
    let signed = link.consent(&tenant(), &person(id), &devices, now(), &key(by));
    signed.unwrap()
}

pub fn consent_vectors() -> Value {
    let (link, page) = (link(), "https://gateway.example.org/");
    let text = link.expose(page).to_string();
    let reread = TeamLink::parse(&text).unwrap();
    assert_eq!(reread.expose(page), link.expose(page));
    let good = consent(&reread, "erin", "erin");
    let other = TeamLink::generate(link.team(), &mut known("another invitation")).unwrap();
    let altered = |pointer: &str, value: Value| {
        let mut changed = parsed(&good.to_text());
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let cases = [
        ("right", parsed(&good.to_text()), None),
        (
            "of another invitation",
            parsed(&consent(&other, "erin", "erin").to_text()),
            Some(Error::TeamProof),
        ),
        (
            "of somebody else",
            parsed(&consent(&link, "mallory", "erin").to_text()),
            Some(Error::OtherApprover),
        ),
        (
            "signed by a device that is not in it",
            parsed(&consent(&link, "erin", "dave").to_text()),
            Some(Error::UnknownDevice(key("dave").id())),
        ),
        (
            "another device in it",
            altered(
                "/statement/devices/1",
                json!(bundle("dave").to_text().unwrap()),
            ),
            Some(Error::TeamProof),
        ),
        (
            "another signature",
            altered(
                "/signature",
                parsed(&consent(&other, "erin", "erin").to_text())["signature"].clone(),
            ),
            Some(Error::StatementSignature),
        ),
        (
            "another proof",
            altered(
                "/proof",
                parsed(&consent(&other, "erin", "erin").to_text())["proof"].clone(),
            ),
            Some(Error::TeamProof),
        ),
    ];
    let rows = cases.into_iter().map(|(name, signed, refusal)| {
        let text = canon(&signed);
        let read = SignedConsent::parse(&node(&text)).unwrap();
        let received = link.receive(&tenant(), &person("erin"), &read);
        assert_eq!(received.err(), refusal, "{name}");
        json!({ "name": name, "signed": signed, "isRefused": refusal.is_some() })
    });
    let rows: Value = rows.collect();
    for broken in [
        "https://x/#/team/a/b",
        "#/team/a/b/c",
        "nothing",
        &text[..text.len() - 1],
    ] {
        assert_eq!(
            TeamLink::parse(broken).unwrap_err(),
            Error::TeamLink,
            "{broken}"
        );
    }
    json!({ "link": text, "invited": "erin", "tenantId": "acme", "rows": rows })
}

#[test]
fn members_accept_introductions_by_owners_of_their_team_only() {
    let (world, scene) = (world(), TeamScene::new(1));
    let introduce = |approver: &str, by: &'static str, team| {
        let about = (&world.pinned_enforcer, None);
        let claims = IntroductionClaims {
            operators: None,
            team,
        };
        let made = Introduction::new(
            &tenant(),
            &person(approver),
            about,
            &claims,
            now(),
            key(by).id(),
        );
        made.unwrap().sign(&key(by)).unwrap()
    };
    let (team, state) = (Some(scene.chain.head().team), scene.chain.state());
    assert_eq!(
        introduce("bob", "bob", team).accept_in(state),
        Ok(&world.pinned_enforcer)
    );
    let foreign = Some(TeamScene::new(2).chain.head().team);
    for (approver, by, team) in [
        ("carol", "carol", team),
        ("erin", "erin", team),
        ("alice", "bob", team),
        ("bob", "bob", foreign),
        ("bob", "bob", None),
    ] {
        assert!(
            introduce(approver, by, team).accept_in(state).is_err(),
            "{approver} {by}"
        );
    }
    let to_team = introduce("alice", "phone", team);
    assert_eq!(to_team.accept(&world.trust), Err(Error::OtherApprover));
}
