//! The page in a browser, as its user reads and operates it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::PATIENCE;
use super::webdriver::{Browser, Element, Fault};

/// Finds what a user could operate, by what it is called: nothing that is hidden, disabled, inert,
/// or behind a dialog.
const CONTROL: &str = "
    const [selector, wanted] = arguments;
    const nameOf = (element) => {
        const copy = element.cloneNode(true);
        for (const other of copy.querySelectorAll('[aria-hidden=true], svg, kbd')) other.remove();
        return (element.getAttribute('aria-label') ?? copy.textContent).replace(/\\s+/g, ' ').trim();
    };
    const dialogs = document.querySelectorAll('dialog[open]');
    const root = dialogs.length ? dialogs[dialogs.length - 1] : document;
    const usable = (element) => element.checkVisibility() && !element.disabled && !element.closest('[inert]');
    return [...root.querySelectorAll(selector)].find((element) => usable(element) && nameOf(element) === wanted) ?? null;";

/// Finds a control by the label in front of it.
const FIELD: &str = "
    const [wanted] = arguments;
    const dialogs = document.querySelectorAll('dialog[open]');
    const root = dialogs.length ? dialogs[dialogs.length - 1] : document;
    const label = [...root.querySelectorAll('label')].find((one) => one.textContent.trim() === wanted);
    return label?.control ?? null;";

/// An entry of a list, by what it says.
const ENTRY: &str = "
    const [wanted] = arguments;
    const entries = [...document.querySelectorAll('main .list a')];
    return entries.find((entry) => entry.checkVisibility() && entry.innerText.includes(wanted)) ?? null;";

/// A browser that shows the page.
pub struct Page {
    pub browser: Browser,
    /// Where the page is.
    pub url: String,
    /// Whether a failed call is to be expected, as when a node is killed.
    may_lose_gateway: bool,
    is_checked: bool,
}

impl Page {
    pub fn at(browser: Browser, url: &str) -> Self {
        Self {
            browser,
            url: url.to_owned(),
            may_lose_gateway: false,
            is_checked: false,
        }
    }

    /// From here on the console may say that the gateway could not be reached or refused something.
    pub fn may_lose_gateway(&mut self) {
        self.may_lose_gateway = true;
    }

    /// Ends the browser; fails if the console has said anything about an error, or about a
    /// violation of the page's policy.
    pub async fn close(mut self) {
        self.check_console().await;
        self.is_checked = true;
    }

    pub async fn check_console(&self) {
        let said = self.browser.session.console().await;
        let faults: Vec<&Value> = said
            .iter()
            .filter(|entry| entry["level"] == "SEVERE" || entry["source"] == "security")
            .filter(|entry| !(self.may_lose_gateway && entry["source"] == "network"))
            .collect();
        assert!(faults.is_empty(), "the console says: {faults:#?}");
    }

    async fn eventually<T>(
        &self,
        what: &str,
        mut attempt: impl AsyncFnMut() -> Result<Option<T>, Fault>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(20);
        loop {
            match attempt().await {
                Ok(Some(done)) => return done,
                Ok(None) => {}
                Err(fault) if fault.is_passing() => {}
                Err(fault) => panic!("{what}: {fault:?}"),
            }
            if Instant::now() >= deadline {
                let console = self.browser.session.console().await;
                panic!(
                    "not in time: {what}; the page shows:\n{}\n{console:#?}",
                    self.text().await
                );
            }
            sleep(pause).await;
            // Reading a page makes the browser lay it out, which slows down what is waited for.
            pause = (pause * 3 / 2).min(Duration::from_millis(200));
        }
    }

    /// Opens a link, or an address of this page such as `#/inbox`.
    pub async fn open(&self, link: &str) {
        let url = if link.starts_with('#') {
            format!("{}/{link}", self.url)
        } else {
            link.to_owned()
        };
        self.browser.session.goto(&url).await;
    }

    /// The same link at the address where this page is: nodes name their own.
    pub fn here(&self, link: &str) -> String {
        let (_, rest) = link.split_once("/#/").unwrap();
        format!("{}/#/{}", self.url, rest.trim())
    }

    /// Runs a script; a promise is awaited.
    pub async fn run(&self, script: &str) -> Value {
        self.browser.session.run(script, json!([])).await.unwrap()
    }

