//! Changes of a team that are followed, and those that are refused, for `team`.

use countersign_e2e::{StandIn, TeamContent};

use super::people::time;
use super::several::person;
use super::team_scene::{bundle, own, seat, stand_in};

pub type Change = Box<dyn FnOnce(&mut TeamContent)>;
pub type Case = (&'static str, u32, &'static [&'static str], Change);

fn changed(change: impl FnOnce(&mut TeamContent) + 'static) -> Change {
    Box::new(change)
}

/// Changes that are followed.
pub fn allowed() -> Vec<Case> {
    vec![
        (
            "an owner adds a member",
            1,
            &["alice"],
            changed(|it| it.seats.push(seat("erin", false, &[&bundle("erin")]))),
        ),
        (
            "an owner removes another owner",
            1,
            &["alice"],
            changed(|it| it.seats.retain(|seat| seat.approver != person("bob"))),
        ),
        (
            "an owner raises the minimum",
            1,
            &["bob"],
            changed(|it| it.minimum.approvals = 2),
        ),
        (
            "an owner rewrites a seat",
            1,
            &["bob"],
            changed(|it| own(it, "carol").devices = vec![bundle("new")]),
        ),
        (
            "a member adds a device",
            1,
            &["carol"],
            changed(|it| own(it, "carol").devices.push(bundle("new"))),
        ),
        (
            "a member replaces the signing device",
            1,
            &["carol"],
            changed(|it| own(it, "carol").devices = vec![bundle("new")]),
        ),
        (
            "a member names a stand-in",
            1,
            &["carol"],
            changed(|it| own(it, "carol").stand_in = Some(stand_in("erin"))),
        ),
        (
            "an owner changes the own devices",
            2,
            &["alice"],
            changed(|it| own(it, "alice").devices.push(bundle("new"))),
        ),
        (
            "a member leaves",
            2,
            &["dave"],
            changed(|it| it.seats.retain(|seat| seat.approver != person("dave"))),
        ),
        (
            "two owners add an owner",
            2,
            &["alice", "bob"],
            changed(|it| it.seats.push(seat("erin", true, &[&bundle("erin")]))),
        ),
        (
            "two owners lower the number of signers",
            2,
            &["bob", "alice"],
            changed(|it| it.changes = 1),
        ),
    ]
}

/// Changes whose signers may not make them.
pub fn forbidden() -> Vec<Case> {
    let two = |by: &'static [&'static str]| by;
    vec![
        (
            "a member adds a member",
            1,
            &["carol"],
            changed(|it| it.seats.push(seat("erin", false, &[&bundle("erin")]))),
        ),
        (
            "a member changes a foreign seat",
            1,
            &["carol"],
            changed(|it| own(it, "dave").devices.push(bundle("new"))),
        ),
        (
            "a member becomes an owner",
            1,
            &["carol"],
            changed(|it| own(it, "carol").owner = true),
        ),
        (
            "a member lowers the minimum",
            1,
            &["carol"],
            changed(|it| it.minimum.rejections = 31),
        ),
        (
            "a member renames the team",
            1,
            &["carol"],
            changed(|it| "other".clone_into(&mut it.name)),
        ),
        (
            "a member reorders seats",
            1,
            &["carol"],
            changed(|it| it.seats.reverse()),
        ),
        (
            "a member removes another one",
            1,
            &["carol"],
            changed(|it| it.seats.retain(|seat| seat.approver != person("dave"))),
        ),
        (
            "two members add a member",
            1,
            two(&["carol", "dave"]),
            changed(|it| it.seats.push(seat("erin", false, &[&bundle("erin")]))),
        ),
        (
            "a member changes the own seat and another one",
            1,
            &["carol"],
            changed(|it| {
                own(it, "carol").devices.push(bundle("new"));
                own(it, "dave").devices.push(bundle("newer"));
            }),
        ),
        (
            "an owner leaves alone, where two must sign",
            2,
            &["alice"],
            changed(|it| {
                it.seats.push(seat("erin", true, &[&bundle("erin")]));
                it.seats.retain(|seat| seat.approver != person("alice"));
            }),
        ),
        (
            "one owner alone, where two must sign",
            2,
            &["alice"],
            changed(|it| it.minimum.approvals = 2),
        ),
        (
            "an owner and a member, where two owners must sign",
            2,
            &["alice", "carol"],
            changed(|it| it.minimum.approvals = 2),
        ),
        (
            "an owner with a stranger",
            1,
            &["alice", "erin"],
            changed(|it| it.minimum.approvals = 2),
        ),
        (
            "a stranger",
            1,
            &["erin"],
            changed(|it| it.seats.push(seat("erin", true, &[&bundle("erin")]))),
        ),
    ]
}

/// States that are refused whoever signs them.
pub fn unsound() -> Vec<(&'static str, Change)> {
    vec![
        (
            "a device on two seats",
            changed(|it| own(it, "dave").devices.push(bundle("carol"))),
        ),
        (
            "a stand-in's device on another seat",
            changed(|it| {
                own(it, "dave").stand_in = Some(StandIn {
                    approver: person("erin"),
                    ..stand_in("carol")
                });
            }),
        ),
        (
            "a stand-in with a seat",
            changed(|it| {
                own(it, "dave").stand_in = Some(StandIn {
                    approver: person("carol"),
                    ..stand_in("erin")
                });
            }),
        ),
        (
            "one stand-in for two seats",
            changed(|it| {
                own(it, "dave").stand_in = Some(stand_in("erin"));
                own(it, "carol").stand_in = Some(stand_in("erin"));
            }),
        ),
        (
            "a stand-in where there may be none",
            changed(|it| {
                it.stand_ins = false;
                own(it, "dave").stand_in = Some(stand_in("erin"));
            }),
        ),
        (
            "a stand-in for 31 days",
            changed(|it| {
                own(it, "dave").stand_in = Some(StandIn {
                    until: time("2026-03-24T12:00:00Z"),
                    ..stand_in("erin")
                });
            }),
        ),
        (
            "a stand-in that ends before it begins",
            changed(|it| {
                own(it, "dave").stand_in = Some(StandIn {
                    until: time("2026-02-21T12:00:00Z"),
                    ..stand_in("erin")
                });
            }),
        ),
        (
            "a stand-in in parts of a second",
            changed(|it| {
                own(it, "dave").stand_in = Some(StandIn {
                    from: time("2026-02-21T12:00:00.5Z"),
                    ..stand_in("erin")
                });
            }),
        ),
        (
            "somebody twice",
            changed(|it| it.seats.push(seat("dave", false, &[&bundle("new")]))),
        ),
        ("too few owners", changed(|it| it.changes = 3)),
        (
            "no owner",
            changed(|it| it.seats.retain(|seat| !seat.owner)),
        ),
        ("nobody", changed(|it| it.seats.clear())),
        (
            "a seat without a device",
            changed(|it| own(it, "dave").devices.clear()),
        ),
        ("no name", changed(|it| " ".clone_into(&mut it.name))),
        (
            "a minimum of no approval",
            changed(|it| it.minimum.approvals = 0),
        ),
        (
            "a minimum beyond the seats",
            changed(|it| it.minimum.approvals = 33),
        ),
        ("no signer", changed(|it| it.changes = 0)),
    ]
}
