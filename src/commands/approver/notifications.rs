//! `notifications`, `notifications add`, `notifications remove` and `notifications test`.

use clap::{Args, Subcommand};
use countersign::client::approver::{Approver, ListedNotification};
use countersign::client::{ClientError, visible};
use serde_json::{Value, json};

use super::input::{argument_or_input, open};
use crate::commands::client_options::{ClientOptions, NOT_UNIQUE};
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

pub const EXAMPLES: &str = "\
Examples:
  countersign notifications
  countersign notifications add https://hooks.example.com/countersign
  countersign notifications test 01a1dd30
  countersign notifications remove 01a1dd30";

#[derive(Args)]
pub struct NotificationsArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<NotificationsCommand>,
}

#[derive(Subcommand)]
enum NotificationsCommand {
    /// List where this approver is notified that something waits.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Add a webhook. Browsers are added in the page's settings.
    Add {
        #[command(flatten)]
        options: ClientOptions,
        /// Its URL, or - to read it from standard input.
        url: String,
    },
    /// Remove a webhook or a browser.
    Remove {
        #[command(flatten)]
        options: ClientOptions,
        /// Its id, or as much of it as is unique.
        id: String,
    },
    /// Send a test now. Exit status: 0 if it got through, 77 if not.
    Test {
        #[command(flatten)]
        options: ClientOptions,
        /// Its id, or as much of it as is unique.
        id: String,
    },
}

pub async fn run(args: NotificationsArgs) -> anyhow::Result<ExitAction> {
    match args.command {
        None => list(&args.options).await,
        Some(NotificationsCommand::List { options }) => list(&options).await,
        Some(NotificationsCommand::Add { options, url }) => add(&options, &url).await,
        Some(NotificationsCommand::Remove { options, id }) => remove(&options, &id).await,
        Some(NotificationsCommand::Test { options, id }) => test(&options, &id).await,
    }
}

fn line_json(line: &ListedNotification) -> Value {
    json!({
        "notificationId": line.notification_id, "kind": line.kind, "deviceId": line.device_id, "host": line.host,
        "state": line.state, "createdAt": line.created_at, "failure": line.failure,
    })
}

async fn list(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let found = open(options)?.notifications().await?;
    if options.json {
        let lines: Vec<_> = found.notifications.iter().map(line_json).collect();
        print_json(&lines)?;
        return Ok(ExitAction::DONE);
    }
    let colour = output_has_colour();
    for line in &found.notifications {
        let paint_as = match line.state.as_str() {
            "active" => Colour::Green,
            "failing" => Colour::Yellow,
            _ => Colour::Red,
        };
        let place = line.host.as_deref().or(line.device_id.as_deref());
        let failure = line.failure.as_deref().map(visible);
        print_line(&format!(
            "{}  {}  {}  {}  {}",
            visible(&line.notification_id),
            paint(colour, paint_as, &visible(&line.state)),
            visible(&line.kind),
            visible(place.unwrap_or_default()),
            failure.unwrap_or_default(),
        ))?;
    }
    if !found.enabled {
        let reason = visible(found.reason.as_deref().unwrap_or("no reason given"));
        let mut screen = TerminalScreen::new(false);
        screen.say(&format!("this gateway sends no notifications: {reason}"));
    }
    Ok(ExitAction::DONE)
}

async fn add(options: &ClientOptions, url: &str) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let added = approver.add_webhook(&argument_or_input(url)?).await?;
    if options.json {
        let (id, secret) = (added.notification_id, added.secret);
        print_json(&json!({ "notificationId": id, "secret": secret }))?;
        return Ok(ExitAction::DONE);
    }
    print_line(&visible(&added.notification_id))?;
    let mut screen = TerminalScreen::new(false);
    match added.secret {
        Some(secret) => screen.say(&format!(
            "requests are signed with {}\nKeep it: it is not shown again.",
            visible(&secret)
        )),
        None => screen.say("this URL was added before; its secret stays as it is"),
    }
    Ok(ExitAction::DONE)
}

/// The id of the one that begins so.
async fn find(approver: &Approver, prefix: &str) -> anyhow::Result<String> {
    let found = approver.notifications().await?.notifications;
    let mut found = found
        .into_iter()
        .filter(|line| line.notification_id.starts_with(prefix));
    match (found.next(), found.next()) {
        (Some(line), None) => Ok(line.notification_id),
        (None, _) => {
            let problem = "there is no such notification; see: countersign notifications";
            Err(ClientError::Choice(problem).into())
        }
        (Some(_), Some(_)) => Err(NOT_UNIQUE.into()),
    }
}

async fn remove(options: &ClientOptions, id: &str) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let id = find(&approver, id).await?;
    approver.remove_notification(&id).await?;
    let mut screen = TerminalScreen::new(options.json);
    screen.remark(&format!("removed {}", visible(&id)));
    if options.json {
        print_json(&json!({ "notificationId": id, "removed": true }))?;
    }
    Ok(ExitAction::DONE)
}

async fn test(options: &ClientOptions, id: &str) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let id = find(&approver, id).await?;
    let tested = approver.test_notification(&id).await?;
    if options.json {
        print_json(&json!({
            "notificationId": id, "delivered": tested.delivered, "status": tested.status, "failure": tested.failure,
        }))?;
    } else {
        let mut screen = TerminalScreen::new(false);
        screen.say(&match &tested.failure {
            _ if tested.delivered => "the test got through".to_owned(),
            Some(failure) => format!("the test did not get through: {}", visible(failure)),
            None => "the test did not get through".to_owned(),
        });
    }
    Ok(if tested.delivered {
        ExitAction::DONE
    } else {
        ExitAction::code(DENIED)
    })
}
