//! `team`: create a team, join one, and change its members.

use clap::{Args, Subcommand, ValueEnum};
use countersign::client::approver::Approver;
use countersign::client::{ClientError, visible};
use countersign::e2e::{CommentDuty, TeamChain, TeamContent, TeamLink, TeamMinimum};
use countersign::protocol::id::{ApproverId, TextId as _};
use countersign::protocol::timestamp::Timestamp;
use serde_json::json;

use super::input::{argument_or_input, open, says_yes};
use super::team_text::{lines, shown_devices, team_json};
use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::terminal::{TerminalScreen, parse_duration};

pub const EXAMPLES: &str = "\
Examples:
  countersign team create payments --approvals 2
  countersign team invite payments --id bob      prints a link for Bob
  countersign team join 'https://gateway.example.org/#/team/…'
  countersign team add payments                  admits those who have answered
  countersign team show payments
  countersign team remove payments bob
  countersign team stand-in payments --to carol --until 14d
  countersign pair LINK --team payments";

#[derive(Args)]
pub struct TeamArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Subcommand)]
enum TeamCommand {
    /// Create a team, with you as its owner.
    Create {
        name: String,
        #[command(flatten)]
        minimum: MinimumArgs,
    },
    /// List the teams that this device takes part in.
    List,
    /// Show a team's members and their devices.
    Show { team: String },
    /// Invite an approver: prints a link that works once, for 7 days.
    Invite {
        team: String,
        /// The id of the approver.
        #[arg(long, value_name = "ID", value_parser = approver_id)]
        id: ApproverId,
    },
    /// Answer an invitation.
    Join {
        /// The link, or - to read it from standard input.
        link: String,
        #[arg(long)]
        yes: bool,
    },
    /// Admit invited people who have answered.
    Add {
        team: String,
        #[arg(long)]
        yes: bool,
    },
    /// Remove a member.
    Remove {
        team: String,
        #[arg(value_parser = approver_id)]
        id: ApproverId,
    },
    /// Change the least that rules with the team demand, or make a member an owner.
    Set {
        team: String,
        #[command(flatten)]
        minimum: MinimumArgs,
        /// Make a member an owner.
        #[arg(long, value_name = "ID", value_parser = approver_id)]
        owner: Option<ApproverId>,
    },
    /// Name somebody who decides on your seat for a time, or end that.
    StandIn(StandInArgs),
    /// Leave a team. An owner is removed by another owner.
    Leave { team: String },
}

/// The least that rules with the team demand.
#[derive(Args)]
struct MinimumArgs {
    /// So many members must approve.
    #[arg(long, value_name = "N")]
    approvals: Option<u32>,
    /// So many rejections end it, or fewer.
    #[arg(long, value_name = "N")]
    rejections: Option<u32>,
    /// The decisions that need a comment.
    #[arg(long, value_name = "WHEN", value_parser = comment_duty)]
    comment: Option<CommentDuty>,
    /// Whether the people who work with the agent may not approve.
    #[arg(long, value_name = "YES|NO")]
    separate: Option<YesNo>,
}

#[derive(Args)]
struct StandInArgs {
    team: String,
    /// An approver who has answered your invitation: `team invite`, `team join`.
    #[arg(long, value_name = "ID", value_parser = approver_id, required_unless_present = "end")]
    to: Option<ApproverId>,
    /// A time such as 2026-12-24T18:00:00Z, or a duration from now such as 2d. Otherwise, at once.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// The same, at most 30 days later.
    #[arg(long, value_name = "TIME", required_unless_present = "end")]
    until: Option<String>,
    /// Nobody stands in any more.
    #[arg(long, conflicts_with_all = ["to", "from", "until"])]
    end: bool,
    #[arg(long)]
    yes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

impl MinimumArgs {
    fn change(&self, minimum: &mut TeamMinimum) {
        minimum.approvals = self.approvals.unwrap_or(minimum.approvals);
        minimum.rejections = self.rejections.unwrap_or(minimum.rejections);
        minimum.comment = self.comment.unwrap_or(minimum.comment);
        minimum.separate = self
            .separate
            .map_or(minimum.separate, |it| it == YesNo::Yes);
    }
}

fn approver_id(text: &str) -> Result<ApproverId, &'static str> {
    ApproverId::parse(text).ok_or("expected the id of an approver")
}

fn comment_duty(text: &str) -> Result<CommentDuty, &'static str> {
    CommentDuty::parse(text).ok_or("expected none, reject, approve or always")
}

pub async fn run(args: TeamArgs) -> anyhow::Result<ExitAction> {
    let (options, approver) = (&args.options, open(&args.options)?);
    let mut screen = TerminalScreen::new(options.json);
    let chain = match &args.command {
        TeamCommand::Create { name, minimum } => {
            let mut least = TeamMinimum::default();
            minimum.change(&mut least);
            let head = approver.create_team(TeamContent {
                name: name.clone(),
                changes: 1,
                minimum: least,
                stand_ins: true,
                seats: Vec::new(),
            });
            let id = head.await?.team.to_string();
            screen.remark(&format!("created {} ({id})", visible(name)));
            approver.team(&id).await?
        }
        TeamCommand::List => return list(&approver, options),
        TeamCommand::Join { link, yes } => return join(&approver, &mut screen, link, *yes).await,
        TeamCommand::Show { team } => approver.team(team).await?,
        TeamCommand::Invite { team, id } => {
            let chain = approver.team(team).await?;
            let link = approver
                .invite_to_team(&chain, id, &approver.page())
                .await?;
            if options.json {
                print_json(&json!({ "link": *link }))?;
            } else {
                print_line(&link)?;
            }
            return Ok(ExitAction::DONE);
        }
        TeamCommand::Add { team, yes } => return add(&approver, &mut screen, team, *yes).await,
        TeamCommand::Remove { team, id } => {
            changed(&approver, team, |content| {
                content.seats.retain(|seat| seat.approver != *id);
            })
            .await?
        }
        TeamCommand::Set {
            team,
            minimum,
            owner,
        } => {
            changed(&approver, team, |content| {
                minimum.change(&mut content.minimum);
                if let Some(seat) = owner.as_ref().and_then(|id| content.seat_mut(id)) {
                    seat.owner = true;
                }
            })
            .await?
        }
        TeamCommand::StandIn(args) => match stand_in(&approver, args).await? {
            Some(chain) => chain,
            None => return Ok(ExitAction::code(DENIED)),
        },
        TeamCommand::Leave { team } => {
            approver.leave_team(&approver.team(team).await?).await?;
            screen.remark("you have left the team");
            return Ok(ExitAction::DONE);
        }
    };
    show(&chain, options)?;
    Ok(ExitAction::DONE)
}

