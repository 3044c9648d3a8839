//! Signing in with an OpenID provider: a device, renewed tokens, endings, and answers that nobody
//! asked for.

mod provider;

use std::time::Duration;

use countersign::config::Config;
use serde_json::json;

use self::provider::{AUDIENCE, Answer, CLIENT, OpenId};
use super::chromium::Chromium;
use super::page::Page;
use super::stage::{Bot, BrowserStage};
use crate::support::{Cluster, until};

/// How long access tokens last where a test waits for their end.
const SHORT: i64 = 8;

/// The remains of a profile. The database is there, since the page has looked into it.
const LEFT: &str = "
    const database = await new Promise((resolve) => {
        const request = indexedDB.open('countersign');
        request.onsuccess = () => resolve(request.result);
    });
    const keys = await new Promise((resolve) => {
        const request = database.transaction('profile').objectStore('profile').getAllKeys();
        request.onsuccess = () => resolve(request.result);
    });
    database.close();
    return [keys, sessionStorage.length, localStorage.length];";

fn by_sign_in(config: &mut Config, provider: &OpenId) {
    config.auth.jwt_issuer.clone_from(&provider.url);
    config.auth.jwt_audience = AUDIENCE.into();
    config.auth.jwt_jwks_url = format!("{}/jwks", provider.url);
    config.auth.jwt_leeway_seconds = 0;
    config.page.oidc.issuer.clone_from(&provider.url);
    config.page.oidc.client_id = CLIENT.into();
}

/// A node whose approvers sign in at a provider.
async fn scene() -> (BrowserStage, OpenId) {
    let provider = OpenId::start().await;
    let cluster = Cluster::with(1, |config| by_sign_in(config, &provider)).await;
    cluster
        .tenant
        .as_str()
        .clone_into(&mut provider.desk().tenant);
    (BrowserStage::on(cluster), provider)
}

async fn sign_in(page: &Page, provider: &OpenId, name: &str) {
    page.open("#/inbox").await;
    page.press(&format!("Sign in with {}", provider.host()))
        .await;
    page.fill("Device name", name).await;
    page.press("Continue to sign in").await;
}

