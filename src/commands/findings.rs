//! What a check of a configuration found, and what to do about it.

use std::borrow::Cow;

use serde::Serialize;

type Text = Cow<'static, str>;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works, but not as well as it should.
    Warning,
    /// It does not work.
    Failed,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

#[derive(Serialize)]
pub struct Finding {
    pub check: Text,
    pub status: Status,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Text>,
}

impl Finding {
    fn line(&self) -> String {
        // One line each, even if an error has several.
        let words: Vec<_> = self.message.split_whitespace().collect();
        let message = words.join(" ");
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        let remedy = remedy.unwrap_or_default();
        format!(
            "{:<8} {:<14} {message}{remedy}",
            self.status.as_str(),
            self.check
        )
    }
}

#[derive(Default)]
pub struct Report(Vec<Finding>);

impl Report {
    pub fn add(
        &mut self,
        check: impl Into<Text>,
        status: Status,
        message: impl Into<String>,
        remedy: Option<Text>,
    ) {
        self.0.push(Finding {
            check: check.into(),
            status,
            message: message.into(),
            remedy,
        });
    }

    pub fn ok(&mut self, check: impl Into<Text>, message: impl Into<String>) {
        self.add(check, Status::Ok, message, None);
    }

    pub fn warn(
        &mut self,
        check: impl Into<Text>,
        message: impl Into<String>,
        remedy: impl Into<Text>,
    ) {
        self.add(check, Status::Warning, message, Some(remedy.into()));
    }

    pub fn fail(
        &mut self,
        check: impl Into<Text>,
        message: impl Into<String>,
        remedy: impl Into<Text>,
    ) {
        self.add(check, Status::Failed, message, Some(remedy.into()));
    }

    pub fn findings(&self) -> &[Finding] {
        &self.0
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn failed(&self) -> usize {
        let failed = self
            .0
            .iter()
            .filter(|finding| finding.status == Status::Failed);
        failed.count()
    }

    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Finding::line)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "ok": self.failed() == 0, "findings": self.0 })
    }
}
