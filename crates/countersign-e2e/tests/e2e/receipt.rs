//! Receipts: what is proven, and that nothing false is. `tests/vectors/receipt.json` is for other
//! implementers; after a deliberate change, run this once with `WRITE_VECTORS=1`.

use std::sync::LazyLock;

use countersign_e2e::{
    ArtifactHints, DeviceTrust, Error, ProofGap, RULE, Receipt, ReceiptAnchors, ReceiptFact,
    ReceiptPart, ReceiptReport, SignedStatement, VoteState, reject_unopened,
};
use countersign_protocol::decision::Verdict;
use countersign_protocol::id::{RequestId, TextId as _};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::people::{add, alice, device, known, revoke, tenant, time};
use super::receipt_cases::{
    ALLOWED, NOBODY_VOUCHES, REJECTED, ReceiptCase, consistent, false_claims, good, reject, single,
    two,
};
use super::several::{
    NAMES, Person, SetScene, check_vectors, comment, complete, member, members, people, person,
    two_of_three,
};

fn anchors() -> ReceiptAnchors {
    let trusts = NAMES.map(|name| member(name).trust);
    trusts
        .into_iter()
        .fold(ReceiptAnchors::default(), ReceiptAnchors::with_trust)
}

/// The facts that are not proven: `absent`, or `failed`.
pub fn gaps(report: &ReceiptReport) -> Vec<String> {
    let gaps = report.checks.iter().filter_map(|check| {
        let gap = match check.result.as_ref().err()? {
            ProofGap::Absent => "absent",
            ProofGap::Failed(_) => "failed",
        };
        let place = check
            .part
            .map(|place| format!(" {place}"))
            .unwrap_or_default();
        Some(format!("{}{place}: {gap}", check.fact.as_str()))
    });
    gaps.collect()
}

/// A reader does not look into the texts of a receipt.
fn readable() -> Receipt {
    let mut receipt = good();
    receipt.parts.truncate(1);
    "a decision".clone_into(&mut receipt.parts[0].decision);
    Receipt {
        artifact: Some("an artifact".to_owned()),
        outcome: Some("an outcome".to_owned()),
        ..receipt
    }
}

fn malformed() -> Vec<(&'static str, Value)> {
    let good: Value = serde_json::from_str(&readable().to_text().unwrap()).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let add = |pointer: &str, name: &str, value: Value| {
        let mut changed = good.clone();
        changed.pointer_mut(pointer).unwrap()[name] = value;
        changed
    };
    let without = |pointer: &str, name: &str| {
        let mut changed = good.clone();
        let part = changed
            .pointer_mut(pointer)
            .unwrap()
            .as_object_mut()
            .unwrap();
        part.remove(name).unwrap();
        changed
    };
    let part = &good["parts"][0];
    vec![
        ("version 1", with("/v", json!(1))),
        ("version 3", with("/v", json!(3))),
        ("no tenant", without("", "tenantId")),
        ("no enforcer", without("", "enforcerId")),
        ("no devices", without("", "devices")),
        ("no parts", with("/parts", json!([]))),
        ("a request twice", with("/parts", json!([part, part]))),
        ("no request", without("/parts/0", "requestId")),
        ("no approver", without("/parts/0", "approverId")),
        ("no decision", without("/parts/0", "decision")),
        ("no device", without("/parts/0", "device")),
        ("no bundle", with("/parts/0/device", json!("AAAA"))),
        (
            "a short key of the hints",
            with("/parts/0/hintsKey", json!("AAAA")),
        ),
        ("a further member", add("", "more", json!(1))),
        (
            "a further member of a part",
            add("/parts/0", "more", json!(1)),
        ),
        ("the artifact as an object", with("/artifact", json!({}))),
        ("the outcome as an object", with("/outcome", json!({}))),
        ("a statement as an object", with("/devices", json!([{}]))),
    ]
}

