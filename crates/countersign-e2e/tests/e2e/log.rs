//! The log's tree, checkpoints and proofs. `tests/vectors/log.json` is for other implementers; after a
//! deliberate change, run this once with `WRITE_VECTORS=1`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_e2e::{
    LogCheckpoint, LogEntry, LogOrigin, LogProof, LogSigner, LogTiles, ProofGap, Receipt,
    ReceiptAnchors, ReceiptFact, SubtreeSource as _, TileId, TreeHash, TreeState, verifier_key,
    verify_consistency, verify_inclusion,
};
use countersign_protocol::id::{RequestId, TenantId, TextId as _};
use countersign_protocol::json;
use countersign_protocol::signature::PublicKey;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::people::tenant;
use super::receipt_cases::good;
use super::several::check_vectors;

/// RFC 6962, section 2.1, word for word and over lists: the second implementation.
mod naive {
    use sha2::{Digest as _, Sha256};

    pub type Hash = [u8; 32];

    pub fn leaf(entry: &[u8]) -> Hash {
        Sha256::digest([&[0][..], entry].concat()).into()
    }

    fn split(count: usize) -> usize {
        let mut k = 1;
        while k * 2 < count {
            k *= 2;
        }
        k
    }

    pub fn root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Sha256::digest([]).into(),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len()));
                Sha256::digest([&[1][..], &root(left), &root(right)].concat()).into()
            }
        }
    }

    pub fn path(m: usize, leaves: &[Hash]) -> Vec<Hash> {
        if leaves.len() == 1 {
            return Vec::new();
        }
        let k = split(leaves.len());
        let (left, right) = leaves.split_at(k);
        let (mut path, other) = if m < k {
            (path(m, left), root(right))
        } else {
            (path(m - k, right), root(left))
        };
        path.push(other);
        path
    }

    pub fn subproof(m: usize, leaves: &[Hash], is_whole: bool) -> Vec<Hash> {
        if m == leaves.len() {
            return if is_whole {
                Vec::new()
            } else {
                vec![root(leaves)]
            };
        }
        let k = split(leaves.len());
        let (left, right) = leaves.split_at(k);
        let (mut proof, other) = if m <= k {
            (subproof(m, left, is_whole), root(right))
        } else {
            (subproof(m - k, right, false), root(left))
        };
        proof.push(other);
        proof
    }
}

fn entry(number: usize) -> [u8; 32] {
    Sha256::digest(format!("entry {number}")).into()
}

fn leaves(count: usize) -> Vec<naive::Hash> {
    (0..count)
        .map(|number| naive::leaf(&entry(number)))
        .collect()
}

fn tree(count: usize) -> LogTiles {
    let mut tiles = LogTiles::default();
    for (size, leaf) in leaves(count).into_iter().enumerate() {
        tiles.append(size as u64, TreeHash(leaf)).unwrap();
    }
    tiles
}

fn hashes(list: Vec<naive::Hash>) -> Vec<TreeHash> {
    list.into_iter().map(TreeHash).collect()
}

const SIZES: usize = 300;

fn state(size: u64, root: TreeHash) -> TreeState {
    TreeState { size, root }
}

#[test]
fn roots_and_proofs_of_all_sizes_are_those_of_the_rfc() {
    let (leaves, mut tiles) = (leaves(SIZES), tree(SIZES));
    assert_eq!(tiles.root(0).unwrap(), TreeHash(naive::root(&[])));
    for size in 1..=SIZES {
        let to = size as u64;
        let root = TreeHash(naive::root(&leaves[..size]));
        assert_eq!(tiles.root(to).unwrap(), root, "{size}");
        // Each index of the sizes at which something changes, and some of all others.
        let step = if size < 20 || (250..262).contains(&size) || size == SIZES {
            1
        } else {
            7
        };
        for index in (0..size).step_by(step) {
            let proof = tiles.prove_inclusion(index as u64, to).unwrap();
            assert_eq!(
                proof,
                hashes(naive::path(index, &leaves[..size])),
                "{index} of {size}"
            );
            verify_inclusion(TreeHash(leaves[index]), index as u64, to, &proof, root).unwrap();
        }
        for from in (1..=size).step_by(step) {
            let proof = tiles.prove_consistency(from as u64, to).unwrap();
            assert_eq!(
                proof,
                hashes(naive::subproof(from, &leaves[..size], true)),
                "{from} to {size}"
            );
            let old = TreeHash(naive::root(&leaves[..from]));
            verify_consistency(state(from as u64, old), state(to, root), &proof).unwrap();
        }
    }
}

