//! Several at once: two states with one number, a pairing beside a new state, retention beside both.

use countersign::e2e::SignedTeamState;
use futures_util::future::join_all;

use super::scene::{Person, TeamScene};
use crate::support::{counts, tally};

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_states_with_the_same_number_one_is_accepted() {
    let scene = TeamScene::new(3).await;
    let mut team = scene.create("payments").await;
    for round in 0..5 {
        let states = (0..10).map(|n| {
            team.next(&scene.alice.device, |content| {
                content.name = format!("{round} {n}");
            })
        });
        let states: Vec<_> = states.collect();
        let path = team.path("states");
        let texts: Vec<_> = states.iter().map(SignedTeamState::to_text).collect();
        let answers = join_all(texts.iter().map(|text| scene.alice.post(&path, text))).await;
        assert_eq!(
            tally(&answers),
            counts([("201", 1), ("409 TEAM_STATE_TAKEN", 9)])
        );
        let accepted = answers
            .iter()
            .position(|answer| answer.status == 201)
            .unwrap();
        team.state = states[accepted].state().clone();
        for refused in answers.iter().filter(|answer| answer.status == 409) {
            assert_eq!(refused.detail("head"), team.head());
        }
    }
    // The same one several times is written once, and needs one consent.
    scene.agree(&team, &scene.bob, &scene.carol).await;
    let seat = scene.carol.seat(false);
    let next = team
        .next(&scene.bob.device, |content| content.seats.push(seat))
        .to_text();
    let path = team.path("states");
    let answers = join_all((0..6).map(|_| scene.bob.post(&path, &next))).await;
    assert_eq!(tally(&answers), counts([("200", 5), ("201", 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn consents_beside_a_removal_do_not_outlive_it() {
    let scene = TeamScene::new(3).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    let (states, consents) = (team.path("states"), team.path("consents"));
    for _ in 0..8 {
        scene.admit(&mut team, alice, carol).await;
        let (_, first) = scene.invite(&team, bob, carol).await;
        let (_, second) = scene.invite(&team, carol, carol).await;
        let next = team.next(&alice.device, |content| content.seats.truncate(2));
        let text = next.to_text();
        let (removed, _, _) = tokio::join!(
            alice.post(&states, &text),
            carol.post(&consents, &first),
            carol.post(&consents, &second),
        );
        removed.expect(201);
        team.state = next.state().clone();
        let rows = "select count(*) from team_consents where approver_id = 'carol'";
        assert_eq!(scene.cluster.database.number(rows).await, 0);
        carol.client().get(&states).await.refused(404, "NOT_FOUND");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pairing_beside_a_new_state_leaves_nobody_out_and_nobody_in() {
    let scene = TeamScene::new(3).await;
    let (alice, bob, carol) = (&scene.alice, &scene.bob, &scene.carol);
    let mut team = scene.create("payments").await;
    let dora = Person::new(&scene.cluster, "dora").await;
    for round in 0..12 {
        let joins = round % 2 == 0;
        if joins {
            for person in [carol, &dora] {
                scene.agree(&team, alice, person).await;
            }
        }
        let next = team.next(&alice.device, |content| {
            if joins {
                content.seats.push(carol.seat(false));
                content.seats.push(dora.seat(false));
            } else {
                content.seats.truncate(2);
            }
        });
        let (path, text) = (team.path("states"), next.to_text());
        let (published, paired, direct) = tokio::join!(
            alice.post(&path, &text),
            scene.answer(&scene.bot, bob, Some(&team)),
            scene.answer(&scene.bot, carol, None),
        );
        published.expect(201);
        paired.expect(200);
        let token = direct.expect(200).json()["routingToken"]
            .as_str()
            .unwrap()
            .to_owned();
        team.state = next.state().clone();
        let expected = if joins {
            "alice* bob* carol dora*"
        } else {
            "alice* bob* carol"
        };
        assert_eq!(scene.paired().await, expected, "round {round}");

        // Her direct pairing ends beside the next state, too.
        let next = team.next(&bob.device, |content| {
            content.name = format!("round {round}");
        });
        let (path, text) = (team.path("states"), next.to_text());
        let body = serde_json::json!({ "routingToken": token });
        let (published, revoked) = tokio::join!(
            bob.post(&path, &text),
            carol.client().post("/v1/pairing/revoke", &body),
        );
        published.expect(201);
        revoked.expect(200);
        team.state = next.state().clone();
        let expected = if joins {
            "alice* bob* carol* dora*"
        } else {
            "alice* bob*"
        };
        assert_eq!(scene.paired().await, expected, "round {round}");
    }
}
