// A rule as an enforcer writes it: two of three people, and a fourth one after three minutes.

export const RULE = {
	v: 1,
	enforcerId: "bot",
	set: "AAECAwQFBgcICQoLDA0ODw",
	seat: "alice",
	asks: [
		{
			approvals: 2,
			from: ["alice", "bob", "carol"],
			escalate: [{ after: 180, from: ["dave"] }],
		},
	],
	rejections: 1,
	comment: "none",
	notBy: ["erin"],
};

/** One approval of some people, in one exchange. */
export const SINGLE = {
	v: 1,
	enforcerId: "bot",
	set: RULE.set,
	asks: [{ approvals: 1, from: ["alice", "bob"] }],
	rejections: 1,
	comment: "none",
};

/** Ids of so many people. */
export const crowd = (count, name = "p") =>
	Array.from({ length: count }, (_, at) => `${name}${at}`);
