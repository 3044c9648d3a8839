//! What a grant permits, in words.

use countersign::client::enforcer::GrantSubject;
use countersign::client::visible;
use countersign::e2e::{Grant, GrantMatch, PlainArtifact};

/// Describes what a grant permits, and until when. `subject` is the request that it was given with.
pub fn describe(grant: &Grant, subject: Option<&GrantSubject>) -> String {
    let what = describe_match(&grant.matches, subject);
    let end = if grant.session_only {
        ", or the end of the session"
    } else {
        ""
    };
    format!("{what}, until {}{end}", grant.until)
}

/// The subject that a grant of this artifact's approval would have.
pub fn subject_of(artifact: &PlainArtifact) -> Option<GrantSubject> {
    GrantSubject::of_artifact(artifact).map(|(subject, _)| subject)
}

pub fn describe_match(matches: &GrantMatch, subject: Option<&GrantSubject>) -> String {
    let edited = subject.and_then(GrantSubject::edited);
    match matches {
        GrantMatch::Same => "the same again".to_owned(),
        GrantMatch::Prefix(words) => format!("commands that begin with {}", shown(words)),
        GrantMatch::Words(pattern) => {
            let words = pattern.words().iter().map(|word| match word {
                Some(word) => quoted(word),
                None => "(any word)".to_owned(),
            });
            let words: Vec<_> = words.collect();
            let more = if pattern.more() {
                " and further words"
            } else {
                ""
            };
            format!("commands of the form {}{more}", words.join(" "))
        }
        GrantMatch::File => {
            let files = edited.map(|(_, files)| files).unwrap_or_default();
            let names: Vec<_> = files
                .iter()
                .map(|file| visible(&file.to_string_lossy()))
                .collect();
            format!("all changes, also deletion, of {}", names.join(", "))
        }
        GrantMatch::Project => {
            let project = edited.map(|(project, _)| project.to_string_lossy());
            let project = visible(&project.unwrap_or_default());
            format!("all changes, also deletions, inside {project}")
        }
    }
}

/// Words, each apart from the next.
pub fn shown(words: &[String]) -> String {
    let words = words.iter().map(|word| quoted(word));
    words.collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", visible(&word.replace('\'', "'\\''")))
    }
}
