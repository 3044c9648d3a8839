//! Teams as `team` prints them, for people and for programs.

use countersign::client::visible;
use countersign::e2e::{CommentDuty, DeviceBundle, StandIn, TeamChain, TeamMinimum};
use serde_json::{Value, json};

pub fn team_json(chain: &TeamChain) -> Value {
    let (head, content) = (chain.head(), chain.content());
    let seats = content.seats.iter().map(|seat| {
        json!({
            "approverId": seat.approver,
            "owner": seat.owner,
            "devices": seat.devices.iter().map(device_json).collect::<Vec<_>>(),
            "standIn": seat.stand_in.as_ref().map(stand_in_json),
        })
    });
    let minimum = &content.minimum;
    json!({
        "teamId": head.team.to_string(),
        "name": content.name,
        "seq": head.seq,
        "digest": head.digest.to_string(),
        "minimum": {
            "approvals": minimum.approvals, "rejections": minimum.rejections,
            "comment": minimum.comment.as_str(), "separate": minimum.separate,
        },
        "standIns": content.stand_ins,
        "seats": seats.collect::<Vec<_>>(),
    })
}

fn device_json(device: &DeviceBundle) -> Value {
    json!({ "deviceId": device.id().to_string(), "name": device.name().as_str() })
}

fn stand_in_json(it: &StandIn) -> Value {
    json!({ "approverId": it.approver, "from": it.from, "until": it.until })
}

pub fn shown_devices(devices: &[DeviceBundle]) -> String {
    let devices = devices.iter();
    let devices = devices.map(|it| format!("{} ({})", visible(it.name().as_str()), it.id()));
    devices.collect::<Vec<_>>().join(", ")
}

/// The rest of the least that rules demand, without the defaults.
fn further_minimum(minimum: &TeamMinimum, seats: usize) -> String {
    let rejections = match minimum.rejections {
        1 => Some(", denied by one rejection".to_owned()),
        count if (count as usize) < seats => Some(format!(", denied by {count} rejections")),
        _ => None,
    };
    let comment = match minimum.comment {
        CommentDuty::None => None,
        comment => Some(format!(", comment: {}", comment.as_str())),
    };
    let separate = minimum
        .separate
        .then_some(", not by people who work with the agent");
    let parts = rejections.into_iter().chain(comment);
    parts.chain(separate.map(str::to_owned)).collect()
}

pub fn lines(chain: &TeamChain) -> Vec<String> {
    let (head, content) = (chain.head(), chain.content());
    let minimum = &content.minimum;
    let mut lines = vec![format!(
        "{}  {}  state {}, at least {} of {} approvals{}",
        head.team,
        visible(&content.name),
        head.seq,
        minimum.approvals,
        content.seats.len(),
        further_minimum(minimum, content.seats.len()),
    )];
    if minimum.approvals as usize > content.seats.len() {
        lines.push("  too few members: nothing can be approved".to_owned());
    }
    lines.extend(content.seats.iter().map(|seat| {
        let owner = if seat.owner { ", owner" } else { "" };
        let stand_in = seat.stand_in.as_ref().map(|it| {
            let who = visible(it.approver.as_str());
            format!("; {who} stands in from {} until {}", it.from, it.until)
        });
        let (id, devices) = (
            visible(seat.approver.as_str()),
            shown_devices(&seat.devices),
        );
        format!("  {id}{owner}  {devices}{}", stand_in.unwrap_or_default())
    }));
    lines
}
