//! `notifications`, `notifications add`, `notifications remove` and `notifications test`.

use clap::{Args, Subcommand};
use countersign::client::approver::{Approver, ListedNotification};
use countersign::client::{ClientError, visible};
use serde_json::{Value, json};

use super::input::{argument_or_input, open};
use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::short_id::{find_id, short_id};
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

pub const EXAMPLES: &str = "\
Examples:
  countersign notifications
  countersign notifications add https://hooks.example.com/countersign
  countersign notifications test 9c4d01a1
  countersign notifications remove 9c4d01a1";

#[derive(Args)]
pub struct NotificationsArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<NotificationsCommand>,
}

#[derive(Subcommand)]
enum NotificationsCommand {
    /// List where you are notified of requests.
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
        /// Its id, or a unique end or beginning of it.
        id: String,
    },
    /// Send a test now. Exit status: 0 if it arrived, 77 if not.
    Test {
        #[command(flatten)]
        options: ClientOptions,
        /// Its id, or a unique end or beginning of it.
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
    let lines = found.notifications.iter();
    let ids: Vec<_> = lines.map(|line| &line.notification_id).collect();
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
            visible(short_id(&line.notification_id, &ids)),
            paint(colour, paint_as, &visible(&line.state)),
            visible(&line.kind),
            visible(place.unwrap_or_default()),
            failure.unwrap_or_default(),
        ))?;
    }
    if !found.enabled {
        let reason = visible(found.reason.as_deref().unwrap_or("no reason given"));
        let mut screen = TerminalScreen::new(false);
        screen.say(&format!(
            "this gateway doesn't send notifications: {reason}"
        ));
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
            "Each call of the webhook is signed with this secret: {}\nStore it now: it isn't shown again.",
            visible(&secret)
        )),
        None => screen.say("this URL was already there; its secret is unchanged"),
    }
    Ok(ExitAction::DONE)
}

async fn find(approver: &Approver, part: &str) -> anyhow::Result<String> {
    let listed = approver.notifications().await?.notifications;
    let ids = listed.iter().map(|line| line.notification_id.as_str());
    let problem = "there is no such notification; see: countersign notifications";
    let found = find_id(part, ids)?.ok_or(ClientError::Choice(problem))?;
    Ok(found.to_owned())
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
            _ if tested.delivered => "the test arrived".to_owned(),
            Some(failure) => format!("the test did not arrive: {}", visible(failure)),
            None => "the test did not arrive".to_owned(),
        });
    }
    Ok(if tested.delivered {
        ExitAction::DONE
    } else {
        ExitAction::code(DENIED)
    })
}
