// The records that this browser keeps, and how the knowledge of a team grows.

/** @typedef {import('./keys.js').KeyPairs} KeyPairs */
/** @typedef {import('./types.js').Grant} Grant */

/**
 * @typedef {object} Profile
 * @property {string} tenantId
 * @property {string} approverId
 * @property {string} deviceName
 * @property {string} joinedAt
 * @property {string | null} credential null: the person signs in, and the tokens are kept apart
 * @property {KeyPairs} keys
 */

/**
 * The tokens of a sign-in.
 * @typedef {object} TokenRecord
 * @property {string} issuer
 * @property {string} clientId
 * @property {string | null} resource
 * @property {string} accessToken
 * @property {number} issuedAt by this device's clock, in milliseconds
 * @property {number | null} expiresAt the same; null if the provider does not say
 * @property {string | null} refreshToken
 * @property {string | null} idToken to sign out at the provider
 * @property {string | null} name of the person, as the provider says
 */

/**
 * @typedef {object} EnforcerRecord
 * @property {string} enforcerId
 * @property {string} key in base64url
 * @property {string | null} label
 * @property {string} pairedAt
 * @property {string | null} routingToken null if it was introduced by another device
 * @property {string | null} introducedBy a deviceId
 * @property {string[]} [operators] who works with the agent, as far as this device knows
 * @property {string} [owner] whose device that is, if it introduced it to a team and no device of this
 *   person vouches for the key: then the record ends with what the team says
 * @property {string} [teamId] it was paired with this team, by this device or by another owner's
 * @property {HeldPairing[]} [others] pairings of the same enforcer that this device made before and that hold beside it
 *
 * @typedef {object} HeldPairing
 * @property {string} token
 * @property {string} [teamId] missing: it is this person's alone
 */

/**
 * The pairings of an enforcer that this device has made.
 * @param {EnforcerRecord} record
 * @returns {HeldPairing[]}
 */
export function heldPairings({ routingToken: token, teamId, others = [] }) {
	const newest = teamId === undefined ? {} : { teamId };
	return token === null ? others : [{ token, ...newest }, ...others];
}

/**
 * @typedef {object} DecisionRecord
 * @property {string} requestId
 * @property {string} enforcerId
 * @property {string | null} label
 * @property {string} artifactType
 * @property {string | null} artifact its canonical text
 * @property {string} body the signed decision, byte for byte
 * @property {string} device the bundle of the device that signed it; empty if that is not known
 * @property {boolean} isVerified
 * @property {string} decidedAt
 * @property {'decided' | 'delivered'} state
 * @property {string | null} reason
 * @property {string | null} actionId
 * @property {Grant | null} grant
 * @property {import('./types.js').SentOrder & { at: string, isConfirmed: boolean }} [ended] the order that
 *   ends its grant
 * @property {import('./types.js').DecisionOutcome | null} [outcome] missing: nobody but the gateway
 *   says anything
 */

/**
 * @typedef {object} SessionRecord
 * @property {string} sessionId
 * @property {string} enforcerId
 * @property {string} seenAt
 * @property {string} [askedAt] when its newest request was made; missing in old records
 */

/**
 * The devices that this one was led to before.
 * @typedef {object} TrustRecord
 * @property {string[]} devices bundles in force
 * @property {string[]} revoked ids
 * @property {Record<string, string>} [addedBy] by which device each was added, by their ids
 */

/**
 * A team that this device, or one that it trusts, has joined.
 * @typedef {object} TeamRecord
 * @property {string} teamId
 * @property {string} state the newest signed state, as it came
 * @property {string[]} digests of all states
 * @property {string | null} fork a signed state that contradicts them: then nothing of the team counts
 */

/**
 * An enforcer whose pairing was ended on this device. No introduction from before brings it back.
 * @typedef {object} UnpairedRecord
 * @property {string} enforcerId
 * @property {string} at
 * @property {UntoldEnd} [untold] as long as the gateway could not be told
 *
 * @typedef {object} UntoldEnd
 * @property {string[]} tokens of the pairings with teams that are to end
 * @property {string | null} direct the token of the pairing of this person alone, as it is known here
 * @property {boolean} isUnread whether the gateway's list could not be read, which may have another one
 */

/**
 * The knowledge of a team after a chain was read. One that contradicts the chain before is a fork,
 * which only the person ends.
 * @param {TeamRecord | undefined} before
 * @param {TeamRecord} read
 * @param {boolean} endsFork
 * @returns {TeamRecord}
 */
export function extendTeam(before, read, endsFork) {
	if (before === undefined) return read;
	if (before.fork !== null) return endsFork ? read : before;
	if (read.fork !== null) return { ...before, fork: read.fork };
	const length = Math.min(before.digests.length, read.digests.length);
	const contradicts = before.digests
		.slice(0, length)
		.some((digest, seq) => digest !== read.digests[seq]);
	if (contradicts) return { ...before, fork: read.state };
	return read.digests.length > length ? read : before;
}
