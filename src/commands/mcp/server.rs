//! The tools' calls. A denial is an answer; `isError` is for what is wrong on this side or with the call, and denies as well.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, InitializeResult, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::answers;
use super::arguments::{CheckApproval, RequestApproval, withdrawn_id};
use super::requests::{OpenRequest, OpenRequests};
use super::tools::{CHECK, INSTRUCTIONS, REQUEST, WITHDRAW, tools};

/// At least so far apart, so that nobody is flooded and every notification says more than the last one.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

pub struct McpServer {
    requests: Arc<OpenRequests>,
}

/// Why a call came to nothing, for the model.
type ToolProblem = String;

impl McpServer {
    pub fn new(requests: Arc<OpenRequests>) -> Self {
        Self { requests }
    }

    async fn request_approval(
        &self,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ToolProblem> {
        let RequestApproval { wanted, wait } = RequestApproval::read(arguments)?;
        let begun = self.requests.begin(wanted);
        let mut request = begun.map_err(|problem| format!("{problem:#}"))?;
        let answered = async |request: &mut OpenRequest| {
            if wait {
                follow(request, context).await
            } else {
                request.sent().await
            }
        };
        Ok(tokio::select! {
            biased;
            answer = answered(&mut request) => answer,
            // Nobody would learn of the decision.
            () = context.ct.cancelled() => request.withdraw().await,
        })
    }

    async fn check_approval(
        &self,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ToolProblem> {
        let CheckApproval { request_id, wait } = CheckApproval::read(arguments)?;
        let mut request = self.find(&request_id)?;
        let ended = tokio::select! {
            biased;
            ended = timeout(wait, follow(&mut request, context)) => ended.ok(),
            // Only this call ends.
            () = context.ct.cancelled() => None,
        };
        Ok(ended.unwrap_or_else(|| request.now()))
    }

    async fn withdraw_approval(&self, arguments: JsonObject) -> Result<Value, ToolProblem> {
        let mut request = self.find(&withdrawn_id(arguments)?)?;
        Ok(request.withdraw().await)
    }

    fn find(&self, id: &str) -> Result<OpenRequest, ToolProblem> {
        self.requests.find(id).ok_or_else(|| {
            "requestId: this server knows no such request; expected one that request_approval gave in this session, \
             not too long ago"
                .to_owned()
        })
    }
}

/// Waits for the end, and reports progress to a caller that wants it.
async fn follow(request: &mut OpenRequest, context: &RequestContext<RoleServer>) -> Value {
    let Some(token) = context.meta.get_progress_token() else {
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
        let (passed, all) = request.progress();
        let [passed, all] = [passed, all].map(|time| Duration::from_secs(time.as_secs()));
        let progress = ProgressNotificationParam::new(token.clone(), passed.as_secs_f64())
            .with_total(all.as_secs_f64())
            .with_message(request.note());
        // Sent before anything else: no progress may follow the answer. If it cannot be sent, neither can that.
        let _closed = context.peer.notify_progress(progress).await;
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let implementation = Implementation::new("countersign", env!("CARGO_PKG_VERSION"));
        InitializeResult::new(capabilities)
            .with_server_info(implementation.with_title("Countersign"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let answer = match call.name.as_ref() {
            REQUEST => self.request_approval(arguments, &context).await,
            CHECK => self.check_approval(arguments, &context).await,
            WITHDRAW => self.withdraw_approval(arguments).await,
            _ => {
                let known = [REQUEST, CHECK, WITHDRAW].join(", ");
                let message = format!("name: there is no such tool; expected one of {known}");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        let result = match answer {
            Ok(answer) => CallToolResult::structured(answer),
            Err(problem) => {
                let answer = answers::failed(&problem);
                let text = answer["message"].as_str().unwrap_or_default().to_owned();
                let mut result = CallToolResult::structured_error(answer);
                result.content = vec![ContentBlock::text(text)];
                result
            }
        };
        Ok(result.into())
    }

    /// The SDK passes on what it could not read as one of its own requests.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            let message = "params: expected an object with name, a text, and arguments, an object";
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = "method: this server has tools only";
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}
