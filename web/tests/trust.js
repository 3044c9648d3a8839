// Pairing, statements about devices, and endorsements, with known answers.

import { fromBase64url, toBase64url, toHex } from "../core/bytes.js";
import { parse } from "../core/canonical.js";
import {
	endorse,
	endorsementLink,
	parseEndorsement,
	requestEndorsement,
} from "../core/endorsement.js";
import { freeName } from "../core/enrol.js";
import {
	checkIntroduction,
	judgeIntroductions,
	parseIntroduction,
	spellIntroduction,
} from "../core/introduction.js";
import {
	reachable,
	receiveRequest,
	requestByLink,
	spellDeviceLink,
	spellInvitation,
} from "../core/invite.js";
import { readInvitation } from "../core/join.js";
import { parseEnforcerBundle, sign } from "../core/keys.js";
import {
	beginAnswer,
	checkFingerprint,
	digitsOf,
	parseCode,
	parsePairingLink,
	proveAnswer,
} from "../core/pairing.js";
import {
	DeviceTrust,
	parseSigned,
	signStatement,
	spellSigned,
} from "../core/statements.js";
import {
	assert,
	assertEqual,
	assertRefused,
	deviceOf,
	fromHex,
	withOneBitChanged,
} from "./support.js";

const SUBJECT = { tenantId: "acme", approverId: "alice" };
const AT = "2026-02-21T12:01:00Z";

