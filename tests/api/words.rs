//! The words and limits that openapi.yaml spells out are those of the code.

use countersign::gateway::identity::{administration, invitations};
use countersign::protocol::decision::DecisionScope;
use countersign::protocol::exchange::ExchangeState;
use countersign::protocol::prompt::PromptStatus;
use countersign::protocol::session::{EndReason, SessionState, SnapshotType};
use countersign::protocol::{
    PROTOCOL_VERSION, artifact, decision, extensions, id, pairing, presence, prompt, refresh,
};
use countersign::store::identity::credential::RoleName;
use serde_json::{Value, json};

use crate::support::{Cluster, Contract};

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_use_the_words_and_limits_of_the_code() {
    let cluster = Cluster::start(1).await;
    let contract = Contract::of(&cluster.client(None)).await;
    let schemas = &contract.document["components"]["schemas"];
    let words = |name: &str, member: &str| {
        let schema = if member.is_empty() {
            &schemas[name]
        } else {
            contract.resolve(&schemas[name]["properties"][member])
        };
        schema["enum"].clone()
    };
    assert_eq!(
        words("ExchangeState", ""),
        json!(ExchangeState::ALL.map(ExchangeState::as_str))
    );
    assert_eq!(
        words("OpenArtifact", "artifactType"),
        json!(artifact::ARTIFACT_TYPES)
    );
    assert_eq!(words("FullDecision", "scope"), json!(DecisionScope::ALL));
    assert_eq!(words("OpenPrompt", "target"), json!(prompt::TARGETS));
    assert_eq!(
        words("PromptAck", "status"),
        json!(PromptStatus::ALL.map(PromptStatus::as_str))
    );
    assert_eq!(
        words("SessionState", ""),
        json!(SessionState::ALL.map(SessionState::as_str))
    );
    assert_eq!(
        words("SnapshotType", ""),
        json!(SnapshotType::ALL.map(SnapshotType::as_str))
    );
    assert_eq!(
        words("EndReason", ""),
        json!(EndReason::ALL.map(EndReason::as_str))
    );
    assert_eq!(
        words("Role", ""),
        json!(RoleName::ALL.map(RoleName::as_str))
    );

    let at = |path: &str| {
        contract
            .document
            .pointer(path)
            .cloned()
            .unwrap_or(Value::Null)
    };
    let most = |name: &str, member: &str| {
        at(&format!(
            "/components/schemas/{name}/properties/{member}/maxLength"
        ))
    };
    assert_eq!(at("/components/schemas/Id/maxLength"), id::MAX_ID_CHARS);
    assert_eq!(
        most("SealedArtifact", "artifactType"),
        artifact::MAX_WORD_CHARS
    );
    assert_eq!(most("OpenArtifact", "repoRef"), artifact::MAX_WORD_CHARS);
    assert_eq!(most("OpenPrompt", "repoRef"), prompt::MAX_REPO_CHARS);
    assert_eq!(most("CompactDecision", "nonce"), decision::MAX_NONCE_CHARS);
    assert_eq!(most("FullDecision", "nonce"), decision::MAX_NONCE_CHARS);
    assert_eq!(most("Reason", "reason"), refresh::MAX_REASON_CHARS);
    assert_eq!(most("Hello", "enforcerLabel"), presence::MAX_NAME_CHARS);
    assert_eq!(most("Hello", "workspaceName"), presence::MAX_NAME_CHARS);
    assert_eq!(
        most("SessionStart", "agentHost"),
        countersign::protocol::session::MAX_WORD_CHARS
    );
    assert_eq!(
        most("SessionStart", "repoRef"),
        countersign::protocol::session::MAX_WORD_CHARS
    );
    let actions = at("/components/schemas/RequestedActions/properties/actions/maxItems");
    assert_eq!(actions, extensions::MAX_ACTIONS);
    let body = |operation: &str| {
        let operation = contract.operation(operation).value;
        operation["requestBody"]["content"]["application/json"]["schema"]["properties"].clone()
    };
    let begun = body("initiatePairing");
    assert_eq!(
        begun["enforcerLabel"]["maxLength"],
        pairing::MAX_LABEL_CHARS
    );
    assert_eq!(
        begun["workspaceName"]["maxLength"],
        pairing::MAX_LABEL_CHARS
    );
    assert_eq!(begun["publicKey"]["maxLength"], pairing::MAX_KEY_CHARS);
    let completed = body("completePairing");
    assert_eq!(completed["publicKey"]["maxLength"], pairing::MAX_KEY_CHARS);
    let tenant = body("createTenant");
    assert_eq!(tenant["name"]["maxLength"], administration::MAX_NAME_CHARS);
    let invitation = body("invite");
    assert_eq!(invitation["name"]["maxLength"], invitations::MAX_NAME_CHARS);
    let status = &schemas["Status"]["properties"];
    assert_eq!(status["protocolVersion"]["const"], PROTOCOL_VERSION);
}