/// Proofs with one fault each.
fn faulty(proof: &[TreeHash]) -> Vec<Vec<TreeHash>> {
    let mut faulty = vec![[proof, &[TreeHash([7; 32])]].concat()];
    for place in 0..proof.len() {
        let mut other = proof.to_vec();
        other[place].0[31] ^= 1;
        faulty.push(other);
        let mut shorter = proof.to_vec();
        shorter.remove(place);
        faulty.push(shorter);
        let mut swapped = proof.to_vec();
        swapped.rotate_left(place);
        faulty.push(swapped);
    }
    faulty.retain(|other| other != proof);
    faulty
}

#[test]
fn no_faulty_proof_is_believed() {
    let (leaves, mut tiles) = (leaves(40), tree(40));
    for size in 1..=40_u64 {
        let root = tiles.root(size).unwrap();
        for index in 0..size {
            let leaf = TreeHash(leaves[usize::try_from(index).unwrap()]);
            let proof = tiles.prove_inclusion(index, size).unwrap();
            for other in faulty(&proof) {
                assert!(verify_inclusion(leaf, index, size, &other, root).is_err());
            }
            for other in (0..=size + 1).filter(|other| *other != index) {
                let result = verify_inclusion(leaf, other, size, &proof, root);
                assert!(result.is_err(), "{index} as {other} of {size}");
            }
            let foreign = TreeHash::of_leaf(b"foreign");
            assert!(verify_inclusion(foreign, index, size, &proof, root).is_err());
            assert!(verify_inclusion(leaf, index, size, &proof, TreeHash([0; 32])).is_err());
        }
        for from in 1..=size {
            let old = state(from, tiles.root(from).unwrap());
            let proof = tiles.prove_consistency(from, size).unwrap();
            for other in faulty(&proof) {
                assert!(
                    verify_consistency(old, state(size, root), &other).is_err(),
                    "{from} to {size}"
                );
            }
            let rewritten = state(from, TreeHash([9; 32]));
            assert!(verify_consistency(rewritten, state(size, root), &proof).is_err());
            assert!(verify_consistency(old, state(size, TreeHash([9; 32])), &proof).is_err());
            if from < size {
                assert!(verify_consistency(state(size, root), old, &proof).is_err());
                assert!(verify_consistency(old, state(from, root), &[]).is_err());
            }
        }
        verify_consistency(state(0, TreeHash::empty()), state(size, root), &[]).unwrap();
        assert!(verify_consistency(state(0, root), state(size, root), &[]).is_err());
        assert!(
            verify_consistency(state(0, TreeHash::empty()), state(size, root), &[root]).is_err()
        );
    }
}

#[test]
fn a_tree_goes_on_from_the_tiles_of_its_edge() {
    for count in [1, 255, 256, 257, 511, 512, 65_535, 65_536, 65_800_usize] {
        let mut all = tree(count);
        let stored: std::collections::BTreeMap<_, _> = all.changed().collect();
        let load = |ids: Vec<TileId>| {
            let mut tiles = LogTiles::default();
            for id in ids {
                tiles.insert(id, &stored[&id]).unwrap();
            }
            tiles
        };
        let size = count as u64;
        let mut edge = load(LogTiles::edge(size));
        assert_eq!(edge.root(size).unwrap(), all.root(size).unwrap(), "{count}");
        all.append(size, TreeHash([5; 32])).unwrap();
        edge.append(size, TreeHash([5; 32])).unwrap();
        assert_eq!(
            edge.root(size + 1).unwrap(),
            all.root(size + 1).unwrap(),
            "{count}"
        );
        let changed: Vec<_> = edge.changed().collect();
        assert!(
            changed
                .iter()
                .all(|tile| all.changed().any(|it| it == *tile))
        );
        let needed = LogTiles::needed(|tiles| tiles.prove_inclusion(size / 2, size)).unwrap();
        let mut loaded = load(needed);
        let proof = loaded.prove_inclusion(size / 2, size).unwrap();
        assert_eq!(proof, all.prove_inclusion(size / 2, size).unwrap());
        // Without the edge nothing is added.
        if count % 256 > 0 {
            assert!(LogTiles::default().append(size, TreeHash([5; 32])).is_err());
        }
    }
}

