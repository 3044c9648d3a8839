// The types that views see. Their comments say what comes from the gateway, and what this device
// has verified.

/** @typedef {import('./problem.js').Problem} Problem */

/** @typedef {{ [name: string]: JsonValue }} JsonObject */
/** @typedef {null | boolean | number | string | JsonObject | { [index: number]: JsonValue, length: number }} JsonValue */

/** @typedef {'approve' | 'reject'} Verdict */
/** @typedef {'once' | 'timebox' | 'session'} Scope */

/**
 * Permission of an approval beyond its request: the same tool with the same input; plain commands
 * that begin with these words; those whose words fit, where null is any word that is no option; or,
 * for a session, edits of the same files, or of files in the same project.
 * @typedef {{ match: 'same' } | { match: 'prefix', argv: string[] }
 *   | { match: 'words', argv: (string | null)[], more?: true }
 *   | { match: 'file' } | { match: 'project' }} Grant
 */

/**
 * Somebody who has agreed to stand in, with the own devices.
 * @typedef {Pick<TeamStandIn, 'approverId' | 'devices'>} Candidate
 */

/**
 * An invitation to stand in. `consent` waits for the yes, and gives null if `signal` ended it before.
 * @typedef {{ link: string, consent: (signal: AbortSignal) => Promise<Candidate | null> }} StandInOffer
 */

/**
 * A team that this device takes part in.
 * @typedef {object} ListedTeam
 * @property {TeamState} team its newest state that is known here
 * @property {boolean} isForked two states contradict each other, so nothing of it counts
 * @property {boolean} isGone the gateway does not show it to this person any more
 * @property {boolean} isOnSeat this device is on the seat of its person
 * @property {import('./keys.js').DeviceBundle[]} missing devices of this person that are not on the seat
 * @property {import('./keys.js').DeviceBundle[]} revoked devices that are still on it
 */

/**
 * A team through which an agent asks this person.
 * @typedef {object} PairedTeam
 * @property {string} teamId
 * @property {string} name
 * @property {boolean} endsForAll the end of the pairing here ends it for all members
 */

/**
 * An invitation to a team, verified. Nothing is signed before `accept`.
 * @typedef {{ team: TeamState, accept: () => Promise<void> }} TeamInvitation
 */

/**
 * One of the actions that an enforcer offers in an artifact. Its caption is the enforcer's word;
 * what is signed is the verdict.
 * @typedef {object} RequestedAction
 * @property {string} id
 * @property {string} caption
 * @property {Verdict} verdict
 */

/**
 * A state of a team, as somebody knows it.
 * @typedef {{ teamId: string, seq: number, digest: string }} TeamHead
 */

/**
 * People by their ids; or those of a team, and then `from` is empty.
 * @typedef {{ from: string[], team: TeamHead | null }} AskedPeople
 */

/**
 * An ask of a rule: so many different people of these approve. Those of `escalate` are asked too,
 * after so many seconds.
 * @typedef {AskedPeople & { approvals: number, escalate: (AskedPeople & { after: number })[] }} ApprovalAsk
 */

/**
 * A person's place in a team. It counts once, whoever decides on it.
 * @typedef {object} TeamSeat
 * @property {string} approverId
 * @property {boolean} isOwner
 * @property {import('./keys.js').DeviceBundle[]} devices
 * @property {TeamStandIn | null} standIn
 */

/**
 * Somebody who decides on a seat for a time.
 * @typedef {{ approverId: string, devices: import('./keys.js').DeviceBundle[], from: string, until: string }} TeamStandIn
 */

/**
 * One state of a team: all of it, with signatures that say nothing before the chain was followed.
 * @typedef {object} TeamState
 * @property {string} tenantId
 * @property {string} teamId
 * @property {number} seq
 * @property {string | null} prev the digest of the state before
 * @property {string} at
 * @property {string} name
 * @property {number} changes as many owners sign a change
 * @property {{ approvals: number, rejections: number, comment: ApprovalRule['comment'], separate: boolean }} minimum of a rule
 * @property {boolean} standIns whether members name stand-ins
 * @property {TeamSeat[]} seats
 * @property {string} digest
 * @property {string} text what the signatures cover
 * @property {{ by: string, signature: Bytes }[]} signatures
 * @property {string} raw the signed state, as it came
 */

