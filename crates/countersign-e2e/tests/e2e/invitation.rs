//! A device invites a device: the gateway carries the request, and can change nothing in it.

use countersign_e2e::{
    DeviceInvitation, DeviceLink, DeviceTrust, EndorsementRequest, Error, SignedInvitation,
};
use countersign_protocol::id::{ApproverId, TenantId, TextId as _};

use super::people::{World, alice, device, known, node, nonce, now, tenant, world};

const PAGE: &str = "https://gateway.example.org/";

fn link(world: &World) -> DeviceLink {
    DeviceLink::generate(nonce(), world.phone_bundle.id(), &mut known("secret")).unwrap()
}

fn trusting(world: &World) -> DeviceTrust {
    let devices = vec![world.phone_bundle.clone()];
    DeviceTrust::from_own_records(tenant(), alice(), devices, [].into())
}

#[test]
fn the_new_device_asks_by_the_link_and_both_show_the_same_digits() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let shown = link(&world);
    let opened = DeviceLink::parse(&shown.expose(PAGE)).unwrap().unwrap();
    assert_eq!(opened.code(), &nonce());
    let listed = [world.laptop_bundle.clone(), world.phone_bundle.clone()];
    let own = (&tablet, &bundle);
    let answer = opened.request(&tenant(), &alice(), own, now(), &listed);
    let answer = answer.unwrap();

    let received = shown.receive(&answer.request, &answer.proof).unwrap();
    assert_eq!(received.digits(), answer.digits);
    let request = received.confirmed_by_person();
    assert_eq!(request.bundle(), &bundle);
    let own = (&world.phone, &world.phone_bundle);
    let statements = request.endorse(&tenant(), &alice(), own).unwrap();
    assert_eq!(statements.len(), 2);
    // The gateway carries the text, so the new device signs for nobody but the inviting one.
    let laptop = (&world.laptop, &world.laptop_bundle);
    let refused = request.endorse(&tenant(), &alice(), laptop);
    assert_eq!(refused.unwrap_err(), Error::NotAsked);
}

#[test]
fn a_gateway_that_changes_anything_is_noticed() {
    let world = world();
    let (tablet, bundle) = device("tablet");
    let (gateway, swapped) = device("tablet of the gateway");
    let shown = link(&world);
    let listed = [world.phone_bundle.clone()];
    let ask = |link: &DeviceLink, own| link.request(&tenant(), &alice(), own, now(), &listed);
    let answer = ask(&shown, (&tablet, &bundle)).unwrap();

    // Other keys: with the proof of the right ones, with none, and with that of another secret.
    let own = (&gateway, &swapped);
    let request = EndorsementRequest::new(&tenant(), &alice(), own, now(), &listed).unwrap();
    let request = request.to_text().unwrap();
    let other = DeviceLink::generate(nonce(), world.phone_bundle.id(), &mut known("other"));
    let guessed = ask(&other.unwrap(), own).unwrap();
    for (request, proof) in [
        (&request, &answer.proof),
        (&guessed.request, &guessed.proof),
        (&answer.request, &guessed.proof),
    ] {
        let refused = shown.receive(request, proof);
        assert_eq!(refused.unwrap_err(), Error::DeviceProof);
    }
    assert!(shown.receive(&answer.request, "").is_err());

    // A list without the inviting device, or with another one in its place: nothing is signed.
    let listed = [swapped];
    let own = (&tablet, &bundle);
    let refused = shown.request(&tenant(), &alice(), own, now(), &listed);
    let inviter = world.phone_bundle.id();
    assert_eq!(refused.unwrap_err(), Error::UnknownDevice(inviter));
}

#[test]
fn only_a_device_in_force_of_the_approver_invites() {
    let world = world();
    let invite = |tenant: &TenantId, approver: &ApproverId| {
        DeviceInvitation::new(tenant, approver, now(), world.phone_bundle.id()).unwrap()
    };
    let (own, bob) = (tenant(), ApproverId::parse("bob").unwrap());
    let signed = invite(&own, &alice()).sign(&world.phone).unwrap();
    let read = SignedInvitation::parse(&node(&signed.to_text())).unwrap();
    assert_eq!(read, signed);
    read.verify(&trusting(&world)).unwrap();

    let other = TenantId::parse("other").unwrap();
    let stolen = invite(&own, &alice()).sign(&world.laptop).unwrap();
    let by_laptop = DeviceInvitation::new(&own, &alice(), now(), world.laptop_bundle.id());
    let unknown = by_laptop.unwrap().sign(&world.laptop).unwrap();
    for (signed, expected) in [
        (
            invite(&other, &alice()).sign(&world.phone).unwrap(),
            Error::OtherApprover,
        ),
        (
            invite(&own, &bob).sign(&world.phone).unwrap(),
            Error::OtherApprover,
        ),
        (stolen, Error::StatementSignature),
        (unknown, Error::UnknownDevice(world.laptop_bundle.id())),
    ] {
        assert_eq!(signed.verify(&trusting(&world)).unwrap_err(), expected);
    }
    // Another statement of the device is no invitation, and the other way round.
    let text = signed.to_text().replace("device.invite", "device.add");
    assert!(SignedInvitation::parse(&node(&text)).is_err());
}

#[test]
fn other_links_are_told_apart() {
    let world = world();
    let whole = link(&world).expose(PAGE);
    let code = nonce();
    let plain = format!("{PAGE}#/join/{}", code.as_str());
    assert!(DeviceLink::parse(&plain).unwrap().is_none());
    assert!(DeviceLink::parse(code.as_str()).unwrap().is_none());
    for broken in [
        format!("{plain}/"),
        format!("{plain}/AAAA/AAAA"),
        format!("{}/more", *whole),
        whole[..whole.len() - 1].to_owned(),
        whole.replace(code.as_str(), "short"),
    ] {
        let refused = DeviceLink::parse(&broken);
        assert_eq!(refused.unwrap_err(), Error::InvitationLink, "{broken}");
    }
}
