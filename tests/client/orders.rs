//! Orders of an approver: a grant ends, an agent pauses and goes on. The gateway may lie about them,
//! and only withholding them helps it.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::client::ClientError;
use countersign::client::approver::{Approver, SentOrder};
use countersign::client::enforcer::{ApprovalDenial, Enforcer, GrantSubject, UsedGrant};
use countersign::client::profile::{Profile, ProfileError};
use countersign::e2e::{ControlOrder, DecisionScope, GrantMatch};
use countersign::protocol::id::{RequestId, SessionId, TextId as _};
use countersign::protocol::prompt::PromptStatus;
use countersign::protocol::timestamp::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::grants::permits;
use super::people::{ClientScene, PATIENCE, ask, command, pair, question};
use super::tamper::Tamper;

const PUSH: [&str; 2] = ["git", "push"];

struct OrderScene {
    world: ClientScene,
    alice: Approver,
}

fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

impl OrderScene {
    async fn start() -> Self {
        let world = ClientScene::start().await;
        let mut bot = world.enforcer("bot").await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut bot, &mut alice).await;
        Self { world, alice }
    }

    /// As another program would open it.
    fn bot(&self) -> Enforcer {
        Enforcer::open(&self.world.file("bot"), &self.world.cluster.clock).unwrap()
    }

    /// The enforcer asks through another gateway from now on.
    fn through(&self, url: &str) {
        let change = |profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = vec![url.to_owned()];
            Ok::<_, ProfileError>(())
        };
        self.world.file("bot").update(change).unwrap();
    }

    async fn granted(&self) -> Result<Option<UsedGrant>, ClientError> {
        self.granted_in(None).await
    }

    async fn granted_in(
        &self,
        session: Option<&SessionId>,
    ) -> Result<Option<UsedGrant>, ClientError> {
        let subject = GrantSubject::of(&command(&PUSH), "repo:acme/widgets").unwrap();
        self.bot().granted(&subject, session, deadline()).await
    }

    /// A grant of alice's to push for an hour; with the id of its request.
    async fn grant(&self) -> RequestId {
        let asking = ask(self.bot(), question(command(&PUSH)), &self.alice).await;
        let item = asking.item(&self.alice).await;
        let same = permits(DecisionScope::Timebox, GrantMatch::Same);
        self.alice.decide(&item, &same).await.unwrap();
        let (bot, outcome) = asking.end().await;
        assert!(bot.keep(&outcome.unwrap()).unwrap().is_some());
        assert!(self.granted().await.unwrap().is_some());
        item.request_id
    }

    fn pause(&self, session: Option<&SessionId>) -> ControlOrder {
        let until = self.alice.now().inner() + Duration::from_secs(3_600);
        ControlOrder::Pause {
            session: session.cloned(),
            until: Timestamp::from(until),
        }
    }

    async fn order(&self, order: &ControlOrder) -> SentOrder {
        // Two orders of one moment have no order.
        self.world.cluster.pass(Duration::from_secs(1));
        self.alice.order("bot", order).await.unwrap()
    }

    async fn obeyed(&self, sent: SentOrder) -> SentOrder {
        self.alice.order_obeyed(sent, PATIENCE).await.unwrap()
    }

    /// Why nobody is asked; `None` if a person would be.
    async fn denied(&self, session: Option<&SessionId>) -> Option<String> {
        let mut question = question(command(&["make"]));
        if let Some(session) = session {
            (question.members).insert("sessionId".to_owned(), session.as_str().into());
        }
        match self.bot().prepare(question).await {
            Ok(_) => None,
            Err(denial @ ApprovalDenial::Paused(_)) => Some(denial.to_string()),
            Err(other) => panic!("{other}"),
        }
    }

    async fn offered(&self) -> Value {
        let admin = self.world.cluster.admin().await;
        let listed = admin.get("/v1/enforcers/bot/prompts").await;
        listed.expect(200).json()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_its_approver_ends_is_used_no_more_and_that_is_confirmed() {
    let scene = OrderScene::start().await;
    let request_id = scene.grant().await;
    let stored = std::fs::read(scene.world.file("bot").path().with_extension("grants.json"));
    let uses = scene.bot().grants().unwrap().remove(0);
    assert_eq!((uses.uses, uses.used_at.is_some()), (1, true));
    let sent = scene.order(&ControlOrder::EndGrant { request_id }).await;
    assert!(!sent.is_confirmed());
    assert_eq!(sent.prompt.status, PromptStatus::Queued);
    assert_eq!(scene.granted().await.unwrap(), None);
    assert!(scene.obeyed(sent).await.is_confirmed());
    assert!(scene.bot().grants().unwrap().is_empty());
    // Somebody puts the record back.
    let file = scene.world.file("bot").path().with_extension("grants.json");
    std::fs::write(file, stored.unwrap()).unwrap();
    assert_eq!(scene.granted().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_agent_is_denied_at_once_and_uses_no_grant() {
    let scene = OrderScene::start().await;
    scene.grant().await;
    let (one, other) = (
        scene.bot().session("claude", "one").unwrap(),
        scene.bot().session("claude", "other").unwrap(),
    );
    let sent = scene.order(&scene.pause(None)).await;
    let said = scene.denied(Some(&one)).await.unwrap();
    assert!(said.starts_with("paused by alice until 20"), "{said}");
    assert!(scene.obeyed(sent).await.is_confirmed());
    assert!(scene.denied(None).await.is_some());
    assert_eq!(scene.granted().await.unwrap(), None);
    assert_eq!(scene.bot().pauses().unwrap().len(), 1);
    let resume = ControlOrder::Resume { session: None };
    let sent = scene.order(&resume).await;
    assert_eq!(scene.denied(None).await, None);
    assert!(scene.obeyed(sent).await.is_confirmed());
    assert!(scene.granted().await.unwrap().is_some());

    // One session of it.
    scene.order(&scene.pause(Some(&one))).await;
    assert!(scene.denied(Some(&one)).await.is_some());
    assert_eq!(scene.denied(Some(&other)).await, None);
    assert_eq!(scene.denied(None).await, None);
    assert_eq!(scene.granted_in(Some(&one)).await.unwrap(), None);
    assert!(scene.granted_in(Some(&other)).await.unwrap().is_some());
    // It ends by itself.
    scene.world.cluster.pass(Duration::from_secs(3_601));
    assert_eq!(scene.denied(Some(&one)).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_come_by_themselves_and_never_reach_the_agent() {
    let scene = OrderScene::start().await;
    // More than the gateway shows at once.
    for number in 0..18 {
        let text = format!("Text {number}.");
        scene.alice.prompt("bot", None, &text).await.unwrap();
    }
    let sent = scene.order(&scene.pause(None)).await;
    assert!(scene.denied(None).await.is_some());
    assert!(scene.obeyed(sent).await.is_confirmed());
    let sent = scene.order(&ControlOrder::Resume { session: None }).await;
    let taken = scene.bot().take_prompts(None, deadline()).await.unwrap();
    assert_eq!(taken.len(), 18);
    for (number, prompt) in taken.iter().enumerate() {
        let words = prompt.opened.prompt.words();
        assert_eq!(words, format!("Text {number}."));
    }
    assert!(scene.obeyed(sent).await.is_confirmed());
    // An agent that takes no prompts still obeys.
    let sent = scene.order(&scene.pause(None)).await;
    let mut bot = scene.bot();
    let refused = bot.refuse_prompts(None, "no", deadline()).await;
    assert_eq!(refused.unwrap(), 0);
    assert!(scene.obeyed(sent).await.is_confirmed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_repeats_orders_changes_nothing() {
    let scene = OrderScene::start().await;
    scene.order(&scene.pause(None)).await;
    assert!(scene.denied(None).await.is_some());
    scene.order(&ControlOrder::Resume { session: None }).await;
    let old_resume = scene.offered().await;
    assert_eq!(old_resume["items"].as_array().unwrap().len(), 1);
    assert_eq!(scene.denied(None).await, None);
    scene.order(&scene.pause(None)).await;
    assert!(scene.denied(None).await.is_some());
    let node = scene.world.cluster.nodes[0].url.clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.contains("/prompts") {
            *answer = old_resume.clone();
        }
    })
    .await;
    scene.through(&liar.url);
    assert!(scene.denied(None).await.is_some(), "an old resume");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_withholds_counts_as_soon_as_it_arrives() {
    let scene = OrderScene::start().await;
    let request_id = scene.grant().await;
    let node = scene.world.cluster.nodes[0].url.clone();
    let withholds = Arc::new(Mutex::new(true));
    let switch = Arc::clone(&withholds);
    let liar = Tamper::start(&node, move |path, answer| {
        if path.contains("/prompts") && *switch.lock().unwrap() {
            answer["items"] = json!([]);
        }
    })
    .await;
    scene.through(&liar.url);
    let ended = scene.order(&ControlOrder::EndGrant { request_id }).await;
    let paused = scene.order(&scene.pause(None)).await;
    // As with the revocation of a device.
    assert!(scene.granted().await.unwrap().is_some());
    assert_eq!(scene.denied(None).await, None);
    assert!(!paused.is_confirmed());
    *withholds.lock().unwrap() = false;
    assert_eq!(scene.granted().await.unwrap(), None);
    assert!(scene.denied(None).await.is_some());
    for sent in [ended, paused] {
        assert!(scene.obeyed(sent).await.is_confirmed());
    }
    // A gateway that shows no list at all leaves no grant.
    scene.order(&ControlOrder::Resume { session: None }).await;
    scene.grant().await;
    let broken = Tamper::start(&node, |path, answer| {
        if path.contains("/prompts") {
            *answer = json!({});
        }
    })
    .await;
    scene.through(&broken.url);
    scene.granted().await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_comes_late_does_not_undo_a_later_resume() {
    let scene = OrderScene::start().await;
    let node = scene.world.cluster.nodes[0].url.clone();
    scene.order(&scene.pause(None)).await;
    let pause = scene.offered().await;
    let resume = scene.order(&ControlOrder::Resume { session: None }).await;
    let first = pause["items"][0]["requestId"].clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.contains("/prompts")
            && let Some(items) = answer["items"].as_array_mut()
        {
            items.retain(|item| item["requestId"] != first);
        }
    })
    .await;
    scene.through(&liar.url);
    assert_eq!(scene.denied(None).await, None);
    assert!(scene.obeyed(resume).await.is_confirmed());
    scene.through(&node);
    assert_eq!(scene.denied(None).await, None, "the pause is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_ends_a_grant_or_a_pause() {
    let scene = OrderScene::start().await;
    let request_id = scene.grant().await;
    let mut bob = scene.world.approver("bob", "tablet").await;
    let mut bot = scene.bot();
    pair(&mut bot, &mut bob).await;
    let end = ControlOrder::EndGrant {
        request_id: request_id.clone(),
    };
    bob.order("bot", &end).await.unwrap();
    assert!(scene.granted().await.unwrap().is_some());
    scene.order(&scene.pause(None)).await;
    scene.world.cluster.pass(Duration::from_secs(1));
    let resume = ControlOrder::Resume { session: None };
    bob.order("bot", &resume).await.unwrap();
    assert!(scene.denied(None).await.is_some());

    // An order to another enforcer, shown to this one.
    let mut other = scene.world.enforcer("other").await;
    let mut alice = scene.world.through("laptop", scene.world.cluster.urls());
    pair(&mut other, &mut alice).await;
    scene.world.cluster.pass(Duration::from_secs(1));
    let sent = alice.order("other", &resume).await.unwrap();
    let admin = scene.world.cluster.admin().await;
    let foreign = admin.get("/v1/enforcers/other/prompts").await.expect(200);
    let foreign = foreign.json();
    assert_eq!(
        foreign["items"][0]["requestId"],
        sent.prompt.request_id.as_str()
    );
    let node = scene.world.cluster.nodes[0].url.clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.contains("/prompts") {
            *answer = foreign.clone();
        }
    })
    .await;
    scene.through(&liar.url);
    assert!(scene.denied(None).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_that_the_gateway_invents_is_none() {
    let scene = OrderScene::start().await;
    let node = scene.world.cluster.nodes[0].url.clone();
    let liar = Tamper::start(&node, |path, answer| {
        if path.contains("/v1/prompt/") {
            answer["status"] = "delivered".into();
            answer["details"] = json!({ "receipt": "0".repeat(64) });
        }
    })
    .await;
    let alice = scene.world.through("laptop", vec![liar.url.clone()]);
    let sent = alice.order("bot", &scene.pause(None)).await.unwrap();
    let sent = alice.order_obeyed(sent, PATIENCE).await.unwrap();
    assert_eq!(sent.prompt.status, PromptStatus::Delivered);
    assert!(!sent.is_confirmed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_refused_that_is_old_or_from_the_future_or_too_long() {
    let scene = OrderScene::start().await;
    let sent = scene.order(&scene.pause(None)).await;
    let offered = scene.offered().await;
    scene
        .world
        .cluster
        .pass(Duration::from_secs(3 * 24 * 3_600));
    let node = scene.world.cluster.nodes[0].url.clone();
    let liar = Tamper::start(&node, move |path, answer| {
        if path.contains("/prompts") {
            *answer = offered.clone();
        }
    })
    .await;
    scene.through(&liar.url);
    assert_eq!(scene.denied(None).await, None);
    assert!(!sent.is_confirmed());
    let until = scene.alice.now().inner() + Duration::from_secs(25 * 3_600);
    let long = ControlOrder::Pause {
        session: None,
        until: Timestamp::from(until),
    };
    assert!(scene.alice.order("bot", &long).await.is_err());
    let request_id = RequestId::parse("none").unwrap();
    let end = ControlOrder::EndGrant { request_id };
    assert!(scene.alice.order("stranger", &end).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_orders_that_cannot_be_read_leaves_no_grant() {
    let scene = OrderScene::start().await;
    scene.grant().await;
    let file = scene.world.file("bot").path().with_extension("orders.json");
    for damaged in ["{", "{\"v\":2,\"orders\":[]}", "{\"v\":1,\"orders\":[{}]}"] {
        std::fs::write(&file, damaged).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = scene.granted().await.unwrap_err().to_string();
        assert!(error.contains("orders.json"), "{error}");
        assert_eq!(scene.denied(None).await, None, "a person is asked");
    }
}
