//! The subject of a question: a call of a tool, or other content.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::enforcer::{ApprovalRequest, MAX_TIMEOUT};
use crate::error::{ClientError, Result};
use crate::wire;
use countersign_e2e::PlainArtifact;
use countersign_protocol::canonical::{canonical, canonical_without};
use countersign_protocol::decision::Verdict;
use countersign_protocol::json::{self, JsonNode, JsonValue};

const CALL_TYPE: &str = "command.review";
const ACTIONS: &str = "org.proto.requestedActions";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A call of a tool: its name, and its arguments by name.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub name: String,
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    pub fn new(
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Self {
        let arguments = arguments.into_iter();
        Self {
            name: name.into(),
            arguments: (arguments.map(|(name, value)| (name.to_owned(), value))).collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ReviewSubject {
    Call(ToolCall),
    Content {
        /// One of the types of the protocol, such as `plan.review`.
        artifact_type: String,
        payload: Map<String, Value>,
    },
}

impl From<ToolCall> for ReviewSubject {
    fn from(call: ToolCall) -> Self {
        Self::Call(call)
    }
}

/// A choice to offer the approver. The chosen one is `action_id` of the approval's hints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedAction {
    pub verdict: Verdict,
    pub id: String,
    pub caption: String,
}

/// The options that go with the subject of a question.
#[derive(Debug, Clone)]
pub struct AskOptions {
    /// Without a decision in this time the call is denied. A request that outlives its process
    /// includes the time until a process comes back for the decision.
    pub timeout: Duration,
    /// Where the agent works; machine and directory by default.
    pub repository: Option<String>,
    /// Only this approver, instead of all that are paired.
    pub approver: Option<String>,
    pub actions: Vec<OfferedAction>,
    /// Such as the framework and the run.
    pub metadata: Map<String, Value>,
}

impl Default for AskOptions {
    fn default() -> Self {
        Self {
            timeout: DEFAULT_TIMEOUT,
            repository: None,
            approver: None,
            actions: Vec::new(),
            metadata: Map::new(),
        }
    }
}

impl AskOptions {
    fn offered(&self) -> Option<Value> {
        let actions = self.actions.iter().map(|action| {
            json!({
                "id": action.id,
                "caption": action.caption,
                "decision": action.verdict.as_str(),
            })
        });
        let actions: Vec<_> = actions.collect();
        (!actions.is_empty()).then(|| json!({ "version": 1, "actions": actions }))
    }

    /// Whether a request was made with these options, as far as they are given.
    pub(super) fn fit(&self, artifact: &PlainArtifact) -> bool {
        let mut asked = artifact.named_approvers().map(ToString::to_string);
        let repository = self.repository.as_deref();
        let whole = json::parse(artifact.text().as_bytes()).ok();
        let extensions = (whole.as_ref()).and_then(|whole| wire::member(whole, "extensions"));
        let actions = extensions.and_then(|node| wire::member(node, ACTIONS));
        repository.is_none_or(|given| given == artifact.repository())
            && (self.approver.as_ref()).is_none_or(|given| asked.all(|id| id == *given))
            && self.offered().map(|given| spelled(&given)) == actions.map(canonical)
    }
}

impl ReviewSubject {
    fn artifact_type(&self) -> &str {
        match self {
            Self::Call(_) => CALL_TYPE,
            Self::Content { artifact_type, .. } => artifact_type,
        }
    }

    fn payload(&self) -> Map<String, Value> {
        match self {
            Self::Call(call) => Map::from_iter([
                ("kind".to_owned(), json!("tool")),
                ("tool".to_owned(), json!(call.name)),
                ("input".to_owned(), Value::Object(call.arguments.clone())),
            ]),
            Self::Content { payload, .. } => payload.clone(),
        }
    }

    pub(super) fn request(&self, options: &AskOptions) -> Result<ApprovalRequest> {
        if options.timeout > MAX_TIMEOUT {
            return Err(ClientError::Choice("a timeout has at most 30 days"));
        }
        let mut members = Map::new();
        if !options.metadata.is_empty() {
            let metadata = Value::Object(options.metadata.clone());
            members.insert("metadata".to_owned(), metadata);
        }
        if let Some(offered) = options.offered() {
            members.insert("extensions".to_owned(), json!({ ACTIONS: offered }));
        }
        Ok(ApprovalRequest {
            artifact_type: self.artifact_type().to_owned(),
            repository: options.repository.clone().unwrap_or_else(this_place),
            payload: self.payload(),
            members,
            approver: options.approver.clone(),
            timeout: options.timeout,
            submit_timeout: options.timeout,
        })
    }

    /// Whether the artifact is about exactly this, in any spelling of the same values. The order in
    /// which the arguments of a call were shown does not matter.
    pub(super) fn is_in(&self, artifact: &PlainArtifact) -> bool {
        let Ok(whole) = json::parse(artifact.text().as_bytes()) else {
            return false;
        };
        let shown = wire::member(&whole, "payload").map(|payload| self.comparable(payload));
        let own = Value::Object(self.payload()).to_string();
        let own = json::parse(own.as_bytes()).ok();
        let own = own.as_ref().map(|payload| self.comparable(payload));
        artifact.artifact_type() == self.artifact_type() && own.is_some() && own == shown
    }

    fn comparable(&self, payload: &JsonNode<'_>) -> String {
        let is_text = |node: &JsonNode<'_>| matches!(node.value, JsonValue::String(_));
        let order = wire::array(payload, "order");
        match (self, payload.as_object()) {
            (Self::Call(_), Some(object)) if order.is_some_and(|it| it.iter().all(is_text)) => {
                canonical_without(object, "order")
            }
            _ => canonical(payload),
        }
    }
}

fn spelled(value: &Value) -> String {
    let text = value.to_string();
    let node = json::parse(text.as_bytes());
    node.map_or_else(|_| text.clone(), |node| canonical(&node))
}

/// Machine and directory.
fn this_place() -> String {
    let host = nix::unistd::gethostname().ok();
    let host = host.and_then(|name| name.into_string().ok());
    let here = std::env::current_dir().unwrap_or_default();
    format!("{}:{}", host.unwrap_or_default(), here.display())
}
