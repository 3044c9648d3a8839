// A call that several people must approve: asks, and answers with their approvals or throws.

import { ApprovalSet } from "./approval_set.js";
import { Approved } from "./approved.js";
import {
	type ArtifactOptions,
	artifactForPart,
	completeArtifact,
} from "./artifact.js";
import type { Subject } from "./call.js";
import type { Deadline } from "./clock.js";
import { randomBytes, toBase64url, uuidv7 } from "./core/bytes.js";
import { denialOf } from "./denials.js";
import type { Enforcer } from "./enforcer.js";
import { ApprovalFailure, Denied, Expired, TooFewApprovals } from "./errors.js";
import type { EventLog } from "./events.js";
import { Exchange } from "./exchange.js";
import { OutcomeKey } from "./keys.js";
import { WaitLimiter } from "./limiter.js";
import {
	artifactOptions,
	type RequestOptions,
	submitDeadline,
} from "./options.js";
import { type RuleTerms, readTerms } from "./rule_options.js";
import { checkPeople } from "./set_count.js";
import { SetPart } from "./set_part.js";
import type { AskedApprover } from "./trust.js";
import { peopleOf } from "./votes.js";

const MAX_SUBMISSIONS = 8;

export interface AskingParts {
	enforcer: Enforcer;
	limiter: WaitLimiter;
	log: EventLog;
}

export async function askSeveral(
	{ enforcer, limiter, log }: AskingParts,
	subject: Subject,
	options: RequestOptions,
	until: Deadline,
	signal: AbortSignal | undefined,
): Promise<Approved> {
	try {
		const terms = readTerms(options, await enforcer.trust.paired());
		if (terms === undefined) throw new ApprovalFailure("there is no rule");
		const asking = await prepareSet(
			enforcer,
			subject,
			artifactOptions(options),
			terms,
			{
				until,
				submitUntil: submitDeadline(options, until),
			},
			signal,
		);
		for (const { exchange } of asking.parts) log.asked(exchange);
		const permits = {
			submissions: new WaitLimiter(MAX_SUBMISSIONS),
			waits: limiter,
		};
		try {
			const counted = (await asking.decision(permits, signal)).flatMap(
				(part) => {
					const accepted = part.accepted();
					const { exchange } = part;
					return accepted === undefined
						? []
						: [{ exchange, accepted, enforcer }];
				},
			);
			signal?.throwIfAborted();
			const [first] = counted;
			// Telling the approvers takes time.
			if (
				first === undefined ||
				until.isOver() ||
				counted.some(({ accepted }) => accepted.deadline.isOver())
			)
				throw new Expired(first?.exchange.requestId);
			for (const parts of counted)
				log.ended(new Approved(parts), parts.exchange);
			return new Approved({ ...first, counted });
		} catch (error) {
			await asking.giveUp();
			throw error;
		}
	} catch (error) {
		if (signal?.aborted) throw signal.reason;
		if (error instanceof Denied) log.ended(error, undefined, subject);
		throw error;
	}
}

/** A request for each person. Denies at once if too few of them can be asked. */
async function prepareSet(
	enforcer: Enforcer,
	subject: Subject,
	options: Omit<ArtifactOptions, "createdAt" | "expiresAt" | "rule">,
	terms: RuleTerms,
	times: { until: Deadline; submitUntil: Deadline },
	signal?: AbortSignal,
): Promise<ApprovalSet> {
	const { trust, clock, enforcerId } = enforcer;
	const paired = await trust.paired();
	const people = peopleOf(terms).filter((id) => paired.includes(id));
	checkPeople(terms, people);
	const seats = await readSeats(enforcer, people, times.submitUntil, signal);
	checkPeople(
		terms,
		seats.map(({ id }) => id),
	);
	const [first] = seats;
	if (first === undefined) throw new TooFewApprovals("nobody can be asked");
	const set = toBase64url(randomBytes(16));
	const rule = { ...terms, enforcerId, set, seat: first.id };
	const createdAt = clock.now();
	const expiresAt = createdAt + times.until.left();
	const outcomeKey = OutcomeKey.generate();
	const complete = { ...options, createdAt, expiresAt, rule };
	const own = await completeArtifact(subject, complete, seats, outcomeKey);
	const parts = seats.map(async ({ id }) => {
		const artifact =
			id === first.id ? own : await artifactForPart(own, uuidv7(createdAt), id);
		const exchange = new Exchange(enforcer, { artifact, outcomeKey });
		const sealed = await exchange.seal(times.submitUntil, signal);
		return new SetPart(enforcer, id, exchange, sealed, times.until);
	});
	return new ApprovalSet(await Promise.all(parts), rule, enforcer);
}

/** The people with a device in force. */
async function readSeats(
	{ trust }: Enforcer,
	people: string[],
	deadline: Deadline,
	signal: AbortSignal | undefined,
): Promise<AskedApprover[]> {
	try {
		// Read again however new the copies are: a device that was just added opens it too.
		const found = await trust.devicesOf(people, true, deadline, signal);
		const inForce = found.filter((seat) => seat.trust.inForce.length > 0);
		return inForce.sort((one, other) => (one.id < other.id ? -1 : 1));
	} catch (error) {
		throw denialOf(error);
	}
}