#[test]
fn each_tile_has_one_path() {
    let at = |level, index| TileId { level, index };
    for (path, id, width) in [
        ("0/000", at(0, 0), 256),
        ("3/067.p/8", at(3, 67), 8),
        ("0/x001/x234/067", at(0, 1_234_067), 256),
        ("1/x001/000.p/255", at(1, 1_000), 255),
    ] {
        assert_eq!(TileId::parse(path), Some((id, width)), "{path}");
    }
    for path in [
        "0/0",
        "0/1000",
        "00/000",
        "8/000",
        "0/000.p/0",
        "0/000.p/256",
        "0/000.p/08",
        "0/000.p/",
        "0/x000/001",
        "0/001/x234",
        "0/xx1",
        "-1/000",
        "0/",
        "0",
        "",
        "0/000.p/1/2",
        "0/+01",
    ] {
        assert_eq!(TileId::parse(path), None, "{path}");
    }
}

fn signer() -> LogSigner {
    LogSigner::from_secret(&[3; 32])
}

fn origin(epoch: u32) -> LogOrigin {
    LogOrigin::new(
        "approve.example.com/log",
        &TenantId::parse("acme").unwrap(),
        epoch,
    )
    .unwrap()
}

fn checkpoint(count: usize) -> LogCheckpoint {
    let root = tree(count).root(count as u64).unwrap();
    LogCheckpoint {
        origin: origin(1),
        size: count as u64,
        root,
    }
}

/// Notes that nobody may believe, about a checkpoint of seven entries.
fn refused_notes(checkpoint: &LogCheckpoint) -> Vec<(&'static str, String)> {
    let note = signer().sign(checkpoint);
    let (text, line) = note.split_once("\n\n").unwrap();
    let line = line.trim_end();
    let (_, signature) = line.rsplit_once(' ').unwrap();
    let bytes = STANDARD.decode(signature).unwrap();
    let signed = |text: &str| {
        let key = ed25519_dalek::SigningKey::from_bytes(&[3; 32]);
        let made = ed25519_dalek::Signer::sign(&key, text.as_bytes()).to_bytes();
        let made = STANDARD.encode([&bytes[..4], &made].concat());
        format!("{text}\n— {} {made}\n", origin(1))
    };
    let other_id = STANDARD.encode([&[0; 4], &bytes[4..]].concat());
    vec![
        (
            "signed with another key",
            LogSigner::from_secret(&[4; 32]).sign(checkpoint),
        ),
        ("another size", note.replacen("\n7\n", "\n8\n", 1)),
        (
            "another epoch, with the old signature",
            note.replace("/1", "/2"),
        ),
        ("no signature", format!("{text}\n\n")),
        ("no empty line", note.replacen("\n\n", "\n", 1)),
        ("the signature twice", format!("{note}{line}\n")),
        ("another key id", note.replace(signature, &other_id)),
        (
            "a short signature",
            note.replace(signature, &STANDARD.encode(&bytes[..60])),
        ),
        ("no line feed at the end", note.trim_end().to_owned()),
        (
            "a size with a zero in front",
            signed(&format!("{}\n", text.replacen("\n7\n", "\n07\n", 1))),
        ),
        ("a further line", signed(&format!("{text}\nmore\n"))),
        ("no root", signed(&format!("{}\n7\n", origin(1)))),
        ("a short root", signed(&format!("{}\n7\nAAAA\n", origin(1)))),
        (
            "no epoch",
            signed(&format!("{text}\n").replacen("/1\n", "\n", 1)),
        ),
    ]
}