fn checked(case: &ReceiptCase) -> (Value, bool) {
    let text = case.receipt.to_text().unwrap();
    let read = Receipt::parse(text.as_bytes()).unwrap();
    assert_eq!(read, case.receipt, "{}", case.name);
    let report = read.verify(&anchors());
    let all = [case.gaps, &["asked: absent"]].concat();
    assert_eq!(gaps(&report), all, "{}: {:?}", case.name, report.checks);
    let vector = json!({ "name": case.name, "receipt": text, "unproven": all });
    (vector, report.is_consistent())
}

#[test]
fn receipts_prove_the_facts_of_the_vectors() {
    let consistent = consistent().into_iter().map(|case| {
        let (vector, is_consistent) = checked(&case);
        assert!(is_consistent, "{}", case.name);
        vector
    });
    let others = false_claims().into_iter().map(|case| checked(&case).0);
    let malformed = malformed().into_iter().map(|(name, value)| {
        let text = format!("{value:#}\n");
        assert!(Receipt::parse(text.as_bytes()).is_err(), "{name}");
        json!({ "name": name, "receipt": text })
    });
    let bundles = NAMES.map(|name| {
        (
            name.to_owned(),
            json!([member(name).bundle.to_text().unwrap()]),
        )
    });
    let vectors = json!({
        "about": "Receipts (docs/encryption.md, Receipts), for a verifier that trusts the devices in anchors: for \
            each approver, their bundles. unproven has the facts that are not proven, with the place of the \
            part; absent: nothing proves it; failed: it is false. All other facts are proven. malformed: files \
            that are not read.",
        "tenantId": tenant().as_str(),
        "anchors": Value::Object(bundles.into_iter().collect()),
        "consistent": consistent.collect::<Value>(),
        "false": others.collect::<Value>(),
        "malformed": malformed.collect::<Value>(),
    });
    check_vectors("receipt.json", &vectors);
}

#[test]
fn a_receipt_has_limits() {
    let receipt = readable();
    let mut crowd = receipt.clone();
    crowd.parts = (0..65)
        .map(|place| ReceiptPart {
            request_id: RequestId::parse(&place.to_string()).unwrap(),
            ..receipt.parts[0].clone()
        })
        .collect();
    assert!(matches!(crowd.to_text(), Err(Error::Member(_))));
    crowd.parts.pop();
    assert!(crowd.to_text().is_ok());
    let mut listed = receipt;
    listed.devices = vec![String::new(); 2_049];
    assert!(matches!(listed.to_text(), Err(Error::Member(_))));
    listed.devices.pop();
    assert!(listed.to_text().is_ok());
}

#[test]
fn a_report_has_the_contents() {
    let report = good().verify(&anchors());
    assert!(matches!(report.votes, Some(VoteState::Satisfied(_))));
    assert_eq!(report.approvers, people(["alice", "bob"]));
    assert_eq!(report.outcome.as_ref().unwrap().effect, ALLOWED);
    let reasons = report
        .parts
        .iter()
        .map(|part| part.hints.clone().unwrap().reason.unwrap());
    assert_eq!(reasons.collect::<Vec<_>>(), ["alice agrees", "bob agrees"]);
    let verdicts = report
        .parts
        .iter()
        .map(|part| part.verdict.unwrap().verdict);
    assert!(
        verdicts
            .into_iter()
            .all(|verdict| verdict == Verdict::Approve)
    );
    assert!(report.is_proven(ReceiptFact::Decision));
    assert!(!report.is_proven(ReceiptFact::Asked));
}

#[test]
fn without_anchors_only_the_signatures_are_proven() {
    let report = good().verify(&ReceiptAnchors::default());
    let unproven = [
        "device 0: absent",
        "device 1: absent",
        "enforcer: absent",
        "outcome: absent",
        "complete: absent",
        "count: absent",
        "asked: absent",
    ];
    assert_eq!(gaps(&report), unproven);
    let half = ReceiptAnchors::default().with_trust(member("alice").trust);
    let unproven = ["device 1: absent", "count: absent", "asked: absent"];
    assert_eq!(gaps(&good().verify(&half)), unproven);
}

