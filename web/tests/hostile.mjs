// A gateway that says what a test wants, a device, and enforcers that this device has paired with.

import { randomBytes, toBase64url, utf8 } from "../core/bytes.js";
import { canonical, hashWithout, parse } from "../core/canonical.js";
import { aesGcm, hpkeSeal } from "../core/hpke.js";
import { InboxModel } from "../core/inbox.js";
import { generateKeyPairs, openKeys } from "../core/keys.js";
import { Problem } from "../core/problem.js";
import { RANDOM } from "../core/seal.js";
import { DeviceTrust } from "../core/statements.js";

export const REQUEST = "0199f3c2-0000-7000-8000-000000000001";
const EXPIRES = "2030-01-01T00:00:00Z";

export const newDevice = async (name = "device") =>
	openKeys(await generateKeyPairs(), name);

/** An `approval.request` that `enforcer` has sealed for `device`. */
export async function request(
	enforcer,
	device,
	{
		requestId = REQUEST,
		msgId = "m1",
		payload = { kind: "command", command: "ls" },
		further = {},
	} = {},
) {
	const artifactType = "command.review";
	const members = {
		requestId,
		artifactType,
		artifactHashAlg: "SHA-256",
		repoRef: "repo",
		createdAt: "2026-01-01T00:00:00Z",
		expiresAt: EXPIRES,
		payload,
		...further,
	};
	const artifactHash = await hashWithout(
		parse("answer", canonical(members)),
		"artifactHash",
	);
	const context = {
		v: 1,
		requestId,
		artifactType,
		artifactHash,
		expiresAt: EXPIRES,
		enforcerId: enforcer.enforcerId,
	};
	const [key, nonce, ephemeral] = [
		randomBytes(32),
		randomBytes(12),
		await RANDOM.ephemeral(),
	];
	const info = {
		info: utf8("countersign seal v1"),
		text: key,
		associated: utf8(canonical(context)),
	};
	const sealed = await hpkeSeal(
		ephemeral,
		device.bundle.encryptionKey,
		enforcer.pair,
		info,
	);
	const recipients = [
		{
			deviceId: device.bundle.deviceId,
			encapsulated: toBase64url(ephemeral.publicKey),
			key: toBase64url(sealed),
		},
	];
	const data = await aesGcm(
		"encrypt",
		key,
		nonce,
		utf8(canonical({ ...members, artifactHash })),
		utf8(canonical({ ...context, recipients })),
	);
	const ciphertext = {
		alg: "HPKE-X25519-SHA256-A256GCM",
		enc: "A256GCM",
		nonce: toBase64url(nonce),
		data: toBase64url(data),
		recipients,
	};
	const body = {
		enforcerId: enforcer.enforcerId,
		artifactType,
		artifactHash,
		expiresAt: EXPIRES,
		ciphertext,
	};
	return {
		msgId,
		msgType: "approval.request",
		requestId,
		createdAt: "2026-01-01T00:00:00Z",
		body,
	};
}

const message = (body) =>
	parse(
		"answer",
		JSON.stringify({ msgId: "p", msgType: "x", requestId: "p", body }),
	);

/**
 * The inbox of a device that is paired with `bot` and `prod`, at a gateway whose answers are
 * `says`.
 */
export async function scene() {
	const device = await newDevice();
	const enforcers = {};
	for (const enforcerId of ["bot", "prod"])
		enforcers[enforcerId] = { enforcerId, pair: await RANDOM.ephemeral() };
	const says = {
		inbox: [],
		exchange: { state: "pendingApproval" },
		statements: [],
		submit: async () => ({ status: 200, text: "" }),
	};
	const decisions = new Map();
	/** @type {string[]} */
	const sent = [];
	const subject = { tenantId: "t", approverId: "alice" };
	const session = {
		keys: device,
		identity: { ...subject, deviceId: device.bundle.deviceId },
		subject,
		enforcers: new Map(
			Object.keys(enforcers).map((enforcerId) => [
				enforcerId,
				{ enforcerId, label: enforcerId },
			]),
		),
		refused: new Map(),
		pinned: (id) =>
			Object.hasOwn(enforcers, id)
				? { enforcerId: id, encryptionKey: enforcers[id].pair.publicKey }
				: null,
		timestamp: () => "2026-01-01T00:00:00Z",
		envelope: (_type, _requestId, body) => body,
		trust: async () => new DeviceTrust(subject, [device.bundle]),
		remember: async () => {},
		store: {
			keepSession: async () => {},
			decision: async (requestId) => decisions.get(requestId) ?? null,
			keepDecision: async (record) =>
				void decisions.set(record.requestId, record),
		},
		client: {
			credential: "x",
			channelUrl: () => "",
			async json({ path }) {
				if (path.includes("/inbox")) return message({ items: says.inbox });
				if (path.includes("/exchanges/")) return message(says.exchange);
				if (path.includes("/devices"))
					return parse(
						"answer",
						JSON.stringify({ devices: [], statements: says.statements }),
					);
				throw Problem.of("unreachable", { cause: path });
			},
			async call({ body }) {
				sent.push(body);
				return says.submit();
			},
		},
	};
	const model = new InboxModel(session, () => {});
	const shows = async (...items) => {
		says.inbox = items;
		await model.refresh();
		return model.find(REQUEST);
	};
	return { model, session, says, decisions, sent, device, enforcers, shows };
}