fn example(number: usize) -> LogEntry {
    let request =
        RequestId::parse(&format!("01a1dd30-a1b2-7004-b20c-8d6678c7{number:04}")).unwrap();
    match number % 2 {
        0 => {
            let text = format!(
                r#"{{"requestId":"{request}","decision":"approve","signature":"{}"}}"#,
                "A".repeat(86)
            );
            LogEntry::of_decision(request, &json::parse(text.as_bytes()).unwrap())
        }
        _ => LogEntry::of_outcome(request, "{\"payload\":\"…\"}"),
    }
}

#[test]
fn a_checkpoint_is_believed_only_as_the_log_signed_it() {
    let (key, signed) = (signer().key().unwrap(), checkpoint(7));
    let note = signer().sign(&signed);
    assert_eq!(LogCheckpoint::open(&note, &key).unwrap(), signed);
    // A witness may add its signature.
    let witnessed = format!("{note}— witness.example mJirIkljAAAA\n");
    assert_eq!(LogCheckpoint::open(&witnessed, &key).unwrap(), signed);
    for (name, note) in refused_notes(&signed) {
        assert!(LogCheckpoint::open(&note, &key).is_err(), "{name}:\n{note}");
    }
    let acme = TenantId::parse("acme").unwrap();
    assert!(signed.origin.is_of(&acme) && !signed.origin.is_of(&TenantId::parse("other").unwrap()));
    assert!(origin(1).is_same_log(&origin(2)));
    for deployment in ["", "with space", "a+b", "a\nb"] {
        assert_eq!(LogOrigin::new(deployment, &acme, 1), None, "{deployment}");
    }
}