/// A rejection that is not proven could still count.
#[test]
fn a_rejection_by_an_unknown_device_leaves_the_count_open() {
    let scene = SetScene::new(Some(two_of_three()));
    let [one, other] = two(&scene);
    let receipt = scene.receipt(&[one, other, reject(&scene, "carol")], ALLOWED);
    let known = ["alice", "bob"].map(|name| member(name).trust);
    let anchors = known
        .into_iter()
        .fold(ReceiptAnchors::default(), ReceiptAnchors::with_trust);
    let unproven = ["device 2: absent", "count: absent", "asked: absent"];
    assert_eq!(gaps(&receipt.verify(&anchors)), unproven);
    // Nor does it prove a denial.
    let [one, _] = two(&scene);
    let denied = scene.receipt(&[one, reject(&scene, "carol")], REJECTED);
    let unproven = ["device 1: absent", "count: absent", "asked: absent"];
    assert_eq!(gaps(&denied.verify(&anchors)), unproven);
}

#[test]
fn a_device_is_trusted_from_its_anchor_on() {
    let phone = member("alice");
    let (laptop, laptop_bundle) = device("laptop");
    let (tablet, tablet_bundle) = device("tablet");
    let added: SignedStatement = add(&laptop, &phone.keys, &phone.bundle);
    let by_id = |id| ReceiptAnchors::default().with_device(alice(), id);
    let mut receipt = single(Verdict::Approve, ALLOWED);
    let device_gap = |receipt: &Receipt, anchors: &ReceiptAnchors| {
        let report = receipt.verify(anchors);
        let check = report
            .checks
            .into_iter()
            .find(|it| it.fact == ReceiptFact::Device);
        check.unwrap().result.err()
    };
    let unknown = Some(ProofGap::Failed(Error::UnknownDevice(phone.keys.id())));
    let revoked = Some(ProofGap::Failed(Error::RevokedDevice(phone.keys.id())));
    assert_eq!(device_gap(&receipt, &by_id(phone.keys.id())), None);
    assert_eq!(device_gap(&receipt, &by_id(laptop.id())), unknown);
    // The id of a device speaks for one approver only.
    let bob = ReceiptAnchors::default().with_device(person("bob"), phone.keys.id());
    assert_eq!(device_gap(&receipt, &bob), Some(ProofGap::Absent));

    let trust = |bundle| DeviceTrust::from_own_records(tenant(), alice(), vec![bundle], [].into());
    let pinned = ReceiptAnchors::default().with_trust(trust(laptop_bundle.clone()));
    assert_eq!(device_gap(&receipt, &pinned), unknown);
    receipt.devices = vec![added.to_text()];
    assert_eq!(device_gap(&receipt, &pinned), None);
    // The keys behind the id are in no statement.
    assert_eq!(device_gap(&receipt, &by_id(laptop.id())), unknown);
    receipt
        .devices
        .push(add(&laptop, &laptop, &laptop_bundle).to_text());
    assert_eq!(device_gap(&receipt, &by_id(laptop.id())), None);

    let other = ReceiptAnchors::default().with_trust(trust(tablet_bundle));
    assert_eq!(device_gap(&receipt, &other), unknown);
    receipt.devices.push(revoke(&laptop, &phone.keys).to_text());
    assert_eq!(device_gap(&receipt, &pinned), revoked);
    // One anchor knows of the revocation, and the other does not.
    let both = pinned.with_trust(phone.trust);
    assert_eq!(device_gap(&receipt, &both), revoked);
    assert_ne!(tablet.id(), laptop.id());
}

