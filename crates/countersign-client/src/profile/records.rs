//! Ids, and what is known of an approver's devices, as text in a profile.

use std::collections::BTreeMap;

use crate::error::ProfileError;
use countersign_e2e::{DeviceId, DeviceTrust, Error};
use countersign_protocol::id::{ApproverId, TextId};

pub(super) fn read_id<T: TextId>(member: &'static str, text: &str) -> Result<T, ProfileError> {
    T::parse(text).ok_or(ProfileError::Damaged(member))
}

pub(super) fn read_list<T, C: FromIterator<T>>(
    member: &'static str,
    texts: &[String],
    read: impl Fn(&str) -> Result<T, Error>,
) -> Result<C, ProfileError> {
    let list: Result<C, Error> = texts.iter().map(|text| read(text)).collect();
    list.map_err(|_| ProfileError::Damaged(member))
}

pub(super) fn read_ids(
    member: &'static str,
    texts: &[String],
) -> Result<Vec<ApproverId>, ProfileError> {
    texts.iter().map(|text| read_id(member, text)).collect()
}

/// Reads which device added which.
pub(super) fn read_adders(
    member: &'static str,
    adders: &BTreeMap<String, String>,
) -> Result<BTreeMap<DeviceId, DeviceId>, ProfileError> {
    let read = |(id, by): (&String, &String)| Ok((DeviceId::parse(id)?, DeviceId::parse(by)?));
    let adders: Result<_, Error> = adders.iter().map(read).collect();
    adders.map_err(|_| ProfileError::Damaged(member))
}

pub(super) fn write_adders(trust: &DeviceTrust) -> BTreeMap<String, String> {
    let write = |(id, by): (&DeviceId, &DeviceId)| (id.to_string(), by.to_string());
    trust.adders().iter().map(write).collect()
}

pub(super) fn add_missing(known: &mut Vec<String>, learned: impl IntoIterator<Item = String>) {
    for text in learned {
        if !known.contains(&text) {
            known.push(text);
        }
    }
}