/// Runs a command that this page approves.
async fn approves(page: &Page, bot: &Bot, word: &str) {
    let asking = bot.begin(&["run", "--", "echo", word]);
    page.open_request(&format!("echo {word}")).await;
    page.approve().await;
    asking.end().await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_in_has_a_device_that_pairs_and_approves() {
    let (stage, provider) = scene().await;
    let [first, second] = Chromium::start().await;
    let [first, second] = [first, second].map(|browser| Page::at(browser, &stage.url()));
    sign_in(&first, &provider, "phone").await;
    first.sees("Pair your first agent").await;
    let address = first.run("return location.href").await;
    assert_eq!(address, json!(format!("{}/#/inbox", stage.url())));
    let asked = provider.desk().asked.clone();
    assert_eq!(asked["redirect_uri"], format!("{}/", stage.url()));
    assert_eq!(asked["scope"], "openid offline_access");
    assert_eq!(first.run("return sessionStorage.length").await, 0);

    let bot = stage.bot("bot").await;
    bot.pair(&first).await;
    approves(&first, &bot, "hello").await;
    first.open("#/settings").await;
    first.sees("alice@example.com").await;

    // A further device needs the first one, even after a sign-in.
    sign_in(&second, &provider, "laptop").await;
    second
        .sees("Open this link on a device you already use")
        .await;
    let link = second
        .run("return document.querySelector('.copy-field input').value")
        .await;
    first.open(link.as_str().unwrap()).await;
    first.press("Yes, add it").await;
    first.sees("laptop was added").await;
    second.sees("This device is ready").await;
    let checked = bot.run(&["doctor"]).await;
    assert!(checked.out.contains("laptop"), "{checked:?}");
    approves(&second, &bot, "both").await;
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_renewed_by_one_tab_for_all_and_nobody_notices() {
    let (stage, provider) = scene().await;
    provider.desk().seconds = SHORT;
    let page = stage.page().await;
    sign_in(&page, &provider, "phone").await;
    page.sees("Pair your first agent").await;
    let bot = stage.bot("bot").await;
    bot.pair(&page).await;
    // Another tab of the same browser.
    page.run("window.other = window.open(location.href); return true")
        .await;
    let patience = Duration::from_secs(60);
    until("tokens have been renewed", patience, async || {
        provider.desk().refreshed >= 3
    })
    .await;
    assert!(!page.text().await.contains("Your sign-in has expired"));
    approves(&page, &bot, "later").await;
    {
        let desk = provider.desk();
        assert_eq!((desk.reused, desk.exchanged), (0, 1));
    }
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_renew_signs_in_again_and_keeps_keys_and_pairings() {
    let (stage, provider) = scene().await;
    provider.desk().seconds = SHORT;
    let mut page = stage.page().await;
    sign_in(&page, &provider, "phone").await;
    page.sees("Pair your first agent").await;
    let bot = stage.bot("bot").await;
    bot.pair(&page).await;
    page.may_lose_gateway();
    provider.desk().refuses_refresh = true;
    page.open("#/inbox").await;
    page.sees("Your sign-in has expired").await;

    // Nobody else takes over the device.
    provider.desk().person = "bob".into();
    page.press("Sign in again").await;
    page.sees("Sign in as alice.").await;
    page.press("Sign in again").await;
    page.sees("You signed in as bob, but this browser’s keys belong to alice.")
        .await;
    assert_eq!(provider.desk().revoked.len(), 1);

    {
        let mut desk = provider.desk();
        desk.person = "alice".into();
        desk.refuses_refresh = false;
        desk.seconds = 600;
    }
    page.press("Try again").await;
    page.press("Sign in again").await;
    page.sees("You’re all caught up").await;
    approves(&page, &bot, "again").await;
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_asked_for_is_refused_in_words() {
    let (stage, provider) = scene().await;
    let page = stage.page().await;
    let is_gone = "return location.search === '' && location.hash === '#/signin'";
    page.open(&format!("{}/?code=stolen&state=invented", stage.url()))
        .await;
    page.sees("This sign-in wasn’t started in this tab").await;
    assert_eq!(page.run(is_gone).await, true);
    for (answer, said) in [
        (
            Answer::Altered("state", "invented"),
            "This sign-in wasn’t started in this tab",
        ),
        (
            Answer::Altered("iss", "https://evil.example.com"),
            "The answer came from a different sign-in service",
        ),
        (
            Answer::Denied,
            "The sign-in service refused: Not on a Friday.",
        ),
    ] {
        provider.desk().answer = answer;
        sign_in(&page, &provider, "phone").await;
        page.sees(said).await;
        assert_eq!(page.run(is_gone).await, true);
        assert_eq!(page.run("return sessionStorage.length").await, 0);
    }
    assert_eq!(provider.desk().exchanged, 0);
    provider.desk().answer = Answer::Code;
    page.press("Try again").await;
    page.fill("Device name", "phone").await;
    page.press("Continue to sign in").await;
    page.sees("Pair your first agent").await;

    // The same answer again, by the history or a copied link.
    let used = format!("{}/?code=code-3&state=used", stage.url());
    page.open(&used).await;
    page.sees("This sign-in wasn’t started in this tab").await;
    assert_eq!(provider.desk().exchanged, 1);
    page.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_ends_the_tokens_and_signs_out_at_the_provider() {
    let (stage, provider) = scene().await;
    let page = stage.page().await;
    sign_in(&page, &provider, "phone").await;
    page.sees("Pair your first agent").await;
    page.open("#/settings").await;
    page.press("Log out").await;
    page.sees("Also sign out of the sign-in service").await;
    page.press("Log out").await;
    page.sees("Decide what your agents may do").await;
    until("it signs out", super::PATIENCE, async || {
        provider.desk().signed_out == 1
    })
    .await;
    page.sees(&format!("Sign in with {}", provider.host()))
        .await;
    assert_eq!(provider.desk().revoked, ["refresh-2"]);
    assert_eq!(page.run(LEFT).await, json!([[], 0, 0]));
    page.close().await;
}
