//! Encrypting again: an enforcer replaces the ciphertext of its pending exchange for devices that were
//! added since. Approvers verify the hash, which stays, so nothing else can be shown instead.

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::exchanges::submit::SubmitCommand;
use crate::gateway::identity::caller::Enforcer;
use crate::protocol::exchange::judge_reseal;
use crate::protocol::id::RequestId;
use crate::protocol::json::JsonNode;

impl ExchangeService {
    /// Reads the submission anew, with the same checks, for the exchange that the path names.
    pub fn read_reseal(
        &self,
        caller: &Enforcer,
        request: &RequestId,
        document: &JsonNode<'_>,
    ) -> Result<SubmitCommand> {
        let body = (document.as_object()).and_then(|envelope| envelope.get("body"));
        let body = body.and_then(JsonNode::as_object);
        if body.is_some_and(|body| body.get("ciphertext").is_none()) {
            return Err(Error::invalid("/body/ciphertext", "a sealed artifact"));
        }
        let command = self.read_submission(caller, document, None)?;
        if command.submission.request_id != *request {
            return Err(Error::invalid(
                "/requestId",
                "the exchange that the path names",
            ));
        }
        Ok(command)
    }

    pub async fn reseal(&self, caller: &Enforcer, command: &SubmitCommand) -> Result<()> {
        let (tenant, enforcer) = (&caller.origin.tenant, &command.enforcer);
        let submission = &command.submission;
        self.presence.seen(tenant, enforcer);
        judge_reseal(self.store.reseal(tenant, enforcer, submission).await?)
    }
}