/**
 * The demand of an enforcer before it allows a request: every ask is satisfied, and fewer than
 * `rejections` people reject.
 * @typedef {object} ApprovalRule
 * @property {string} enforcerId
 * @property {string} set the requests by which one call is asked about
 * @property {string | null} seat whose decision this request asks for; null: of any of the people
 * @property {ApprovalAsk[]} asks
 * @property {number} rejections
 * @property {'none' | 'reject' | 'approve' | 'always'} comment the decisions that need one
 * @property {string[]} notBy people whose approval does not count
 */

/**
 * An artifact that a paired enforcer sealed for this device, and that agrees with everything said
 * about it in plain.
 * @typedef {object} Artifact
 * @property {string} text the canonical JSON, all of it
 * @property {string} requestId
 * @property {string} artifactType `plan.review`, `task.review`, `patch.review`, `command.review` or
 *   `checkpoint.review`
 * @property {string} hash
 * @property {string} repoRef as decisions repeat it, in plain
 * @property {string} repository where the agent works: the text behind `repoRef`, or that itself if
 *   it hides none
 * @property {string} createdAt
 * @property {string} expiresAt
 * @property {string | null} sessionId
 * @property {string | null} baseRevision
 * @property {Map<string, string[]>} devices those that the enforcer obeys, by approver
 * @property {Bytes | null} outcomeKey with which the enforcer signs what it does
 * @property {ApprovalRule | 'unknown' | null} rule `unknown`: of a version that this page does not know
 * @property {JsonObject} payload
 * @property {JsonObject} rest the other members that a person has to see: `metadata` and
 *   `extensions`, without what is random
 * @property {RequestedAction[]} actions empty if the artifact offers none
 * @property {boolean} hasOddActions it offers some that cannot be shown, so they are left out
 */

/**
 * `opened: false` can be rejected, never approved.
 * @typedef {{ opened: true, artifact: Artifact } | { opened: false, problem: Problem }} Content
 */

/**
 * `deciding`: signed and sent, no answer yet. `decided`: the gateway has accepted a decision.
 * `delivered`: the enforcer has confirmed it. The last three came to nothing.
 * @typedef {'pending' | 'deciding' | 'decided' | 'delivered' | 'expired' | 'withdrawn' | 'cancelled'} ItemState
 */

/**
 * @typedef {object} ItemDecision
 * @property {Verdict} verdict
 * @property {Scope} scope
 * @property {string} expiresAt until when it counts
 * @property {string} deviceId the device that signed it
 * @property {boolean} isOwn signed by this device, and verified
 * @property {boolean} isVerified signed by a device that this one trusts; otherwise only the
 *   gateway says so
 * @property {string | null} reason known only of this device's own decisions
 * @property {string | null} actionId known only of this device's own decisions
 * @property {Grant | null} grant known only of this device's own decisions
 * @property {DecisionOutcome | null} outcome null: nobody but the gateway says anything
 */

/**
 * The outcome, as the agent's machine says: `allowed`, or why it denied. `forged`: the gateway
 * serves an outcome that that machine has not signed about this decision.
 * @typedef {'allowed' | 'rejected' | 'missing' | 'untrusted' | 'interrupted' | 'changed' | 'forged'} DecisionOutcome
 */

/**
 * A device that the enforcer obeys as one of this person's, and that this device does not know to
 * be in force.
 * @typedef {{ deviceId: string, isRevoked: boolean }} StrangeDevice
 */

