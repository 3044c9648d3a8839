//! Exchanges: submit, decide, deliver, wait, refresh, withdraw; the inboxes that show them.

pub(in crate::gateway) mod decide;
pub(in crate::gateway) mod deliver;
pub(in crate::gateway) mod generic;
pub(in crate::gateway) mod inbox;
pub(in crate::gateway) mod load;
pub(in crate::gateway) mod refresh;
pub(in crate::gateway) mod reseal;
pub(in crate::gateway) mod service;
pub(in crate::gateway) mod submit;
pub(in crate::gateway) mod wait;
pub(in crate::gateway) mod withdraw;