    /// All that can be read now, as it looks.
    pub async fn text(&self) -> String {
        self.run("return document.body.innerText")
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Waits until this can be read.
    pub async fn sees(&self, text: &str) {
        let what = format!("“{text}” is shown");
        let shown = async || Ok(self.text().await.contains(text).then_some(()));
        self.eventually(&what, shown).await;
    }

    /// Waits until this can be read no more.
    pub async fn no_longer_sees(&self, text: &str) {
        let what = format!("“{text}” has gone");
        let gone = async || Ok((!self.text().await.contains(text)).then_some(()));
        self.eventually(&what, gone).await;
    }

    /// Waits until a script returns something true, and returns that.
    pub async fn until(&self, what: &str, script: &str) -> Value {
        let holds = async || {
            let value = self.browser.session.run(script, json!([])).await?;
            let holds = !matches!(value, Value::Null | Value::Bool(false));
            Ok(holds.then_some(value))
        };
        self.eventually(what, holds).await
    }

    /// The value of this name in a list of facts.
    pub async fn fact(&self, name: &str) -> String {
        let script = format!(
            "return [...document.querySelectorAll('dt')].find((one) => one.innerText === '{name}')?.nextElementSibling.innerText ?? null"
        );
        let found = self.until(&format!("a fact named {name}"), &script).await;
        found.as_str().unwrap().to_owned()
    }

    /// Whether there is a button or link of this name that a user could press now.
    pub async fn offers(&self, name: &str) -> bool {
        self.control(name).await.unwrap().is_some()
    }

    async fn control(&self, name: &str) -> Result<Option<Element>, Fault> {
        let arguments = json!(["button, a, summary, label.radio", name]);
        self.browser.session.locate(CONTROL, arguments).await
    }

    /// Presses a button, or follows a link.
    pub async fn press(&self, name: &str) {
        let pressed = async || match self.control(name).await? {
            Some(found) => self.browser.session.click(&found).await.map(Some),
            None => Ok(None),
        };
        self.eventually(&format!("“{name}” can be pressed"), pressed)
            .await;
    }

    /// Fills in what is labelled so.
    pub async fn fill(&self, label: &str, text: &str) {
        let filled = async || match self.browser.session.locate(FIELD, json!([label])).await? {
            Some(found) => self.browser.session.write(&found, text).await.map(Some),
            None => Ok(None),
        };
        self.eventually(&format!("“{label}” can be filled in"), filled)
            .await;
    }

    pub async fn key(&self, key: &str) {
        self.browser.session.key(key).await;
    }

    /// Joins by an invitation, as a device of this name.
    pub async fn join(&self, invitation: &str, name: &str) {
        self.open(invitation).await;
        self.fill("Device name", name).await;
        self.press("Join").await;
    }

    /// Joins as the first device of an approver.
    pub async fn join_first(&self, invitation: &str, name: &str) {
        self.join(invitation, name).await;
        self.sees("Pair your first agent").await;
    }

    /// Opens a pairing link and agrees.
    pub async fn pair(&self, link: &str) {
        self.open(link).await;
        self.press("Pair").await;
        self.sees("Paired with").await;
    }

    /// Opens the request in the inbox that says this.
    pub async fn open_request(&self, text: &str) {
        self.open("#/inbox").await;
        self.choose(text).await;
        self.until(
            "it can be decided",
            "return document.querySelector('.decision:not(.outcome, [inert])') !== null",
        )
        .await;
    }

    /// Follows the entry of a list that says this.
    pub async fn choose(&self, text: &str) {
        let chosen = async || match self.browser.session.locate(ENTRY, json!([text])).await? {
            Some(found) => self.browser.session.click(&found).await.map(Some),
            None => Ok(None),
        };
        self.eventually(&format!("an entry says “{text}”"), chosen)
            .await;
    }

    pub async fn approve(&self) {
        self.press("Approve").await;
        self.ends_as("Approved").await;
    }

    /// Waits until the request that is shown has this outcome.
    pub async fn ends_as(&self, outcome: &str) {
        let script = format!(
            "return document.querySelector('.outcome strong')?.textContent === '{outcome}'"
        );
        self.until(&format!("it is {outcome}"), &script).await;
    }

    pub async fn reject(&self, reason: &str) {
        self.press("Reject").await;
        self.fill("Reason (optional)", reason).await;
        self.press("Reject").await;
        self.ends_as("Rejected").await;
    }

    /// Rejects what could not be opened, for which there may be no reason.
    pub async fn reject_unread(&self) {
        self.press("Reject").await;
        self.press("Reject").await;
        self.ends_as("Rejected").await;
    }

    /// A picture of what is shown, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        use base64::Engine as _;
        let picture = self.browser.session.get("/screenshot").await.unwrap();
        let engine = base64::engine::general_purpose::STANDARD;
        engine.decode(picture.as_str().unwrap()).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        assert!(
            self.is_checked || std::thread::panicking(),
            "the test does not close its page, so nobody has looked at the console"
        );
    }
}