/** @type {import('./support.js').Tests} */
export const tests = {
	async "pairing by link"({ encryption }) {
		const { pairing } = encryption;
		const link = parsePairingLink(pairing.link.link);
		assertEqual(
			[link.code, toHex(link.secret)],
			["7K3M-9QRT", pairing.link.secret],
		);
		const offer = parseEnforcerBundle(pairing.enforcerBundle);
		await checkFingerprint(offer, link.fingerprint);
		const { bundle } = await deviceOf(encryption, "phone");
		const { random } = JSON.parse(pairing.link.answerCanonical);
		const begun = beginAnswer(
			offer,
			pairing.nonce,
			pairing.approverId,
			bundle,
			fromBase64url("random", random),
			null,
		);
		assertEqual(
			`countersign pairing v1${begun.transcript}`,
			pairing.link.proofMessage,
		);
		assertEqual(await proveAnswer(begun, link.secret), pairing.link.answer);
	},

	async "a fingerprint with any bit changed is refused"({ encryption }) {
		const offer = parseEnforcerBundle(encryption.pairing.enforcerBundle);
		for (const changed of withOneBitChanged(
			fromBase64url("key", encryption.pairing.fingerprint),
		)) {
			await assertRefused(
				() => checkFingerprint(offer, fromBase64url("key", changed)),
				"fingerprint",
			);
		}
	},

	async "pairing by typed code"({ encryption }) {
		const { typedCode, enforcerBundle, nonce, approverId } = encryption.pairing;
		const { bundle } = await deviceOf(encryption, "phone");
		const offer = parseEnforcerBundle(enforcerBundle);
		const known = new TextDecoder().decode(
			fromBase64url("answer", typedCode.answer),
		);
		const random = fromBase64url("random", JSON.parse(known).random);
		const begun = beginAnswer(offer, nonce, approverId, bundle, random, null);
		assertEqual(begun.answer, typedCode.answer);
		assertEqual(
			`countersign digits v1${begun.transcript}`,
			typedCode.pbkdf2Password,
		);
		assertEqual(await digitsOf(begun.transcript, nonce), typedCode.digits);
	},

	async "codes and links as people type them"() {
		assertEqual(parseCode(" 7k3m9qrt "), "7K3M-9QRT");
		assertEqual(parseCode("oil0-1234"), "0110-1234");
		for (const text of ["", "7K3M-9QR", "7K3M-9QRTT", "7K3M-9QRU", "7K3M 9QRT"])
			assertEqual(parseCode(text), null, text);
		for (const text of [
			"",
			"#/pair/",
			"https://gate/#/pair/7K3M-9QRT/AA/AA",
			"7K3M-9QRT",
		]) {
			await assertRefused(() => parsePairingLink(text), "pairingLink");
		}
	},

	async "statements, byte for byte, and what follows from them"({
		encryption,
	}) {
		const [phone, laptop] = [
			await deviceOf(encryption, "phone"),
			await deviceOf(encryption, "laptop"),
		];
		const list = encryption.statements.map((/** @type {any} */ { signed }) =>
			nodeOf(signed),
		);
		const [first, byPhone, , revoked] = encryption.statements;
		for (const [place, { signable }] of encryption.statements.entries()) {
			assertEqual((await parseSigned(list[place])).text, signable);
		}
		assertEqual(
			JSON.parse(
				await signStatement(phone, SUBJECT, { add: phone.bundle }, AT),
			),
			first.signed,
		);
		const trust = new DeviceTrust(SUBJECT, [phone.bundle]);
		await trust.follow(await parseSigned(nodeOf(byPhone.signed)));
		assertEqual(
			trust.inForce.map(({ name }) => name),
			["phone", "laptop"],
		);
		await trust.followAll(list);
		const gone = revoked.signed.statement.deviceId;
		assert(trust.revoked.has(gone), "the revoked one");
		// Shown again, old statements bring nothing back.
		await trust.followAll(list);
		await assertRefused(() => trust.device(gone), "revokedDevice");
		const unknown = new DeviceTrust(SUBJECT, []);
		await unknown.followAll(list);
		assertEqual(unknown.inForce.length, 0, "nobody is trusted from nothing");
		const other = new DeviceTrust({ ...SUBJECT, approverId: "bob" }, [
			phone.bundle,
			laptop.bundle,
		]);
		const signed = await parseSigned(nodeOf(byPhone.signed));
		await assertRefused(() => other.follow(signed), "otherApprover");
	},

	async "statements with any bit of a signature changed are refused"({
		encryption,
	}) {
		const phone = await deviceOf(encryption, "phone");
		const { signed } = encryption.statements[1];
		for (const member of ["signature", "possession"]) {
			for (const changed of withOneBitChanged(
				fromBase64url("signature", signed[member]),
			)) {
				const trust = new DeviceTrust(SUBJECT, [phone.bundle]);
				const statement = await parseSigned(
					nodeOf({ ...signed, [member]: changed }),
				);
				await assertRefused(
					() => trust.follow(statement),
					"statementSignature",
					"possession",
				);
			}
		}
		const { possession: _, ...alone } = signed;
		const statement = await parseSigned(nodeOf(alone));
		await assertRefused(
			() => new DeviceTrust(SUBJECT, [phone.bundle]).follow(statement),
			"possession",
		);
	},

	async "asking to be added, and endorsing"({ encryption }) {
		const [phone, laptop] = [
			await deviceOf(encryption, "phone"),
			await deviceOf(encryption, "laptop"),
		];
		const { endorsement } = encryption;
		const text = await requestEndorsement(laptop, SUBJECT, AT, [phone.bundle]);
		assertEqual(
			endorsementLink("https://gateway.example.org/", text),
			endorsement.link,
		);
		const request = await parseEndorsement(endorsement.link);
		assertEqual(
			[request.bundle.name, request.bundle.deviceId],
			["laptop", laptop.bundle.deviceId],
		);
		const published = await endorse(phone, SUBJECT, request);
		assertEqual(
			published.map((signed) => JSON.parse(signed)),
			endorsement.statements,
		);
		await assertRefused(
			() => endorse(phone, { ...SUBJECT, tenantId: "other" }, request),
			"otherApprover",
		);
		await assertRefused(() => endorse(laptop, SUBJECT, request), "notAsked");
		await assertRefused(
			() => parseEndorsement("https://gateway.example.org/#/device/x="),
			"endorsementLink",
		);
	},

	async "a request with a wrong signature is not endorsed"({ encryption }) {
		const phone = await deviceOf(encryption, "phone");
		const request = await parseEndorsement(encryption.endorsement.link);
		const [entry] = request.by;
		if (entry === undefined) throw new Error("no entry");
		const [changed] = withOneBitChanged(fromHex("00".repeat(64)));
		const without = {
			...request,
			by: [{ ...entry, possession: String(changed) }],
		};
		await assertRefused(() => endorse(phone, SUBJECT, without), "possession");
		const oneWay = {
			...request,
			by: [{ ...entry, signature: String(changed) }],
		};
		assertEqual(
			(await endorse(phone, SUBJECT, oneWay)).length,
			1,
			"only the addition of the new device",
		);
	},

	async "a device invites a device, and a gateway that swaps keys is noticed"({
		encryption,
	}) {
		const [phone, laptop] = [
			await deviceOf(encryption, "phone"),
			await deviceOf(encryption, "laptop"),
		];
		const { invitation } = encryption;
		const { deviceId } = phone.bundle;
		assertEqual(spellInvitation(SUBJECT, AT, deviceId), invitation.signable);
		assertEqual(
			await sign(phone, invitation.signable),
			invitation.signed.signature,
		);
		const { code, link } = readInvitation(invitation.link);
		if (link === null) throw new Error("no link of a device");
		assertEqual([code, link.inviter], [link.code, deviceId]);
		assertEqual(
			spellDeviceLink("https://gateway.example.org/", link),
			invitation.link,
		);
		for (const [own, told, expected] of [
			["http://127.0.0.1:8080/", "https://192.168.1.5:8443/", true],
			["http://localhost:8080/", "https://192.168.1.5:8443/", true],
			["http://[::1]:8080/", "https://192.168.1.5:8443/", true],
			["https://page.example.org/", "https://evil.example.org/", false],
			["https://127.0.0.1.example.org/", "https://evil.example.org/", false],
			["http://127.0.0.1:8080/", "javascript:alert(1)", false],
			["http://127.0.0.1:8080/", "https://evil.example.org/#/join/", false],
			["http://127.0.0.1:8080/", undefined, false],
		])
			assertEqual(reachable(String(own), told), expected ? told : own);
		const listed = [laptop.bundle, phone.bundle];
		const { request, proof, digits } = await requestByLink(
			laptop,
			SUBJECT,
			AT,
			link,
			listed,
		);
		assertEqual([proof, digits], [invitation.proof, invitation.digits]);
		assertEqual(request, invitation.request);
		const device = await receiveRequest(link, request, proof);
		assertEqual([device.name, device.digits], ["laptop", digits]);
		const { by } = await parseEndorsement(request);
		assertEqual(
			by.map((entry) => entry.deviceId),
			[deviceId],
			"signs for nobody else",
		);

		const other = { ...link, secret: new Uint8Array(16) };
		const swapped = await requestByLink(phone, SUBJECT, AT, other, listed);
		for (const [text, mac] of [
			[swapped.request, swapped.proof],
			[swapped.request, proof],
			[request, swapped.proof],
			[request, ""],
		])
			await assertRefused(
				() => receiveRequest(link, String(text), String(mac)),
				"deviceProof",
			);
		await assertRefused(
			() => requestByLink(laptop, SUBJECT, AT, link, [laptop.bundle]),
			"inviterUnknown",
		);
		for (const broken of [
			`${invitation.link}/more`,
			invitation.link.slice(0, -1),
			`#/join/${code}/`,
			"#/join/short",
		])
			await assertRefused(async () => readInvitation(broken), "invitation");
		assertEqual(readInvitation(`#/join/${code}`), { code, link: null });
	},

	"a name that is taken gets a number"() {
		const listed = /** @type {any} */ ([
			{ name: "Chrome on Linux", isInForce: true },
			{ name: "Chrome on Linux 2", isInForce: true },
			{ name: "phone", isInForce: false },
		]);
		assertEqual(freeName("Chrome on Linux", { listed }), "Chrome on Linux 3");
		assertEqual(freeName("phone", { listed }), "phone");
		const long = "x".repeat(64);
		const named = freeName(long, {
			listed: /** @type {any} */ ([{ name: long, isInForce: true }]),
		});
		assertEqual(named, `${"x".repeat(60)} 2`);
	},

	async "an introduction is believed if a device in force has signed it"({
		encryption,
	}) {
		const [phone, laptop] = [
			await deviceOf(encryption, "phone"),
			await deviceOf(encryption, "laptop"),
		];
		const { key } = await introduced(phone, encryption, {});
		const signed = await introduced(phone, encryption, {
			label: "build machine",
		});
		assertEqual(
			[signed.enforcerId, signed.label, signed.by],
			["build-bot", "build machine", phone.bundle.deviceId],
		);
		const trust = new DeviceTrust(SUBJECT, [laptop.bundle, phone.bundle]);
		await checkIntroduction(signed, trust);
		await assertRefused(
			() =>
				checkIntroduction(signed, new DeviceTrust(SUBJECT, [laptop.bundle])),
			"unknownDevice",
		);
		await assertRefused(
			() =>
				checkIntroduction(
					signed,
					new DeviceTrust({ ...SUBJECT, tenantId: "x" }, [phone.bundle]),
				),
			"otherApprover",
		);
		for (const changed of withOneBitChanged(signed.signature)) {
			const signature = fromBase64url("signature", changed);
			await assertRefused(
				() => checkIntroduction({ ...signed, signature }, trust),
				"statementSignature",
			);
		}
		await assertRefused(
			() =>
				introduced(phone, encryption, { key: key.replace(/./, "x") }).then(
					(other) =>
						checkIntroduction({ ...other, signature: signed.signature }, trust),
				),
			"statementSignature",
		);
		// A label that may not be shown is left out.
		assertEqual(
			(await introduced(phone, encryption, { label: "a\u202eb" })).label,
			null,
		);
	},

	async "which introductions are taken over"({ encryption }) {
		const [phone, laptop] = [
			await deviceOf(encryption, "phone"),
			await deviceOf(encryption, "laptop"),
		];
		const other = laptop.bundle.encryptionKey;
		const one = await introduced(phone, encryption, { label: "one" });
		const same = await introduced(laptop, encryption, {
			pairedAt: "2026-02-21T13:00:00Z",
		});
		const differing = { ...same, key: toHex(other) };
		const nobody = { own: "me", known: new Map(), ended: new Map() };
		const record = {
			enforcerId: "build-bot",
			key: one.key,
			label: "one",
			pairedAt: same.at,
			routingToken: null,
			introducedBy: one.by,
			operators: [],
		};
		assertEqual(judgeIntroductions([one, same], nobody).taken, [record]);
		const judge = (/** @type {any[]} */ list, /** @type {object} */ here) => {
			const { taken, refused } = judgeIntroductions(list, {
				...nobody,
				...here,
			});
			return [taken.length, refused.get("build-bot") ?? null];
		};
		assertEqual(judge([one, differing], {}), [0, "disagreement"]);
		assertEqual(judge([one], { own: one.by }), [0, null]);
		const known = new Map([["build-bot", record]]);
		assertEqual(judge([one, same], { known }), [0, null]);
		assertEqual(judge([differing], { known }), [0, "otherKey"]);
		assertEqual(judge([one, differing], { known }), [0, "otherKey"]);
		assertEqual(judge([one], { ended: new Map([["build-bot", one.at]]) }), [
			0,
			"endedHere",
		]);
		assertEqual(
			judge([one, same], { ended: new Map([["build-bot", one.at]]) }),
			[1, null],
		);
		assertEqual(judge([one], { ended: new Map([["build-bot", "damaged"]]) }), [
			0,
			"endedHere",
		]);
	},
};

/**
 * An introduction of the enforcer, signed by a device.
 * @param {import('../core/keys.js').DeviceKeys} keys
 * @param {any} encryption
 * @param {{ key?: string, label?: string, pairedAt?: string }} change
 */
async function introduced(keys, encryption, change) {
	const { encryptionKey, enforcerId } = parseEnforcerBundle(
		encryption.pairing.enforcerBundle,
	);
	const enforcer = {
		enforcerId,
		key: toBase64url(encryptionKey),
		label: null,
		pairedAt: AT,
		...change,
	};
	const text = spellIntroduction(SUBJECT, enforcer, keys.bundle.deviceId);
	return parseIntroduction(
		parse("answer", spellSigned(text, await sign(keys, text), null)),
	);
}

/** @param {any} value */
function nodeOf(value) {
	return parse("answer", JSON.stringify(value));
}
