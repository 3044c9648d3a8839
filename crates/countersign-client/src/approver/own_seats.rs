//! The seats of this person in teams, after a device was added or revoked. A seat that is rewritten
//! counts for the devices that it names and no other, so a revocation ends also what a thief has added.

use std::fmt;

use super::role::Approver;
use crate::error::{ClientError, Result};
use crate::profile::TeamRecord;
use crate::visible::visible;
use countersign_e2e::{DeviceBundle, DeviceId, TeamChain, TeamSeat};
use countersign_protocol::id::ApproverId;

/// News of a team for a person whose devices have changed.
#[derive(Debug)]
pub enum SeatNotice {
    /// The teams that were joined on other devices could not be looked for.
    Unread(ClientError),
    /// No device that this one trusts has agreed to be in it.
    NotJoined {
        team: String,
    },
    NotAdded {
        team: String,
        problem: ClientError,
    },
    NotRevoked {
        team: String,
        problem: ClientError,
    },
    /// A seat needs a device.
    LastDevice {
        team: String,
    },
    Dropped {
        team: String,
        device: String,
    },
    StandInEnded {
        team: String,
        approver: ApproverId,
    },
    /// The revoked device decides in the place of this member.
    StandsIn {
        team: String,
        member: ApproverId,
    },
}

impl SeatNotice {
    /// Whether the device may still count somewhere.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Unread(_)
            | Self::NotJoined { .. }
            | Self::NotAdded { .. }
            | Self::NotRevoked { .. }
            | Self::LastDevice { .. }
            | Self::StandsIn { .. } => true,
            Self::Dropped { .. } | Self::StandInEnded { .. } => false,
        }
    }
}

impl fmt::Display for SeatNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(problem) => write!(
                f,
                "teams that you have joined on another device may still count the device: {problem}; repeat this on that device"
            ),
            Self::NotJoined { team } => write!(
                f,
                "the gateway says that you are in the team {}, which no device that this one trusts has joined; if another one of yours has, repeat this there; if one that you have revoked has, it still counts: ask an owner to remove you",
                visible(team)
            ),
            Self::NotAdded { team, problem } => write!(
                f,
                "the team {} does not count your new device yet: {problem}; once that is mended, run again: countersign devices add",
                visible(team)
            ),
            Self::NotRevoked { team, problem } => write!(
                f,
                "the team {} still counts the device: {problem}; ask an owner to remove and invite you again",
                visible(team)
            ),
            Self::LastDevice { team } => write!(
                f,
                "the team {} still counts the device, which is your last one there; ask an owner to remove you",
                visible(team)
            ),
            Self::Dropped { team, device } => write!(
                f,
                "your seat in the team {} also had {}, which this device does not know; it was taken off",
                visible(team),
                visible(device)
            ),
            Self::StandInEnded { team, approver } => write!(
                f,
                "{} does not stand in for you in the team {} any more, because the device could have named them",
                visible(approver.as_str()),
                visible(team)
            ),
            Self::StandsIn { team, member } => write!(
                f,
                "the device still stands in for {} in the team {}; ask them to end that: countersign team stand-in TEAM --end",
                visible(member.as_str()),
                visible(team)
            ),
        }
    }
}

impl Approver {
    /// Adds the devices in force to the own seat of each team. Devices that this one does not know
    /// stay: another one may have added them.
    pub async fn add_to_seats(&self) -> Result<Vec<SeatNotice>> {
        let mut notices = Vec::new();
        for record in self.teams()? {
            let team = shown_name(&record);
            if let Err(problem) = self.add_to_seat(&record).await
                && !problem.is_refusal(404)
            {
                notices.push(SeatNotice::NotAdded { team, problem });
            }
        }
        Ok(notices)
    }

    async fn add_to_seat(&self, record: &TeamRecord) -> Result<()> {
        let (chain, mut own) = (self.renew(record).await?, self.own_bundles()?);
        let Some(seat) = chain.content().seat(&self.id) else {
            return Ok(());
        };
        own.retain(|it| !seat.has_device(it.id()));
        let missing = own.len();
        own.retain(|it| !self.is_of_others(&chain, it.id()));
        let is_whole = own.len() == missing;
        let changed = self.change_team(&chain, |content| {
            if let Some(seat) = content.seat_mut(&self.id) {
                seat.devices.extend(own);
            }
            Ok(())
        });
        changed.await?;
        is_whole.then_some(()).ok_or(ClientError::Choice(
            "another member has put one of your devices on their seat; ask an owner to remove that member",
        ))
    }

