//! The questions that an agent's own tool asks its user, in one form for all agents, and their
//! answers in the form of each.

use serde_json::{Map, Value, json};

use crate::event::{AgentQuestion, QuestionChoice, ToolAction, ToolCall};
use crate::members::EventMembers;

/// No more can be answered in one decision.
const MAX_QUESTIONS: usize = 16;
const MAX_CHOICES: usize = 64;

/// For each question the texts that a person chose or wrote.
pub type QuestionAnswers = Vec<Vec<String>>;

/// The questions in the input of a tool that asks. An input of another form is the agent's own
/// affair: its dialog shows it.
pub fn question(input: &mut EventMembers) -> ToolAction {
    let before = input.left.clone();
    read(input).unwrap_or_else(|| {
        input.left = before;
        ToolAction::Internal
    })
}

fn read(input: &mut EventMembers) -> Option<ToolAction> {
    let questions = match input.left.remove("questions") {
        Some(Value::Array(list)) => list.into_iter().map(read_question).collect::<Option<_>>()?,
        Some(_) => return None,
        // Copilot CLI asks one at a time.
        None => vec![read_question(Value::Object(std::mem::take(
            &mut input.left,
        )))?],
    };
    let count = questions.len();
    (1..=MAX_QUESTIONS)
        .contains(&count)
        .then_some(ToolAction::Question { questions })
}

fn read_question(value: Value) -> Option<AgentQuestion> {
    let Value::Object(members) = value else {
        return None;
    };
    let mut members = EventMembers::new("", members);
    let text = members.text_of(&["question", "prompt"]).ok()??;
    let header = members.optional_text("header").ok()?;
    let flags = ["multiSelect", "multiple", "allow_multiple"].map(|name| members.flag(name));
    let takes_several = flags
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .ok()?
        .contains(&true);
    let choices = ["options", "choices"].map(|name| members.left.remove(name));
    let choices = match choices {
        [Some(Value::Array(list)), None] | [None, Some(Value::Array(list))] => list,
        [None | Some(Value::Null), None | Some(Value::Null)] => Vec::new(),
        _ => return None,
    };
    let choices: Vec<_> = choices
        .into_iter()
        .map(read_choice)
        .collect::<Option<_>>()?;
    let is_good = !text.trim().is_empty() && choices.len() <= MAX_CHOICES;
    is_good.then_some(AgentQuestion {
        text,
        header,
        choices,
        takes_several,
        rest: members.left,
    })
}

fn read_choice(value: Value) -> Option<QuestionChoice> {
    let mut members = match value {
        Value::String(label) => {
            let (description, rest) = (None, Map::new());
            return Some(QuestionChoice {
                label,
                description,
                rest,
            });
        }
        Value::Object(members) => EventMembers::new("", members),
        _ => return None,
    };
    let label = members.text("label").ok()?;
    let description = members.optional_text("description").ok()?;
    (!label.trim().is_empty()).then_some(QuestionChoice {
        label,
        description,
        rest: members.left,
    })
}

impl AgentQuestion {
    /// As an approver is shown it.
    pub fn to_json(&self) -> Value {
        let mut shown = json!({ "question": self.text, "multiSelect": self.takes_several });
        if let Some(header) = &self.header {
            shown["header"] = header.as_str().into();
        }
        shown["options"] = self.choices.iter().map(QuestionChoice::to_json).collect();
        if !self.rest.is_empty() {
            shown["more"] = Value::Object(self.rest.clone());
        }
        shown
    }
}

impl QuestionChoice {
    fn to_json(&self) -> Value {
        let mut shown = json!({ "label": self.label });
        if let Some(description) = &self.description {
            shown["description"] = description.as_str().into();
        }
        if !self.rest.is_empty() {
            shown["more"] = Value::Object(self.rest.clone());
        }
        shown
    }
}

impl ToolCall {
    pub fn questions(&self) -> Option<&[AgentQuestion]> {
        match &self.action {
            ToolAction::Question { questions } => Some(questions),
            _ => None,
        }
    }

    /// The input with the answers in it, for an agent whose tool takes them from there.
    pub fn answered_input(&self, answers: &QuestionAnswers) -> Value {
        let questions = self.questions().unwrap_or_default();
        let answers = questions.iter().zip(answers);
        let answers: Map<_, _> = answers
            .map(|(question, texts)| (question.text.clone(), texts.join(", ").into()))
            .collect();
        let mut input = self.input.clone();
        input.insert("answers".to_owned(), Value::Object(answers));
        Value::Object(input)
    }
}

/// The answers as a text for the model, for an agent whose tool takes none: the call is denied with
/// it, which every agent passes on.
pub fn answer_text(who: &str, questions: &[AgentQuestion], answers: &QuestionAnswers) -> String {
    let mut text =
        format!("This is no error: {who} has answered in place of the dialog. Do not ask again.");
    for (question, texts) in questions.iter().zip(answers) {
        text.push('\n');
        text.push_str(question.text.trim());
        text.push_str("\nAnswer: ");
        text.push_str(&texts.join(", "));
    }
    text
}