/**
 * A request. Everything but `content` is what the gateway says, and was compared with the content
 * if that opened. An item is never changed: a new one takes its place, so views may compare by
 * identity.
 * @typedef {object} Item
 * @property {string} requestId
 * @property {string} msgId
 * @property {ItemState} state
 * @property {string | null} enforcerId
 * @property {string | null} label of a paired enforcer: as this device stored it; otherwise as the
 *   gateway says
 * @property {boolean} isPaired
 * @property {string | null} artifactType
 * @property {string | null} artifactHash null: the request is so malformed that it cannot even be
 *   rejected
 * @property {string} repoRef as the gateway says; empty for what came encrypted. Show that of the
 *   artifact
 * @property {string | null} expiresAt
 * @property {string | null} receivedAt when the gateway accepted it, as it says
 * @property {Content} content
 * @property {StrangeDevice[]} strangers
 * @property {Problem | null} approvalProblem why the rule of what opened does not let this person approve
 * @property {Record<string, string>} [teamNames] of the teams in its rule that this device takes part in
 * @property {ItemDecision | null} decision
 * @property {string | null} withdrawalReason as the gateway says
 * @property {ItemState} [gatewaySays] the gateway contradicts the decision, which this device has
 *   verified
 * @property {boolean} [isUnkept] it was decided, but this browser could not keep a record
 */

/**
 * `live`: over a WebSocket. `polling`: by asking again and again, since no WebSocket can be opened.
 * `offline`: the gateway cannot be reached, and what is shown may be out of date. `refused`: the
 * gateway does not accept this device's credential any more.
 * @typedef {'connecting' | 'live' | 'polling' | 'offline' | 'refused'} Connection
 */

/**
 * @typedef {object} Inbox
 * @property {boolean} isLoaded false until the inbox has been read once
 * @property {Connection} connection
 * @property {Problem | null} problem why it is not live
 * @property {Item[]} items what waits, oldest first; also those in state `deciding`
 * @property {Item[]} finished what ended while the page was open, newest first, at most 50
 * @property {boolean} hasMore more waits than is held here; it comes as items are decided
 */

/**
 * A person's choice. `scope`, if not `once`, needs `grant` and `lastsSeconds` (at most 86400).
 * @typedef {object} Choice
 * @property {Verdict} verdict
 * @property {Scope} [scope] default `once`
 * @property {number} [lastsSeconds]
 * @property {Grant} [grant]
 * @property {string} [reason] at most 4,000 characters; encrypted to the enforcer
 * @property {string} [actionId] one of the artifact's actions
 * @property {string[][]} [answers] for each question of the artifact, the texts that were chosen or written
 */

/**
 * A device's standing on this one. `own`: this one, in force. `trusted`: in force, by statements
 * that lead from this device to it. `unverified`: in force as the gateway says; no device that this
 * one trusts has added it. `revoked`. `ended`: it ended, as the gateway says; no statement shows
 * it.
 * @typedef {'own' | 'trusted' | 'unverified' | 'revoked' | 'ended'} DeviceStanding
 */

/**
 * @typedef {object} Device
 * @property {string} deviceId
 * @property {string} name that it joined with, which is signed
 * @property {string | null} nickname what this device calls it
 * @property {DeviceStanding} standing
 * @property {boolean} isInForce
 * @property {string | null} addedAt as the gateway says
 * @property {string | null} addedBy as the gateway says
 * @property {string | null} revokedAt as the gateway says
 */

/**
 * How far this device has come. `waiting`: a person opens `link` on a device in force, which must
 * show `name` and `deviceId`. The link counts until `validUntil`; `enrol` makes another.
 * `confirming`: the device whose link was opened must show `name` and `digits`.
 * @typedef {{ state: 'inForce' }
 *   | { state: 'waiting', link: string, name: string, deviceId: string, validUntil: string }
 *   | { state: 'confirming', name: string, digits: string, validUntil: string }} Enrolment
 */

/**
 * A new device that asks this one to be added, as its link says. The person compares name and id
 * with its screen.
 * @typedef {object} NewDevice
 * @property {string} deviceId
 * @property {string} name
 * @property {string} at
 * @property {string} link
 * @property {string} [digits] to compare instead of the id, if it came by a link of this device
 */

/**
 * A link that a new device opens. `device` waits for it, and gives null if none came.
 * @typedef {object} DeviceOffer
 * @property {string} link
 * @property {string} expiresAt
 * @property {(signal: AbortSignal) => Promise<NewDevice | null>} device
 * @property {() => Promise<void>} decline the person does not recognise the device that came: the
 *   gateway revokes its credential
 */

