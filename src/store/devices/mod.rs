//! Devices of approvers, and the enforcers that they introduce to each other.

pub mod device;
pub mod introduction;
pub mod invitation;
