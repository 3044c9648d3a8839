//! The people who work with an agent, as an approver names them at pairing. The list only ever
//! excludes: under a rule with `notBy`, the devices of these people do not approve.

use std::collections::BTreeSet;

use countersign_protocol::id::{ApproverId, TextId as _};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};

pub const MAX_OPERATORS: usize = 16;
pub(super) const OPERATORS: &str = "operators";

/// In the order in which they were named, none twice. An empty list says that there is nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorList(Vec<ApproverId>);

impl OperatorList {
    /// None if there are too many, or somebody is named twice.
    pub fn new(ids: Vec<ApproverId>) -> Option<Self> {
        let distinct: BTreeSet<_> = ids.iter().collect();
        let is_sound = distinct.len() == ids.len() && ids.len() <= MAX_OPERATORS;
        is_sound.then_some(Self(ids))
    }

    pub(super) fn read(reader: &mut MemberReader<'_, '_>) -> ReadResult<Option<Self>> {
        let expected = "at most 16 ids of approvers, none twice";
        reader.optional_as(OPERATORS, expected, |node: &JsonNode<'_>| {
            let ids = node.as_array()?.iter();
            let ids = ids.map(|node| ApproverId::parse(node.as_str()?));
            Self::new(ids.collect::<Option<_>>()?)
        })
    }

    pub fn ids(&self) -> &[ApproverId] {
        &self.0
    }
}