    /// Whether another member has this device. A team has a device once: one that somebody else has put
    /// on their seat must not keep others from this person's.
    fn is_of_others(&self, chain: &TeamChain, device: DeviceId) -> bool {
        let mut seats = chain.content().seats.iter();
        seats.any(|it| it.approver != self.id && it.names_device(device))
    }

    /// Has the own seat of each team count for the devices in force and no other. A stand-in does not
    /// stand in any more: the revoked device could have named them. Nothing stops a revocation.
    pub(super) async fn clear_seats(&self, revoked: DeviceId, notices: &mut Vec<SeatNotice>) {
        let records = match self.teams() {
            Ok(records) => records,
            Err(problem) => return notices.push(SeatNotice::Unread(problem)),
        };
        for record in records {
            let mut cleared = self.clear_seat(&record, revoked).await;
            // Somebody else has changed the team at the same time.
            if let Err(ClientError::Choice(_)) = cleared {
                cleared = self.clear_seat(&record, revoked).await;
            }
            match cleared {
                Ok(told) => notices.extend(told),
                Err(problem) if problem.is_refusal(404) && !self.is_seated(&record) => {}
                Err(problem) => notices.push(SeatNotice::NotRevoked {
                    team: shown_name(&record),
                    problem,
                }),
            }
        }
    }

    /// Whether this person had a seat by what is known here.
    fn is_seated(&self, record: &TeamRecord) -> bool {
        let chain = record.chain();
        chain.is_ok_and(|chain| chain.content().seat(&self.id).is_some())
    }

    async fn clear_seat(&self, record: &TeamRecord, revoked: DeviceId) -> Result<Vec<SeatNotice>> {
        let chain = self.renew(record).await?;
        let (team, mut notices) = (chain.content().name.clone(), Vec::new());
        for seat in &chain.content().seats {
            let ends = seat.stand_in.as_ref().map(|it| it.until);
            let is_open = ends.is_some_and(|until| self.now() < until);
            if is_open && seat.has_stand_in_device(&self.id, revoked) {
                let (team, member) = (team.clone(), seat.approver.clone());
                notices.push(SeatNotice::StandsIn { team, member });
            }
        }
        let Some(seat) = chain.content().seat(&self.id) else {
            return Ok(notices);
        };
        let mut own = self.own_bundles()?;
        own.retain(|it| it.id() != revoked && !self.is_of_others(&chain, it.id()));
        let lost = self.lost_devices(seat, revoked, &own)?;
        let is_own = |device: &DeviceBundle| own.iter().any(|it| it.id() == device.id());
        if seat.devices.iter().all(is_own) && seat.stand_in.is_none() {
            return Ok(notices);
        }
        if own.is_empty() {
            self.end_stand_in(&chain).await?;
            notices.push(SeatNotice::LastDevice { team: team.clone() });
        } else {
            self.replace_devices(&chain, own).await?;
        }
        notices.extend(lost.into_iter().map(|device| SeatNotice::Dropped {
            team: team.clone(),
            device,
        }));
        let ended = seat.stand_in.as_ref().map(|it| it.approver.clone());
        notices.extend(ended.map(|approver| SeatNotice::StandInEnded { team, approver }));
        Ok(notices)
    }

    /// The devices on the seat that this one neither trusts nor knows to be revoked.
    fn lost_devices(
        &self,
        seat: &TeamSeat,
        revoked: DeviceId,
        own: &[DeviceBundle],
    ) -> Result<Vec<String>> {
        let trust = self.own_trust()?;
        let is_lost = |device: &&DeviceBundle| {
            let id = device.id();
            let is_known = id == revoked || trust.revoked().contains(&id);
            !is_known && own.iter().all(|it| it.id() != id)
        };
        let lost = seat.devices.iter().filter(is_lost);
        let shown = |it: &DeviceBundle| format!("{} ({})", it.name().as_str(), it.id());
        Ok(lost.map(shown).collect())
    }

    async fn replace_devices(&self, chain: &TeamChain, own: Vec<DeviceBundle>) -> Result<()> {
        let changed = self.change_team(chain, |content| {
            if let Some(seat) = content.seat_mut(&self.id) {
                let is_same = |device: &DeviceBundle| own.iter().any(|it| it.id() == device.id());
                seat.devices.retain(is_same);
                let missing = own.iter().filter(|it| !seat.has_device(it.id())).cloned();
                let missing: Vec<_> = missing.collect();
                seat.devices.extend(missing);
                seat.stand_in = None;
            }
            Ok(())
        });
        changed.await.map(drop)
    }
}

fn shown_name(record: &TeamRecord) -> String {
    record.name().unwrap_or_else(|| record.team_id.clone())
}
