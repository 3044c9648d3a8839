//! Decisions as a device signs them, and the enforcer's judgement of them.

use super::people::{World, known, node, now};
use super::texts::canon;
use countersign_e2e::{
    DecisionContent, DeviceKeys, Error, VerifiedApproval, VerifiedDecision, accept, sign_decision,
};
use serde_json::Value;

pub fn signed(world: &World, keys: &DeviceKeys, ruling: &DecisionContent) -> String {
    sign_decision(&world.opened(), ruling, keys, &mut known("decision")).unwrap()
}

pub fn judge(world: &World, body: &str) -> Result<VerifiedDecision, Error> {
    accept(
        &node(body),
        &world.request(),
        &world.enforcer,
        &[&world.trust],
        now(),
    )
}

pub fn approval(world: &World, body: &str) -> VerifiedApproval {
    match judge(world, body).unwrap() {
        VerifiedDecision::Approved(approval) => approval,
        VerifiedDecision::Rejected(_) => panic!("it was approved"),
    }
}

/// Signs any members, as a foreign device could.
pub fn sign_raw(keys: &DeviceKeys, members: &Value) -> String {
    use base64::Engine as _;
    use ed25519_dalek::Signer as _;
    let key = ed25519_dalek::SigningKey::from_bytes(&keys.secrets().0);
    let signature = key.sign(canon(members).as_bytes());
    let mut members = members.clone();
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature.to_bytes());
    members["signature"] = text.into();
    members.to_string()
}

pub fn members(world: &World, ruling: &DecisionContent) -> Value {
    let mut members: Value = serde_json::from_str(&signed(world, &world.phone, ruling)).unwrap();
    members.as_object_mut().unwrap().remove("signature");
    members
}
