//! The findings of a check of a configuration, with remedies.

use std::borrow::Cow;

use serde::Serialize;

type FindingText = Cow<'static, str>;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingStatus {
    Ok,
    /// It works, but not as well as it should.
    Warning,
    /// It does not work.
    Failed,
}

impl FindingStatus {
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
    pub check: FindingText,
    pub status: FindingStatus,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<FindingText>,
}

impl Finding {
    #[cfg(feature = "gateway")]
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
pub struct FindingReport(Vec<Finding>);

impl FindingReport {
    pub fn add(
        &mut self,
        check: impl Into<FindingText>,
        status: FindingStatus,
        message: impl Into<String>,
        remedy: Option<FindingText>,
    ) {
        self.0.push(Finding {
            check: check.into(),
            status,
            message: message.into(),
            remedy,
        });
    }

    pub fn ok(&mut self, check: impl Into<FindingText>, message: impl Into<String>) {
        self.add(check, FindingStatus::Ok, message, None);
    }

    pub fn warn(
        &mut self,
        check: impl Into<FindingText>,
        message: impl Into<String>,
        remedy: impl Into<FindingText>,
    ) {
        self.add(check, FindingStatus::Warning, message, Some(remedy.into()));
    }

    pub fn fail(
        &mut self,
        check: impl Into<FindingText>,
        message: impl Into<String>,
        remedy: impl Into<FindingText>,
    ) {
        self.add(check, FindingStatus::Failed, message, Some(remedy.into()));
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
            .filter(|finding| finding.status == FindingStatus::Failed);
        failed.count()
    }

    #[cfg(feature = "gateway")]
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Finding::line)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "ok": self.failed() == 0, "findings": self.0 })
    }
}
