//! Somebody who edits the gateway's database: no enforcer acts on it, and no device is deceived by
//! it.

use std::fmt::Write as _;
use std::time::Duration;

use countersign::client::ClientError;
use countersign::client::random;
use countersign::e2e::{EnforcerBundle, EnforcerKeys, Error, PairingLink, ReceivedAnswer};
use countersign::protocol::decision::Verdict;
use countersign::protocol::id::{EnforcerId, TextId as _};
use serde_json::Value;

use super::pairing::answer_of;
use super::scene::{Hold, HostileScene, REVOKED, SIGNATURE, UNKNOWN, approve_as};
use crate::client::people::choice;
use crate::support::devices::Device;

const TIME: Duration = Duration::from_secs(600);

impl HostileScene {
    async fn sql(&self, sql: &str) {
        self.world.cluster.database.run(sql).await;
    }

    /// The stored decision of a request.
    async fn decided(&self, id: &str) -> String {
        let sql = format!(
            "select body::text from exchange_payloads where request_id = '{id}' and part = 'decision'"
        );
        self.world.cluster.database.text(&sql).await
    }

    async fn overwrite(&self, id: &str, body: &str) {
        let body = body.replace('\'', "''");
        self.sql(&format!(
            "update exchange_payloads set body = '{body}' where request_id = '{id}' and part = 'decision';
             update exchanges set decision = 'approve', verified = true where request_id = '{id}'"
        ))
        .await;
    }

    /// Somebody rejects, the stored decision is edited, and only then does the enforcer get it.
    async fn denied_after(&self, edit: impl AsyncFnOnce(&str)) -> String {
        let hold = Hold::default();
        self.lie(hold.lie());
        let denied = self.ask_with(self.enforcer(), TIME, async |id| {
            self.decide(&id, &choice(Verdict::Reject)).await;
            edit(&id).await;
            hold.release();
        });
        denied.await.unwrap_err().to_string()
    }

    /// An approval of another request, as it is stored.
    async fn approved_before(&self) -> String {
        self.lie(super::meddler::Lie::default());
        let mut request = String::new();
        let accepted = self.ask_with(self.enforcer(), TIME, async |id| {
            request.clone_from(&id);
            self.decide(&id, &choice(Verdict::Approve)).await;
        });
        accepted.await.unwrap();
        self.decided(&request).await
    }

    /// Makes the gateway itself take a device for one of alice's.
    async fn register(&self, device: &Device) {
        let bundle = device.bundle.to_text().unwrap();
        let (tenant, id) = (&self.owner.tenant, device.id());
        let key = device.signing_key().verifying_key();
        let key = key.as_bytes().iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        });
        let signed = self.owner.add(device, device);
        self.sql(&format!(
            "insert into signing_keys (tenant_id, approver_id, signer_key_id, public_key)
             values ('{tenant}', 'alice', '{id}', '\\x{key}');
             insert into device_statements (tenant_id, approver_id, position, change, accepted_at, device_id, by_device,
                                            bundle, name, statement_hash, signed)
             values ('{tenant}', 'alice', 100, 'add', now(), '{id}', '{id}', '{bundle}', 'mallory', '\\x00', '{signed}')"
        ))
        .await;
    }
}