/**
 * This device's knowledge of an enforcer that offers its key. `new`: nothing. `known`: the same
 * key. `otherKey`: another key, which pairing would replace.
 * @typedef {'new' | 'known' | 'otherKey'} OfferStanding
 */

/**
 * The enforcer that a pairing link authenticates.
 * @typedef {object} PairingOffer
 * @property {string} enforcerId
 * @property {string | null} label as its machine says, under the link's fingerprint
 * @property {OfferStanding} standing
 * @property {TeamState[]} teams that can be paired instead of this person alone
 * @property {(replaces: boolean, operators: string[] | null, team: TeamState | null) => Promise<Agent>} accept
 *   pairs with it; `replaces`: a person has agreed to replace another key; `operators`: who works
 *   with it, null if the person did not say
 */

/**
 * A pairing by typed code. Nothing is pinned before `confirm`, which a person causes after
 * comparing the digits.
 * @typedef {object} Comparing
 * @property {string} digits three groups of five
 * @property {string} enforcerId who it claims to be
 * @property {string | null} label what it claims to be called
 * @property {OfferStanding} standing
 * @property {(replaces: boolean) => Promise<Agent>} confirm both screens show the same; `replaces`
 *   as above
 * @property {() => Promise<void>} abort they differ, or the person gives up
 */

/**
 * @typedef {object} Presence as the gateway says
 * @property {'online' | 'offline'} status
 * @property {string} lastSeenAt
 * @property {'websocket' | 'sse' | 'poll'} transport
 * @property {string | null} workspaceName
 */

/**
 * The device of this approver, or of an owner of a team, that vouches for an enforcer's key. After a
 * theft, look for those that are not known.
 * @typedef {object} Introducer
 * @property {string} deviceId
 * @property {string | null} name of the device or the owner; null if it is not in force any more
 * @property {boolean} isRevoked
 */

/**
 * An enforcer that this device has pinned.
 * @typedef {object} Agent
 * @property {string} enforcerId
 * @property {string | null} label as it was at pairing
 * @property {string} pairedAt
 * @property {Introducer | null} introducedBy null if this device was paired with it itself
 * @property {Presence | null} presence null if unknown
 */

/**
 * @typedef {object} Session what an agent reports about itself, as the gateway says
 * @property {string} sessionId
 * @property {string} enforcerId
 * @property {string} state
 * @property {string | null} agentHost
 * @property {string | null} repoRef
 * @property {string | null} startedAt
 * @property {string} updatedAt its newest report, or its newest request that this device has opened
 * @property {string | null} endedAt
 * @property {string | null} reason
 * @property {{ snapshotId: string, snapshotType: string, createdAt: string }[]} snapshots newest 20
 */

/**
 * @typedef {object} SentPrompt
 * @property {string} requestId
 * @property {string} enforcerId
 * @property {'queued' | 'delivered' | 'rejected' | 'error' | 'expired'} status
 * @property {string | null} reason why it was rejected, as the gateway says
 * @property {string | null} receipt proves that the enforcer has read it, if it is the right one
 */

/**
 * An order to an enforcer, as it was sent.
 * @typedef {SentPrompt & { expects: string }} SentOrder `expects`: the receipt of that enforcer alone
 */

/**
 * A permission that was given on this device and has not ended by itself.
 * @typedef {object} GivenGrant
 * @property {string} requestId
 * @property {string} enforcerId
 * @property {Artifact | null} artifact
 * @property {ItemDecision} decision
 * @property {{ at: string, isConfirmed: boolean } | null} ended whether it was ended, and the
 *   enforcer says so itself
 */

/**
 * Uses of a permission, as the enforcer reports and the gateway says.
 * @typedef {object} GrantUses
 * @property {number} count
 * @property {string[]} times the newest first, at most 20
 */

/**
 * A decision about a request of this approver, kept on this device.
 * @typedef {object} HistoryEntry
 * @property {string} requestId
 * @property {string} enforcerId
 * @property {string | null} label
 * @property {string} artifactType
 * @property {string} decidedAt when this device decided it, or learned of it
 * @property {'decided' | 'delivered'} state
 * @property {ItemDecision} decision
 * @property {Artifact | null} artifact null if it never opened; then there is nothing to save
 */

