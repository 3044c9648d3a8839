//! Whom submissions reach by pairings, and when they no longer do.

use super::{REVOKE, pair, revocation, submit, unaddressed};
use crate::support::{Cluster, request_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_reaches_its_approver_and_no_token_reaches_every_paired_one() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let other = cluster.enforcer("deploy-bot").await;
    let (alice, bob) = (
        cluster.approver("alice").await,
        cluster.approver("bob").await,
    );
    let nobody = submit(&enforcer, &request_id(), None).await;
    nobody.refused_at(422, "NO_APPROVER", "/recipient/approverId");
    let to_alice = pair(&enforcer, &alice).await;
    let to_bob = pair(&enforcer, &bob).await;
    let others = pair(&other, &alice).await;

    let requests = [request_id(), request_id(), request_id()];
    let [first, second, both] = &requests;
    submit(&enforcer, first, Some(&to_alice)).await.expect(202);
    submit(&enforcer, second, Some(&to_bob)).await.expect(202);
    submit(&enforcer, both, None).await.expect(202);
    assert_eq!(alice.inbox_ids().await, [first.as_str(), both]);
    assert_eq!(bob.inbox_ids().await, [second.as_str(), both]);
    for token in [others.as_str(), "nonsense", ""] {
        let refused = submit(&enforcer, &request_id(), Some(token)).await;
        refused.refused_at(422, "NO_APPROVER", "/body/metadata/routingToken");
    }

    // Without alice, "every paired one" is bob, and then nobody.
    alice
        .client
        .post(REVOKE, &revocation(&to_alice))
        .await
        .expect(200);
    let later = request_id();
    submit(&enforcer, &later, None).await.expect(202);
    assert_eq!(bob.inbox_ids().await.last(), Some(&later));
    assert_eq!(alice.inbox_ids().await, [first.as_str(), both]);
    enforcer
        .client
        .post(REVOKE, &revocation(&to_bob))
        .await
        .expect(200);
    let nobody = submit(&enforcer, &request_id(), None).await;
    nobody.refused_at(422, "NO_APPROVER", "/recipient/approverId");
    submit(&other, &request_id(), Some(&others))
        .await
        .expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn either_side_revokes_and_a_repeat_of_what_was_taken_is_still_a_repeat() {
    let cluster = Cluster::start(2).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    for side in [&enforcer.client, &alice.client] {
        let token = pair(&enforcer, &alice).await;
        let by_token = unaddressed(&enforcer, &request_id(), Some(&token));
        let by_pairing = unaddressed(&enforcer, &request_id(), None);
        for message in [&by_token, &by_pairing] {
            let taken = enforcer.client.post("/v1/artifacts", message).await;
            assert_eq!(taken.outcome(), "202");
        }
        for _ in 0..2 {
            side.post(REVOKE, &revocation(&token)).await.expect(200);
        }
        let refused = submit(&enforcer, &request_id(), Some(&token)).await;
        refused.refused(403, "PAIRING_REVOKED");
        for message in [&by_token, &by_pairing] {
            let again = enforcer.client.post("/v1/artifacts", message).await;
            assert_eq!(again.outcome(), "202 duplicate");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pairing_again_replaces_the_token_and_undoes_a_revocation() {
    let cluster = Cluster::start(3).await;
    let enforcer = cluster.enforcer("build-bot").await;
    let alice = cluster.approver("alice").await;
    let mut old: Vec<String> = Vec::new();
    for turn in 0..3 {
        let token = pair(&enforcer, &alice).await;
        submit(&enforcer, &request_id(), Some(&token))
            .await
            .expect(202);
        for replaced in &old {
            let refused = submit(&enforcer, &request_id(), Some(replaced)).await;
            refused.refused(403, "PAIRING_REVOKED");
            // It is no longer good, as was wished; the newer one is not touched.
            let again = alice.client.post(REVOKE, &revocation(replaced)).await;
            again.expect(200);
        }
        submit(&enforcer, &request_id(), Some(&token))
            .await
            .expect(202);
        if turn == 1 {
            let revoked = enforcer.client.post(REVOKE, &revocation(&token)).await;
            revoked.expect(200);
        }
        old.push(token);
    }
    let rows = "select count(*) from pairings";
    assert_eq!(cluster.database.number(rows).await, 1);
}
