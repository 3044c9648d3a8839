//! The decisions that need a comment.

use countersign_protocol::text::is_invisible;
use countersign_protocol::words;

words! {
    /// The decisions that need a comment.
    CommentDuty {
        None = "none",
        Reject = "reject",
        Approve = "approve",
        Always = "always",
    }
}

impl CommentDuty {
    /// Whether an approval counts only with a comment. A rejection counts without one.
    pub fn covers_approval(self) -> bool {
        matches!(self, Self::Approve | Self::Always)
    }

    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, duty) | (duty, Self::None) => duty,
            (own, other) if own == other => own,
            _ => Self::Always,
        }
    }
}

/// Whether the text has a character that people can see.
pub(super) fn has_comment(text: Option<&str>) -> bool {
    let is_visible = |it: char| !it.is_whitespace() && !is_invisible(it);
    text.is_some_and(|text| text.chars().any(is_visible))
}
