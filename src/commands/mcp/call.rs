//! The call of a tool. A denial is an answer. `isError` is for a malformed call or a fault on this
//! side, and denies as well.

use std::sync::Arc;
use std::time::Duration;

use countersign::client::enforcer::RuleDemand;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::answers;
use super::arguments::{CheckApproval, RequestApproval, withdrawn_id};
use super::requests::{OpenRequest, OpenRequests};
use super::rpc::{JsonObject, RpcResult, invalid_params};
use super::tools::{CHECK, REQUEST, WITHDRAW};

/// Between two reports of progress: each tells more than the last one.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

pub struct ToolCall {
    pub requests: Arc<OpenRequests>,
    pub output: mpsc::Sender<Value>,
    /// Given by a caller that wants reports of progress.
    pub progress_token: Option<Value>,
    pub cancelled: CancellationToken,
}

/// Why a call failed, for the model.
type ToolProblem = String;

impl ToolCall {
    pub async fn run(&self, name: &str, arguments: JsonObject) -> RpcResult {
        let answer = match name {
            REQUEST => self.request_approval(arguments).await,
            CHECK => self.check_approval(arguments).await,
            WITHDRAW => self.withdraw_approval(arguments).await,
            _ => {
                let known = [REQUEST, CHECK, WITHDRAW].join(", ");
                return Err(invalid_params(&format!(
                    "name: unknown tool; expected one of {known}"
                )));
            }
        };
        let is_error = answer.is_err();
        let answer = answer.unwrap_or_else(|problem| answers::failed(&problem));
        let text = if is_error {
            answer["message"].as_str().unwrap_or_default().to_owned()
        } else {
            answer.to_string()
        };
        Ok(json!({
            "content": [{ "type": "text", "text": text }],
            "structuredContent": answer,
            "isError": is_error,
        }))
    }

    async fn request_approval(&self, arguments: JsonObject) -> Result<Value, ToolProblem> {
        let read = RequestApproval::read(arguments)?;
        let (wait, rule) = (read.wait, read.approvals.map(|it| RuleDemand::new(it, [])));
        let begun = self.requests.begin(read.wanted, rule);
        let mut request = begun.map_err(|problem| format!("{problem:#}"))?;
        let answered = async |request: &mut OpenRequest| {
            if wait {
                self.follow(request).await
            } else {
                request.sent().await
            }
        };
        Ok(tokio::select! {
            biased;
            answer = answered(&mut request) => answer,
            // Nobody would learn of the decision.
            () = self.cancelled.cancelled() => request.withdraw().await,
        })
    }

    async fn check_approval(&self, arguments: JsonObject) -> Result<Value, ToolProblem> {
        let CheckApproval { request_id, wait } = CheckApproval::read(arguments)?;
        let mut request = self.find(&request_id)?;
        let ended = tokio::select! {
            biased;
            ended = timeout(wait, self.follow(&mut request)) => ended.ok(),
            // Only this call ends.
            () = self.cancelled.cancelled() => None,
        };
        Ok(ended.unwrap_or_else(|| request.now()))
    }

    async fn withdraw_approval(&self, arguments: JsonObject) -> Result<Value, ToolProblem> {
        let mut request = self.find(&withdrawn_id(arguments)?)?;
        Ok(request.withdraw().await)
    }

    fn find(&self, id: &str) -> Result<OpenRequest, ToolProblem> {
        self.requests.find(id).ok_or_else(|| {
            "requestId: unknown request; expected one that request_approval returned in this session, not too long ago"
                .to_owned()
        })
    }

    /// Waits for the end, and reports progress to a caller that wants it.
    async fn follow(&self, request: &mut OpenRequest) -> Value {
        let Some(token) = &self.progress_token else {
            return request.ended().await;
        };
        let mut ticks = interval(PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                answer = request.ended() => return answer,
                _ = ticks.tick() => {}
            }
            let notification = json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {
                    "progressToken": token,
                    "progress": request.elapsed().as_secs(),
                    "total": request.timeout.as_secs(),
                    "message": request.note(),
                },
            });
            let _closed = self.output.send(notification).await;
        }
    }
}