fn approved_by(device: &Device, body: &str) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    approve_as(&device.keys)(&mut body);
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_decision_that_is_edited_approves_nothing() {
    let scene = HostileScene::start().await;
    let old = scene.approved_before().await;

    let denial = scene.denied_after(async |id: &str| {
        let flipped = scene.decided(id).await.replace("\"reject\"", "\"approve\"");
        scene.overwrite(id, &flipped).await;
    });
    let denial = denial.await;
    assert!(denial.contains(SIGNATURE), "flipped: {denial}");

    let denial = scene
        .denied_after(async |id: &str| scene.overwrite(id, &old).await)
        .await;
    assert!(
        denial.contains("about another request"),
        "of another: {denial}"
    );

    let denial = scene.denied_after(async |id: &str| {
        let mut body: Value = serde_json::from_str(&old).unwrap();
        body["requestId"] = id.into();
        scene.overwrite(id, &body.to_string()).await;
    });
    let denial = denial.await;
    assert!(
        denial.contains(SIGNATURE),
        "of another, made out to this: {denial}"
    );

    let denial = scene
        .denied_after(async |id: &str| scene.overwrite(id, "{}").await)
        .await;
    assert!(denial.contains("in the compact form"), "nothing: {denial}");

    // With the program.
    let hold = Hold::default();
    let (ran, ended) = scene
        .run(hold.lie(), async |id| {
            scene.decide(&id, &choice(Verdict::Reject)).await;
            let flipped = scene
                .decided(&id)
                .await
                .replace("\"reject\"", "\"approve\"");
            scene.overwrite(&id, &flipped).await;
            hold.release();
        })
        .await;
    assert!(!ran, "{}", ended.err);
    assert_eq!(ended.code, 77, "{}", ended.err);
    assert!(ended.err.contains(SIGNATURE), "{}", ended.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_is_inserted_or_brought_back_decides_nothing() {
    let mut scene = HostileScene::start().await;
    let mallory = Device::new("mallory");
    scene.register(&mallory).await;
    let denial = scene.denied_after(async |id: &str| {
        let body = approved_by(&mallory, &scene.decided(id).await);
        scene.overwrite(id, &body).await;
    });
    let denial = denial.await;
    assert!(denial.contains(UNKNOWN), "inserted: {denial}");
    scene
        .sql("delete from device_statements where position = 100")
        .await;

    // Revoked, and the enforcer has read it. Then the revocation is removed.
    let (_, phone) = scene.added("phone").await;
    scene.alice.revoke_device(phone.keys.id()).await.unwrap();
    let denial = scene.denied_after(async |_| {}).await;
    assert!(denial.contains("alice rejected it"), "{denial}");
    let record = scene.enforcer_now().approvers()[0].clone();
    assert!(record.revoked.contains(&phone.id()));
    scene.remember(|known| *known = record);
    scene
        .sql("delete from device_statements where change = 'revoke'; update signing_keys set revoked_at = null")
        .await;
    scene.remember(|record| record.checked_at.clear());
    let denial = scene.denied_after(async |id: &str| {
        let body = approved_by(&phone, &scene.decided(id).await);
        scene.overwrite(id, &body).await;
    });
    let denial = denial.await;
    assert!(denial.contains(REVOKED), "brought back: {denial}");

    let hold = Hold::default();
    let (ran, ended) = scene
        .run(hold.lie(), async |id| {
            scene.decide(&id, &choice(Verdict::Reject)).await;
            let body = approved_by(&mallory, &scene.decided(&id).await);
            scene.overwrite(&id, &body).await;
            hold.release();
        })
        .await;
    assert!(!ran, "{}", ended.err);
    assert_eq!(ended.code, 77, "{}", ended.err);
    assert!(ended.err.contains(UNKNOWN), "{}", ended.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_request_that_is_edited_cannot_be_approved() {
    let scene = HostileScene::start().await;
    scene.approved_before().await;
    let sql = "select body::text from exchange_payloads where part = 'artifact'";
    let old = scene.world.cluster.database.text(sql).await;
    let payload = |value: &str| {
        format!("update exchange_payloads set body = ({value})::json where part = 'artifact' and")
    };
    let zeros = "0".repeat(64);
    let hash = format!("regexp_replace(body::text, '[0-9a-f]{{64}}', '{zeros}')");
    let kind = "replace(body::text, 'command.review', 'plan.review')";
    let content =
        format!("jsonb_set(body::jsonb, '{{ciphertext}}', '{old}'::jsonb -> 'ciphertext')");
    let none = "no decision in time";
    for (what, edit, cause) in [
        ("content", payload(&content), "alice rejected it"),
        ("hash", payload(&hash), none),
        ("type", payload(kind), "alice rejected it"),
        (
            "enforcer",
            "update exchanges set enforcer_id = 'other' where".to_owned(),
            "404 NOT_FOUND",
        ),
    ] {
        let hold = Hold::default();
        scene.lie(hold.lie());
        let denied = scene.ask_with(scene.enforcer(), Duration::from_secs(5), async |id| {
            let whole = scene.item(&scene.alice, &id).await;
            assert!(whole.content.is_ok());
            scene.sql(&format!("{edit} request_id = '{id}'")).await;
            let edited = scene.item(&scene.alice, &id).await;
            assert!(edited.content.is_err(), "{what}: it does not open");
            let refused = scene.alice.decide(&edited, &choice(Verdict::Approve)).await;
            let expected = matches!(refused, Err(ClientError::NotApprovable(_)));
            assert!(expected, "{what}");
            // The gateway refuses it where its tables contradict each other.
            let _refused = scene.alice.decide(&edited, &choice(Verdict::Reject)).await;
            hold.release();
        });
        let denial = Box::pin(denied).await.expect_err(what).to_string();
        // The gateway may have ended it a moment before.
        let ended = cause == none && denial.contains("without a decision (expired)");
        assert!(denial.contains(cause) || ended, "{what}: {denial}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_that_are_edited_are_not_shown() {
    let scene = HostileScene::start().await;
    scene
        .sql("update pairings set enforcer_label = 'your bank', workspace_name = 'vault'")
        .await;
    let denial = scene.denied_after(async |_| {});
    assert!(denial.await.contains("alice rejected it"));
    scene.lie(super::meddler::Lie::default());
    let asked = scene.ask_with(scene.enforcer(), TIME, async |id| {
        let item = scene.item(&scene.alice, &id).await;
        assert_eq!(item.label.as_deref(), Some("build machine"));
        scene.decide(&id, &choice(Verdict::Approve)).await;
    });
    asked.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_swapped_while_two_pair_pin_nobody() {
    let mut scene = HostileScene::start().await;
    let enforcer = scene.world.enforcer("novice").await;
    // The enforcer's key, before the device has seen it.
    let begun = enforcer.begin_pairing(None, None).await.unwrap();
    let link = PairingLink::parse(&begun.link("https://page.example.org")).unwrap();
    let keys = EnforcerKeys::generate(&mut random).unwrap();
    let id = EnforcerId::parse("novice").unwrap();
    let offer = EnforcerBundle::new(&keys, id, &mut random)
        .unwrap()
        .to_text()
        .unwrap();
    scene
        .sql(&format!(
            "update pairing_sessions set enforcer_key = '{offer}' where completed_at is null"
        ))
        .await;
    let refused = scene.alice.pair_by_link(&link).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Crypto(Error::Fingerprint)),
        "{refused}"
    );

    // The device's key, before the enforcer has seen it: with no proof, and with the real one.
    for with_proof in [false, true] {
        let begun = enforcer.begin_pairing(None, None).await.unwrap();
        let link = PairingLink::parse(&begun.link("https://page.example.org")).unwrap();
        scene.alice.pair_by_link(&link).await.unwrap();
        let row = "from pairing_sessions where completed_at is not null and enforcer_id = 'novice'
                    order by created_at desc limit 1";
        let text = async |column: &str| {
            let sql = format!("select {column} {row}");
            scene.world.cluster.database.text(&sql).await
        };
        let (nonce, offer, real) = (
            text("nonce").await,
            text("enforcer_key").await,
            text("approver_key").await,
        );
        let mut forged = answer_of(&scene.mallory, &offer, &nonce, "alice");
        if with_proof {
            forged = with_proof_of(&forged, &real);
        }
        scene
            .sql(&format!(
                "update pairing_sessions set approver_key = '{forged}' where nonce = '{nonce}';
                 update pairings set approver_key = '{forged}' where nonce = '{nonce}'"
            ))
            .await;
        match enforcer.wait_for_answer(begun).await {
            Ok(Some(completed)) if !with_proof => {
                let (received, pairing) = completed.split();
                assert!(
                    matches!(received, ReceivedAnswer::ToCompare(_)),
                    "it proves nothing"
                );
                enforcer.abort(pairing).await.unwrap();
            }
            Err(ClientError::Crypto(Error::PairingProof)) if with_proof => {}
            Err(error) => panic!("{with_proof}: {error}"),
            Ok(_) => panic!("{with_proof}: accepted"),
        }
        assert!(enforcer.approvers().is_empty());
    }
}

fn with_proof_of(forged: &str, real: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let read = |text: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    };
    let mut forged = read(forged);
    forged["proof"] = read(real)["proof"].clone();
    URL_SAFE_NO_PAD.encode(forged.to_string())
}