/**
 * This approver and device.
 * @typedef {object} Identity
 * @property {string} tenantId
 * @property {string} approverId
 * @property {string} deviceId
 * @property {string} deviceName
 * @property {string} joinedAt
 */

/**
 * @typedef {{ role: 'approver', approver: import('./approver.js').Approver }
 *   | { role: 'enforcer' | 'admin', boundId: string | null, apiKey: string }} Joined an invitation works once, for any role:
 *   a credential that is no approver's is shown, and kept nowhere
 */

/**
 * A value that changes. `subscribe` calls at once, then after each change, and returns what ends
 * it.
 * @template T
 * @typedef {object} Live
 * @property {T} value
 * @property {(listener: (value: T) => void) => () => void} subscribe
 */

/**
 * The kind of a malformed thing.
 * @typedef {'artifact' | 'ciphertext' | 'deviceBundle' | 'deviceId' | 'enforcerBundle' | 'signature' | 'statement'
 *   | 'endorsement' | 'decision' | 'introduction' | 'answer' | 'key' | 'random' | 'record' | 'outcome' | 'rule' | 'team'} Thing
 */

/**
 * Why this device cannot be notified: the browser lacks push; notifications of this page are
 * denied; the question was closed; the page came over plain http; iOS wants it on the home screen;
 * the gateway sends none; the push service does not answer; a test failed.
 * @typedef {'unsupported' | 'denied' | 'dismissed' | 'insecure' | 'homeScreen' | 'gateway' | 'service' | 'failed'} NotificationHindrance
 */

/**
 * Whether this device is notified.
 * @typedef {{ state: 'off' }
 *   | { state: 'on', notificationId: string, failure: string | null }
 *   | { state: 'hindered', hindrance: NotificationHindrance, reason: string }} Notifications
 */