/// A device that rejects what it cannot open signs the hash and the repository that the gateway has
/// told it.
#[test]
fn a_rejection_of_an_unopened_request_does_not_vouch_for_the_enforcer() {
    let scene = SetScene::new(Some(two_of_three()));
    for is_told in [false, true] {
        let mut decided = [reject(&scene, "alice")];
        let artifact = &decided[0].artifact;
        let repository = if is_told { artifact.repo_ref() } else { "" };
        let unopened = reject_unopened(
            (artifact.request_id(), repository),
            artifact.hash(),
            time("2026-02-21T12:10:00Z"),
            ArtifactHints::default(),
            (&member("alice").keys, None),
            &mut known("decision"),
        );
        decided[0].part.decision = unopened.unwrap();
        let report = scene.receipt(&decided, REJECTED).verify(&anchors());
        let unproven = [NOBODY_VOUCHES, &["asked: absent"]].concat();
        assert_eq!(gaps(&report), unproven, "{repository}");
        assert!(matches!(report.votes, Some(VoteState::Rejected(_))));
    }
}

#[test]
fn a_device_that_two_people_have_counts_once() {
    let scene = SetScene::new(Some(two_of_three()));
    let alice = member("alice");
    let own = vec![alice.bundle.clone()];
    let shared = Person {
        trust: DeviceTrust::from_own_records(tenant(), person("bob"), own, [].into()),
        ..member("alice")
    };
    let [one, _] = two(&scene);
    let other = scene.decide_by("bob", &shared, Verdict::Approve, comment("me too"));
    let anchors = ReceiptAnchors::default().with_trust(alice.trust);
    let anchors = anchors.with_trust(shared.trust);
    let report = scene.receipt(&[one, other], ALLOWED).verify(&anchors);
    assert_eq!(gaps(&report), ["count: failed", "asked: absent"]);
    assert!(report.approvers.is_empty());
}

#[test]
fn an_unknown_rule_proves_no_count() {
    let scene = SetScene::new(None);
    let mut later = members(&scene.key, None);
    later["extensions"][RULE] = json!({ "v": 2 });
    let artifact = complete(later).unwrap();
    let unopened = reject_unopened(
        (artifact.request_id(), artifact.repo_ref()),
        artifact.hash(),
        time("2026-02-21T12:10:00Z"),
        ArtifactHints::default(),
        (&member("alice").keys, None),
        &mut known("decision"),
    );
    let mut receipt = single(Verdict::Reject, REJECTED);
    receipt.artifact = Some(artifact.text().to_owned());
    receipt.parts[0].decision = unopened.unwrap();
    receipt.parts[0].hints_key = None;
    receipt.outcome = None;
    let unproven = [
        "enforcer: absent",
        "outcome: absent",
        "complete: absent",
        "count: failed",
        "asked: absent",
    ];
    assert_eq!(gaps(&receipt.verify(&anchors())), unproven);
}

static GOOD: LazyLock<(String, ReceiptReport)> = LazyLock::new(|| {
    let receipt = good();
    (receipt.to_text().unwrap(), receipt.verify(&anchors()))
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_changed_bit_changes_what_is_proven(place: Index, bit in 0..7_u8) {
        let (text, report) = &*GOOD;
        let mut bytes = text.as_bytes().to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(receipt) = Receipt::parse(&bytes) {
            let changed = receipt.verify(&anchors());
            // Only the name in a bundle, white space and spellings of the same are free.
            if gaps(&changed) == ["asked: absent"] {
                prop_assert_eq!(&changed, report);
                let good = good();
                prop_assert_eq!(receipt.tenant, good.tenant);
                prop_assert_eq!(receipt.enforcer, good.enforcer);
                prop_assert_eq!(receipt.artifact, good.artifact);
                for (part, own) in receipt.parts.iter().zip(&good.parts) {
                    prop_assert_eq!(&part.approver, &own.approver);
                    prop_assert_eq!(&part.seat, &own.seat);
                    prop_assert!(part.device.same_keys(&own.device));
                }
            }
        }
    }
}
