//! `team`: create a team, join one, and change its members.

use clap::{Args, Subcommand};
use countersign::client::approver::Approver;
use countersign::client::{ClientError, visible};
use countersign::e2e::{TeamChain, TeamContent, TeamLink, TeamMinimum, TeamSeat};
use countersign::protocol::id::ApproverId;
use serde_json::json;

use super::input::{argument_or_input, open, says_yes};
use super::team_options::{
    MinimumArgs, StandInArgs, approver_id, changed_minimum, moment, set_question,
};
use super::team_text::{lines, shown_devices, team_json};
use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line, remark};
use crate::commands::terminal::TerminalScreen;

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
    /// Remove a member, who needs a new invitation to come back.
    Remove {
        team: String,
        #[arg(value_parser = approver_id)]
        id: ApproverId,
        /// Don't ask first.
        #[arg(long)]
        yes: bool,
    },
    /// Change the least that rules with the team demand, or make a member an owner.
    Set {
        team: String,
        #[command(flatten)]
        minimum: MinimumArgs,
        /// Make a member an owner. It ends only if they leave or are removed.
        #[arg(long, value_name = "ID", value_parser = approver_id)]
        owner: Option<ApproverId>,
        /// Don't ask first.
        #[arg(long)]
        yes: bool,
    },
    /// Name somebody who decides on your seat for a time, or end that.
    StandIn(StandInArgs),
    /// Leave a team. The last owner cannot.
    Leave {
        team: String,
        /// Don't ask first.
        #[arg(long)]
        yes: bool,
    },
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
        TeamCommand::Join { link, yes } => {
            return join(&approver, &mut screen, link, *yes, options).await;
        }
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
        TeamCommand::Add { team, yes } => {
            add(&approver, &mut screen, team, *yes).await?;
            approver.team(team).await?
        }
        TeamCommand::Remove { team, id, yes } => match remove(&approver, team, id, *yes).await? {
            Some(chain) => chain,
            None => return Ok(ExitAction::code(DENIED)),
        },
        TeamCommand::Set {
            team,
            minimum,
            owner,
            yes,
        } => {
            let question = |before: &TeamContent, after: &TeamContent| {
                let changes = changed_minimum(&before.minimum, &after.minimum);
                set_question(team, &changes, owner.as_ref())
            };
            let question = (!*yes).then_some(question);
            let changed = changed(&approver, team, question, |content| {
                minimum.change(&mut content.minimum);
                if let Some(id) = owner {
                    seat_in(content, id)?.owner = true;
                }
                Ok(())
            });
            match changed.await? {
                Some(chain) => chain,
                None => return Ok(ExitAction::code(DENIED)),
            }
        }
        TeamCommand::StandIn(args) => match stand_in(&approver, args).await? {
            Some(chain) => chain,
            None => return Ok(ExitAction::code(DENIED)),
        },
        TeamCommand::Leave { team, yes } => {
            let shown = visible(team);
            let question = format!(
                "Leave {shown}? Only a new invitation brings you back, and the members forget agents that only you have introduced."
            );
            if !*yes && !says_yes(&question).await? {
                return Ok(ExitAction::code(DENIED));
            }
            approver.leave_team(team).await?;
            screen.remark(&format!("you are not in {shown} any more"));
            if options.json {
                print_json(&json!({ "team": team, "isMember": false }))?;
            }
            return Ok(ExitAction::DONE);
        }
    };
    show(&chain, options)?;
    Ok(ExitAction::DONE)
}

/// A change that changes nothing is a mistake: of an id, or of the options. None if the person does
/// not want it after all.
async fn changed(
    approver: &Approver,
    team: &str,
    question: Option<impl Fn(&TeamContent, &TeamContent) -> String>,
    change: impl FnOnce(&mut TeamContent) -> Result<(), ClientError>,
) -> anyhow::Result<Option<TeamChain>> {
    let chain = approver.team(team).await?;
    let mut next = chain.content().clone();
    change(&mut next)?;
    if next == *chain.content() {
        let problem = "that changes nothing in the team; see: countersign team show";
        return Err(ClientError::Choice(problem).into());
    }
    if let Some(question) = question
        && !says_yes(&question(chain.content(), &next)).await?
    {
        return Ok(None);
    }
    let published = approver.change_team(&chain, |content| {
        *content = next;
        Ok(())
    });
    published.await?;
    Ok(Some(approver.known_team(chain.head().team)?))
}

/// Removes a member. Agents that only this owner has introduced stay known to the others if the person
/// vouches for them.
async fn remove(
    approver: &Approver,
    team: &str,
    id: &ApproverId,
    yes: bool,
) -> anyhow::Result<Option<TeamChain>> {
    let shown = visible(id.as_str());
    let question = |_: &TeamContent, _: &TeamContent| {
        format!(
            "Remove {shown} from {}? Approvals of {shown} stop counting at once, and only a new invitation brings {shown} back.",
            visible(team)
        )
    };
    let before = approver.team(team).await?;
    // Without them, the agents are forgotten and can be paired again.
    let resting = approver.resting_on(&before, id).await.unwrap_or_default();
    let question = (!yes).then_some(question);
    let changed = changed(approver, team, question, |content| {
        seat_in(content, id)?;
        content.seats.retain(|seat| seat.approver != *id);
        Ok(())
    });
    let Some(chain) = changed.await? else {
        return Ok(None);
    };
    for record in resting {
        let agent = visible(&record.id);
        let question =
            format!("Only {shown} has introduced the agent {agent}. Do you vouch for it?");
        if !yes && says_yes(&question).await? {
            approver.vouch(&chain, &record).await?;
        } else {
            remark(&format!(
                "the members forget the agent {agent}, which only {shown} has introduced; to go on with it, pair it with the team again"
            ));
        }
    }
    Ok(Some(chain))
}

fn seat_in<'c>(
    content: &'c mut TeamContent,
    id: &ApproverId,
) -> Result<&'c mut TeamSeat, ClientError> {
    let problem = "the team has no member with this id; see: countersign team show";
    content.seat_mut(id).ok_or(ClientError::Choice(problem))
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
    let question = format!("Let {shown} on {devices} decide for you from {from} until {until}?");
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
    options: &ClientOptions,
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
    if options.json {
        print_json(&team_json(&chain))?;
    }
    Ok(ExitAction::DONE)
}

async fn add(
    approver: &Approver,
    screen: &mut TerminalScreen,
    team: &str,
    yes: bool,
) -> anyhow::Result<()> {
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
    Ok(())
}