/**
 * Every code with its values, and the words that the terminal client uses for it.
 *
 * @typedef {object} Problems
 * @property {{}} browser this browser lacks what is needed (Ed25519 and X25519 in WebCrypto, IndexedDB); update it
 * @property {{ cause: string }} storage the browser cannot keep keys here (a private window, a full disk)
 * @property {{ cause: string }} unreachable the gateway cannot be reached
 * @property {{}} slow the gateway gave no answer in time
 * @property {{ status: number, code: string, message: string }} refused the gateway refused this: …
 * @property {{ expected: string }} answer the gateway's answer is not what was expected: …
 * @property {{}} credential the gateway does not accept this device's credential any more; join again with a new invitation
 *
 * @property {{ hindrance: NotificationHindrance, cause?: string, reason?: string }} notNotified this device cannot be notified
 *
 * @property {{}} alreadyJoined this browser already has keys of an approver; log out first, which gives them up
 * @property {{}} invitation this is no invitation; copy all of the link that your administrator sent
 * @property {{}} noSuchInvitation the gateway does not know this invitation: it was used, has expired or was withdrawn
 * @property {{}} deviceName a device's name should have 1 to 64 characters, none of them invisible
 *
 * @property {{}} noSignIn this gateway offers no sign-in; ask for an invitation
 * @property {{}} signInUnknown this sign-in was not begun in this tab, or was used already; sign in again
 * @property {{}} signInIssuer the answer is from another provider than was asked; sign in again, and tell your administrator if it repeats
 * @property {{ error: string, description: string }} signInDenied the provider refused to sign in: …
 * @property {{}} signInEnded the sign-in has ended; sign in again
 * @property {{}} signInRefused the gateway does not accept the token of the sign-in; its audience or a claim may be missing
 * @property {{}} notAnApprover the token of the sign-in is no approver's: its role or id is missing or another
 * @property {{ approverId: string, expected: string }} otherPerson signed in as …, but the keys of this browser are those of …
 * @property {{ expected: string }} provider the provider's answer is not what was expected: …
 * @property {{ expected: string, found: string }} providerIssuer the provider calls itself …, expected …
 * @property {{ host: string }} providerAway the provider at … cannot be reached
 *
 * @property {{}} pairingLink this is no pairing link; copy all of it, from the page's address to its end
 * @property {{}} pairingCode this is no pairing code; it has eight letters and digits
 * @property {{}} noSuchCode the gateway does not know this code: it has expired or was used; start the pairing again
 * @property {{}} enforcerKey the enforcer sent no key; it may be another program than Countersign's own
 * @property {{}} fingerprint the enforcer's key is not the one in the link; someone may be interfering: start the pairing again, and
 *   do not use this gateway if it happens again
 * @property {{ enforcerId: string }} replacesKey … is paired with another key; replace it only on purpose
 *
 * @property {{}} deviceNotInForce this device is not in force, so its signature does not count
 * @property {{}} deviceRevoked this device was revoked; log out, and join again
 * @property {{}} noDeviceInForce all devices of this approver were revoked, so none can add this one; an administrator has to reset them
 * @property {{}} endorsementLink this is no link of a new device; copy all of it, from the page's address to its end
 * @property {{}} otherApprover it is about another tenant or approver
 * @property {{}} notAsked the new device did not ask this device: make a new link there, and open it on a device that is in force
 * @property {{}} inviterUnknown the gateway does not list the device whose link was opened
 * @property {{}} deviceProof the request of the new device was not made with the link's secret
 * @property {{}} nameTaken another device has this name
 * @property {{}} possession the new device has not signed the statement itself, so it may not own these keys
 * @property {{}} statementSignature the statement's signature does not verify under the device that it names
 * @property {{ deviceId: string }} unknownDevice device … is not known here; have a known device add it
 * @property {{ deviceId: string }} revokedDevice device … was revoked; it must create new keys and be added again
 * @property {{ deviceId: string }} deviceIdTaken device … is known with other keys
 * @property {{ limit: number }} tooManyDevices an approver may have at most … devices; revoke one first
 *
 * @property {{}} notPaired this device is not paired with this enforcer; pair it first
 * @property {{}} endedHere the pairing with this enforcer was ended on this device; pair again
 * @property {{}} disagreement your devices know different keys of this enforcer, so someone may be interfering; pair this device with it
 * @property {{}} otherKey it does not open with the key that this device knows of this enforcer, and another of your devices knows another
 *   one; if the enforcer was set up anew, pair this device with it; if not, someone may be interfering
 * @property {{}} notEncrypted it is not encrypted, so the gateway could have written or changed it
 * @property {{}} notARecipient it is not encrypted for this device; it was added later, or the enforcer does not know it
 * @property {{}} repeatedRecipient a recipient is named twice
 * @property {{ limit: number }} tooManyRecipients at most … can be encrypted to at once
 * @property {{}} keyNotOpened the content key does not open: it was not made by the paired enforcer, or not for this request, or altered
 * @property {{}} contentNotOpened the content does not open: it, its nonce or its list of recipients was altered
 * @property {{}} contentHash the content is not what its hash says
 * @property {{ member: string }} mismatch … inside the encrypted content differs from … outside it
 * @property {{ what: Thing }} base64 … is not base64url without padding
 * @property {{ what: Thing, expected: number }} length … should have … bytes
 * @property {{ what: Thing, reason: import('./json.js').JsonReason, offset: number }} json … is not strict JSON
 * @property {{ what: Thing, pointer: string, expected: string }} member … at …: should be …
 * @property {{ what: Thing }} notCanonical … is not in canonical form; the client that made it has a defect
 * @property {{ what: Thing }} version … has a version that this page does not know; update it
 * @property {{ what: Thing }} weakKey … is a weak or malformed key; its owner must create new keys
 *
 * @property {{ problem: Problem }} notApprovable this cannot be approved: …
 * @property {{}} notRejectable it has no hash that could be rejected
 * @property {{}} ruleOfOther its rule was made for another enforcer
 * @property {{}} teamLink this is no link of an invitation to a team
 * @property {{ reason: string }} teamState a state of a team does not follow from what is known of it
 * @property {{ team: string }} teamFork two states of the team … contradict each other, so nothing of it counts
 * @property {{ team: string }} teamWithheld the gateway withholds changes of the team …
 * @property {{}} teamUnknown this device does not take part in the team that is asked
 * @property {{ team: string }} notOnSeat this device is not on the seat of its person in the team …
 * @property {{ problem: Problem }} teamsUnread teams that were joined on another device may still count a revoked one: …
 * @property {{ team: string }} teamNotJoined no device that this one trusts has joined the team …, which may still count a revoked one
 * @property {{ problem: Problem }} notVouched members of teams may forget agents that a revoked device has introduced: …
 * @property {{ team: string, problem: Problem }} deviceNotAdded the team … does not count a new device: …
 * @property {{ team: string, problem: Problem }} deviceNotRemoved the team … still counts a revoked device: …
 * @property {{ team: string, problem: Problem }} seatNotCleared the seat in the team … may still have a stand-in or devices that a thief
 *   has named: …
 * @property {{ team: string }} teamHidden the gateway shows the team … no more, which may still count a revoked device
 * @property {{ team: string }} lastDevice the same as deviceNotRemoved, since a seat needs a device
 * @property {{ team: string, device: string, deviceId: string }} deviceDropped the seat in the team … also had …, which is unknown here
 * @property {{ team: string, approverId: string }} standInEnded nobody stands in any more in the team …, since a revoked device could
 *   have named …
 * @property {{ member: string, team: string }} standsInRevoked this person stands in for … in the team … with a revoked device
 * @property {{ approverId: string }} alreadyInTeam … is a member of the team, or stands in there
 * @property {{ team: string }} belowMinimum its rule demands less than the team … does
 * @property {{}} excludedByRule its rule does not count an approval by this person
 * @property {{ seat: string }} otherSeat it asks … to decide, and nobody else
 * @property {{}} notInRule its rule asks other people
 * @property {{}} operators the ids of people who work with an agent make no sense
 * @property {{}} commentMissing its rule wants a comment, and this one is blank
 * @property {{}} ruleOnce its rule lets an approval count for this request only
 * @property {{}} alreadyDecided somebody has decided this already, perhaps on another device
 * @property {{}} replaced another request came under the same id, so none of them can be approved
 * @property {{}} loggedOut this browser has logged out, so nothing is signed any more
 * @property {{}} noLongerPending this request does not wait for a decision any more
 * @property {{}} refusedAfterSigning the gateway says that the signature of this device does not count
 * @property {{}} goneAfterSigning the gateway says so of a request whose decision was signed and sent
 * @property {{}} expired this request has expired
 * @property {{}} onceHasNoTime a time is for approvals beyond this request
 * @property {{ limit: number }} grantTooLong a permission lasts at most … seconds (24 hours)
 * @property {{}} grantIncomplete a permission beyond this request needs to say what it permits, and for how long
 * @property {{}} grantWords a permission by its first words has 1 to 64 words without control characters
 * @property {{}} grantNotPlain this is no command of plain words, so no first words cover it; permit the same again, or this once
 * @property {{}} grantRunsAnother this command runs another one that its later words name, so no first words cover it
 * @property {{}} grantOther the command does not begin with these words, so the enforcer would not keep this permission
 * @property {{}} grantChooses a later word chooses a program, a file, a directory or a configuration
 * @property {{}} grantFree a free word would say what runs, or choose a file, a directory or a configuration
 * @property {{}} grantNoEdit this is no edit of an agent's session that could be permitted again
 * @property {{}} editsForSession edits are permitted for a session only
 * @property {{}} actionOpposite this action is for the opposite decision
 * @property {{}} actionUnknown the request offers no action of this id
 * @property {{}} oddAnswers a question has no answer, or one that is too long
 * @property {{ limit: number }} longReason a reason may have at most … characters
 * @property {{ limit: number }} longAction the id of an action may have at most … characters
 * @property {{}} hintsForNobody this enforcer is not paired, so a reason cannot be encrypted for it; reject without one
 * @property {{}} decisionSignature the decision's signature does not verify under the device that it names
 * @property {{ what: 'request' | 'artifact' | 'repository' }} otherSubject the decision is about another …
 * @property {{}} outcomeSignature the outcome is not signed by the machine that asked, or about another decision
 * @property {{}} nothingToSave only the decision about a request that opened can be saved
 *
 * @property {{}} emptyPrompt there is nothing to send
 * @property {{ limit: number }} longPrompt a prompt may have at most … bytes
 */

export {};