/// A log of seven entries, the proof of each, and proofs that must be refused.
#[test]
fn entries_are_proven_by_what_the_log_signed() {
    let key: PublicKey = signer().key().unwrap();
    let entries: Vec<_> = (0..6)
        .map(example)
        .chain([LogEntry::of_checkpoint("a note")])
        .collect();
    let mut tiles = LogTiles::default();
    for (size, entry) in entries.iter().enumerate() {
        tiles.append(size as u64, entry.leaf().unwrap()).unwrap();
    }
    let root = tiles.root(7).unwrap();
    let checkpoint = LogCheckpoint {
        origin: origin(1),
        size: 7,
        root,
    };
    let note = signer().sign(&checkpoint);
    let proofs: Vec<LogProof> = (0..7)
        .map(|index| LogProof {
            index,
            hashes: tiles.prove_inclusion(index, 7).unwrap(),
            checkpoint: note.clone(),
        })
        .collect();
    let shown: Vec<Value> = entries.iter().zip(&proofs).map(|(entry, proof)| {
        let text = proof.to_text();
        assert_eq!(LogProof::parse(&text).unwrap(), *proof);
        assert_eq!(proof.verify(entry, &key).unwrap().size, 7);
        json!({
            "kind": entry.kind.as_str(), "requestId": entry.request_id, "digest": entry.digest.to_string(),
            "leaf": entry.leaf().unwrap().to_string(), "proof": text,
        })
    }).collect();
    let good = proofs[2].to_text();
    let extra = good.replacen("\nindex", "\nextra AAAA\nindex", 1);
    assert_eq!(LogProof::parse(&extra).unwrap(), proofs[2]);
    let mut refused: Vec<(&str, String)> = vec![
        ("another version", good.replacen("@v1", "@v2", 1)),
        ("another index", good.replacen("index 2", "index 3", 1)),
        (
            "an index outside the tree",
            good.replacen("index 2", "index 7", 1),
        ),
        (
            "an index with a zero in front",
            good.replacen("index 2", "index 02", 1),
        ),
        ("the proof of another entry", proofs[3].to_text()),
        (
            "without its last hash",
            LogProof {
                hashes: proofs[2].hashes[..2].to_vec(),
                ..proofs[2].clone()
            }
            .to_text(),
        ),
        (
            "no checkpoint",
            good.split_once("\n\n").unwrap().0.to_owned(),
        ),
        (
            "a hash that is none",
            good.replacen("\n\n", "\nAAAA\n\n", 1),
        ),
    ];
    // Of the same root, so that nothing else is wrong with them.
    for (name, note) in refused_notes(&checkpoint) {
        refused.push((
            name,
            LogProof {
                checkpoint: note,
                ..proofs[2].clone()
            }
            .to_text(),
        ));
    }
    for (name, text) in &refused {
        let verified = LogProof::parse(text).and_then(|proof| proof.verify(&entries[2], &key));
        assert!(verified.is_err(), "{name}");
    }
    let mut consistency = Vec::new();
    for from in 1..=7 {
        let proof = tiles.prove_consistency(from, 7).unwrap();
        consistency.push(json!({
            "from": from, "root": tiles.root(from).unwrap().to_string(),
            "hashes": proof.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }));
    }
    check_vectors(
        "log.json",
        &json!({
            "about": "A log of 7 entries. `refused` are proofs of entries[2] that must be refused; \
                      `consistency` shows that the tree of each size grew to the last one.",
            "key": key.to_text(), "verifierKey": verifier_key(&origin(1), &key),
            "decision": format!(r#"{{"requestId":"01a1dd30-a1b2-7004-b20c-8d6678c70000","decision":"approve","signature":"{}"}}"#, "A".repeat(86)),
            "outcome": "{\"payload\":\"…\"}", "checkpointOfTheEpochBefore": "a note",
            "entries": shown, "checkpoint": note, "consistency": consistency,
            "refused": refused.iter().map(|(name, proof)| json!({ "name": name, "proof": proof })).collect::<Vec<_>>(),
        }),
    );
}

/// A receipt with the proofs of its decisions, from a log of this tenant.
fn logged_receipt(of: &TenantId, signer: &LogSigner) -> Receipt {
    let mut receipt = good();
    let entries = receipt.parts.iter().map(|part| {
        let decision = json::parse(part.decision.as_bytes()).unwrap();
        LogEntry::of_decision(part.request_id.clone(), &decision)
    });
    let mut tiles = LogTiles::default();
    for (size, entry) in entries.enumerate() {
        tiles.append(size as u64, entry.leaf().unwrap()).unwrap();
    }
    let size = receipt.parts.len() as u64;
    let origin = LogOrigin::new("gateway", of, 1).unwrap();
    let root = tiles.root(size).unwrap();
    let checkpoint = signer.sign(&LogCheckpoint { origin, size, root });
    let proofs = (0..size).map(|index| {
        let hashes = tiles.prove_inclusion(index, size).unwrap();
        LogProof {
            index,
            hashes,
            checkpoint: checkpoint.clone(),
        }
        .to_text()
    });
    receipt.log = proofs.collect();
    receipt
}

#[test]
fn a_receipt_proves_that_an_enforcer_asked_only_by_the_log_that_the_verifier_knows() {
    let asked = |receipt: &Receipt, anchors: ReceiptAnchors| {
        let report = receipt.verify(&anchors);
        let check = report
            .checks
            .iter()
            .find(|it| it.fact == ReceiptFact::Asked);
        check.unwrap().result.clone()
    };
    let known = || ReceiptAnchors::default().with_log_key(tenant(), signer().key().unwrap());
    let receipt = logged_receipt(&tenant(), &signer());
    assert_eq!(
        Receipt::parse(receipt.to_text().unwrap().as_bytes()).unwrap(),
        receipt
    );
    assert_eq!(asked(&receipt, known()), Ok(()));
    assert_eq!(
        asked(&receipt, ReceiptAnchors::default()),
        Err(ProofGap::Absent)
    );
    assert_eq!(asked(&good(), known()), Err(ProofGap::Absent));
    let other = TenantId::parse("other").unwrap();
    let elsewhere = ReceiptAnchors::default().with_log_key(other.clone(), signer().key().unwrap());
    assert_eq!(asked(&receipt, elsewhere), Err(ProofGap::Absent));
    let mut swapped = receipt.clone();
    swapped.log.reverse();
    for false_one in [
        swapped,
        logged_receipt(&other, &signer()),
        logged_receipt(&tenant(), &LogSigner::from_secret(&[4; 32])),
        Receipt {
            log: vec!["no proof".to_owned(); receipt.parts.len()],
            ..receipt.clone()
        },
    ] {
        assert!(matches!(
            asked(&false_one, known()),
            Err(ProofGap::Failed(_))
        ));
    }
    let fewer = Receipt {
        log: receipt.log[..1].to_vec(),
        ..receipt
    };
    assert!(fewer.to_text().is_err());
}