/// A change that changes nothing is a mistake: of an id, or of the options.
async fn changed(
    approver: &Approver,
    team: &str,
    change: impl FnOnce(&mut TeamContent),
) -> anyhow::Result<TeamChain> {
    let chain = approver.team(team).await?;
    let published = approver.change_team(&chain, |content| {
        change(content);
        if content == chain.content() {
            return Err(ClientError::Choice(
                "that changes nothing in the team; see: countersign team show",
            ));
        }
        Ok(())
    });
    published.await?;
    Ok(approver.known_team(chain.head().team)?)
}

/// A time, or a duration from now.
fn moment(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let problem = "expected a time such as 2026-12-24T18:00:00Z, or a duration such as 14d";
    let after = parse_duration(text).map_err(|_| ClientError::Choice(problem))?;
    Ok(Timestamp::from(now.inner() + after))
}

async fn stand_in(approver: &Approver, args: &StandInArgs) -> anyhow::Result<Option<TeamChain>> {
    let chain = approver.team(&args.team).await?;
    let (Some(to), Some(until)) = (&args.to, &args.until) else {
        approver.end_stand_in(&chain).await?;
        return Ok(Some(approver.known_team(chain.head().team)?));
    };
    let now = approver.now();
    let from = args.from.as_deref().map(|from| moment(from, now));
    let (from, until) = (from.transpose()?.unwrap_or(now), moment(until, now)?);
    let mut answers = approver.team_answers(&chain).await?.into_iter();
    let answer = answers.find(|answer| answer.consent.approver() == to);
    let problem = "this approver has not answered an invitation that this device has made: countersign team invite";
    let answer = answer.ok_or(ClientError::Choice(problem))?;
    let (shown, devices) = (
        visible(to.as_str()),
        shown_devices(answer.consent.devices()),
    );
    let question = format!("Let {shown} on {devices} decide for you until {until}?");
    if !args.yes && !says_yes(&question).await? {
        return Ok(None);
    }
    approver.name_stand_in(&chain, &answer, from, until).await?;
    Ok(Some(approver.known_team(chain.head().team)?))
}

fn show(chain: &TeamChain, options: &ClientOptions) -> anyhow::Result<()> {
    if options.json {
        return print_json(&team_json(chain));
    }
    lines(chain).iter().try_for_each(|line| print_line(line))
}

fn list(approver: &Approver, options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let mut listed = Vec::new();
    for record in approver.teams()? {
        match record.chain() {
            Ok(chain) if options.json => listed.push(team_json(&chain)),
            Ok(chain) => lines(&chain).iter().try_for_each(|line| print_line(line))?,
            Err(error) if options.json => {
                listed.push(json!({ "teamId": record.team_id, "problem": error.to_string() }));
            }
            Err(error) => print_line(&format!("{}  {error}", record.team_id))?,
        }
    }
    if options.json {
        print_json(&listed)?;
    }
    Ok(ExitAction::DONE)
}

async fn join(
    approver: &Approver,
    screen: &mut TerminalScreen,
    link: &str,
    yes: bool,
) -> anyhow::Result<ExitAction> {
    let link = TeamLink::parse(&argument_or_input(link)?)?;
    let chain = approver.invited_team(&link).await?;
    if !yes {
        screen.say(&lines(&chain).join("\n"));
        if !says_yes("Do you want to take part in this team?").await? {
            return Ok(ExitAction::code(DENIED));
        }
    }
    approver.join_team(&link, &chain).await?;
    let name = visible(&chain.content().name);
    screen.remark(&format!(
        "answered; you take part in {name} once the person who invited you has admitted you"
    ));
    Ok(ExitAction::DONE)
}

async fn add(
    approver: &Approver,
    screen: &mut TerminalScreen,
    team: &str,
    yes: bool,
) -> anyhow::Result<ExitAction> {
    let mut chain = approver.team(team).await?;
    let answers = approver.team_answers(&chain).await?;
    if answers.is_empty() {
        screen.say("nobody has answered an invitation that this device has made");
    }
    for answer in answers {
        let consent = &answer.consent;
        let (id, devices) = (consent.approver(), shown_devices(consent.devices()));
        let id = visible(id.as_str());
        if !yes && !says_yes(&format!("Admit {id} on {devices}?")).await? {
            continue;
        }
        approver.admit(&chain, &answer).await?;
        chain = approver.known_team(chain.head().team)?;
        screen.remark(&format!("{id} is a member"));
    }
    Ok(ExitAction::DONE)
}
