//! The page in other languages: as the browser wants, or as the person chooses.

use serde_json::json;

use super::page::Page;
use super::stage::BrowserStage;

/// The narrowest screen that the page is made for.
const NARROW: u32 = 320;

/// The browser wants these languages from now on.
async fn want(page: &Page, languages: &str) {
    let agent = page.run("return navigator.userAgent").await;
    let session = &page.browser.session;
    let wanted = json!({ "userAgent": agent, "acceptLanguage": languages });
    session
        .devtools("Emulation.setUserAgentOverride", wanted)
        .await;
    session.devtools("Page.reload", json!({})).await;
}

async fn choose(page: &Page, name: &str) {
    page.open("#/settings").await;
    let script = format!(
        "const select = document.querySelector('.main select'); \
         if (!select) return false; \
         select.value = [...select.options].find((one) => one.label === '{name}').value; \
         select.dispatchEvent(new Event('change')); \
         return true"
    );
    page.until("a language can be chosen", &script).await;
}

async fn language(page: &Page) -> String {
    let language = page.run("return document.documentElement.lang").await;
    language.as_str().unwrap().to_owned()
}

/// Waits until the service worker would say this.
async fn notice_is(page: &Page, text: &str) {
    let script = format!(
        "const kept = await (await caches.open('countersign-page')).match(new URL('notices', document.baseURI)); \
         return (await kept?.json())?.waiting === '{text}'"
    );
    let script = format!("return (async () => {{ {script} }})()");
    page.until("the service worker has its texts", &script)
        .await;
}

/// Nothing is wider than a narrow screen, and no name of a tab is cut.
async fn fits(page: &Page) {
    let metrics = json!({ "width": NARROW, "height": 700, "deviceScaleFactor": 1, "mobile": true });
    let session = &page.browser.session;
    session
        .devtools("Emulation.setDeviceMetricsOverride", metrics)
        .await;
    for view in [
        "inbox", "pair", "agents", "history", "devices", "device", "settings",
    ] {
        page.open(&format!("#/{view}")).await;
        page.until(
            "a heading",
            "return document.querySelector('main h1')?.innerText",
        )
        .await;
        let wide = "const wide = [...document.querySelectorAll('.nav li a')].filter((one) => one.scrollWidth > one.clientWidth); \
                    if (document.documentElement.scrollWidth > innerWidth) wide.push(document.body); \
                    return wide.map((one) => one.innerText)";
        assert_eq!(page.run(wide).await, json!([]), "{view}");
    }
    session
        .devtools("Emulation.clearDeviceMetricsOverride", json!({}))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_speaks_the_language_of_the_browser_or_the_one_that_is_chosen() {
    let stage = BrowserStage::start().await;
    let page = stage.page().await;
    page.join_first(&stage.invitation("approver", "alice").await, "laptop")
        .await;
    assert_eq!(language(&page).await, "en");

    want(&page, "fr-FR,es-MX,en").await;
    page.sees("Vincula tu primer agente").await;
    assert_eq!(language(&page).await, "es");
    notice_is(&page, "Una solicitud espera tu decisión.").await;
    fits(&page).await;

    choose(&page, "Deutsch").await;
    page.sees("Darstellung").await;
    assert_eq!(language(&page).await, "de");
    let joined = page.fact("Beigetreten").await;
    let is_german = joined.split(',').next().unwrap().split('.').count() == 3;
    assert!(is_german, "{joined}");
    notice_is(&page, "Eine Anfrage wartet auf deine Entscheidung.").await;
    fits(&page).await;

    choose(&page, "English").await;
    page.sees("Appearance").await;
    assert_eq!(language(&page).await, "en");
    notice_is(&page, "A request is waiting for your decision.").await;

    choose(&page, "Automatic").await;
    page.sees("Apariencia").await;
    page.close().await;
}
