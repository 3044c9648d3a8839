//! An agent's questions to its user: shown with their choices, and answered on the terminal or by
//! arguments.

use std::fmt::Write as _;

use countersign::client::{ClientError, visible, visible_lines};
use countersign::e2e::PlainArtifact;
use serde_json::{Map, Value};

use super::artifact::members_of;
use crate::commands::terminal::{Colour, ask_next, paint};

struct ShownChoice {
    label: String,
    description: Option<String>,
    /// What else the agent says of it, such as a preview.
    more: Option<Value>,
}

struct ShownQuestion {
    text: String,
    header: Option<String>,
    choices: Vec<ShownChoice>,
    takes_several: bool,
    more: Option<Value>,
}

/// The questions of a request; empty if it asks none, or has more than could be shown.
fn questions_of(payload: &Value) -> Vec<ShownQuestion> {
    let questions = payload["questions"].as_array();
    let questions = questions.filter(|_| payload["kind"] == "question");
    let read = questions.and_then(|list| list.iter().map(read_question).collect::<Option<_>>());
    read.unwrap_or_default()
}

fn read_question(value: &Value) -> Option<ShownQuestion> {
    let members = value.as_object()?;
    let known = ["question", "header", "options", "multiSelect", "more"];
    let text = value["question"].as_str()?.to_owned();
    let choices = value["options"].as_array()?.iter().map(read_choice);
    let is_known = members.keys().all(|name| known.contains(&name.as_str()));
    is_known.then_some(ShownQuestion {
        text,
        header: value["header"].as_str().map(str::to_owned),
        choices: choices.collect::<Option<_>>()?,
        takes_several: value["multiSelect"].as_bool()?,
        more: members.get("more").cloned(),
    })
}

fn read_choice(value: &Value) -> Option<ShownChoice> {
    let known = ["label", "description", "more"];
    let mut names = value.as_object()?.keys();
    names
        .all(|name| known.contains(&name.as_str()))
        .then_some(ShownChoice {
            label: value["label"].as_str()?.to_owned(),
            description: value["description"].as_str().map(str::to_owned),
            more: value.get("more").cloned(),
        })
}

/// The questions of a payload, taken out of it; `None` if they are not what their kind promises.
pub fn render_questions(payload: &mut Map<String, Value>, colour: bool) -> Option<String> {
    let questions = questions_of(&Value::Object(payload.clone()));
    if questions.is_empty() {
        return None;
    }
    payload.remove("kind");
    payload.remove("questions");
    let mut text = String::new();
    for question in &questions {
        text.push('\n');
        text.push_str(&question.render(colour));
    }
    Some(text)
}

impl ShownQuestion {
    fn render(&self, colour: bool) -> String {
        let header = self
            .header
            .as_deref()
            .map(|header| format!("{}: ", visible(header)));
        let asked = format!(
            "{}{}",
            header.unwrap_or_default(),
            visible_lines(&self.text)
        );
        let mut text = format!("{}\n", paint(colour, Colour::Bold, &asked));
        for (at, choice) in self.choices.iter().enumerate() {
            let _never = writeln!(text, "  {}  {}", at + 1, visible(&choice.label));
            let more = choice.more.as_ref().map(|more| format!("{more:#}"));
            let lines = choice.description.iter().chain(&more);
            for line in lines.flat_map(|text| text.lines()) {
                let _never = writeln!(text, "     {}", visible(line));
            }
        }
        if let Some(more) = &self.more {
            let _never = writeln!(text, "  {}", visible_lines(&format!("{more:#}")));
        }
        text
    }

    /// The texts that an answer stands for: labels, numbers of choices, or own words.
    fn read(&self, answer: &str) -> Result<Vec<String>, ClientError> {
        let answer = answer.trim();
        if answer.is_empty() {
            return Err(ClientError::Choice("an answer can't be empty"));
        }
        if let Some(label) = self.choice(answer) {
            return Ok(vec![label]);
        }
        let several: Option<Vec<_>> = answer
            .split(',')
            .map(|part| self.choice(part.trim()))
            .collect();
        Ok(match several {
            Some(labels) if self.takes_several => labels,
            _ => vec![answer.to_owned()],
        })
    }

    fn choice(&self, text: &str) -> Option<String> {
        let mut labels = self.choices.iter().map(|choice| &choice.label);
        let by_label = labels.find(|label| label.eq_ignore_ascii_case(text));
        let by_number = || text.parse::<usize>().ok()?.checked_sub(1);
        let chosen = by_label.or_else(|| self.choices.get(by_number()?).map(|it| &it.label));
        chosen.cloned()
    }
}

pub fn asks_questions(artifact: &PlainArtifact) -> bool {
    !questions_of(&members_of(artifact)["payload"]).is_empty()
}

/// The answers that arguments give, one for each question.
pub fn read_answers(
    artifact: &PlainArtifact,
    given: &[String],
) -> Result<Vec<Vec<String>>, ClientError> {
    let questions = questions_of(&members_of(artifact)["payload"]);
    if questions.is_empty() {
        return Err(ClientError::Choice("the request asks no questions"));
    }
    if questions.len() != given.len() {
        return Err(ClientError::Choice(
            "give one --answer for each question, in their order",
        ));
    }
    let answers = questions.iter().zip(given);
    answers
        .map(|(question, answer)| question.read(answer))
        .collect()
}

/// Asks a person at the terminal, who has been shown the request. `None` if a question was left
/// out.
pub async fn ask_answers(artifact: &PlainArtifact) -> anyhow::Result<Option<Vec<Vec<String>>>> {
    let mut answers = Vec::new();
    for question in questions_of(&members_of(artifact)["payload"]) {
        let how = match (question.choices.is_empty(), question.takes_several) {
            (true, _) => "your answer",
            (false, false) => "a number, or your own words",
            (false, true) => "numbers with commas, or your own words",
        };
        let asked = visible_lines(&question.text);
        let answer = ask_next(&format!("\n{asked}\n({how}; empty: do not answer)")).await;
        let answer = answer.map_err(|_| ClientError::Choice("there is no terminal to ask on"))?;
        if answer.is_empty() {
            return Ok(None);
        }
        answers.push(question.read(&answer)?);
    }
    Ok(Some(answers))
}
