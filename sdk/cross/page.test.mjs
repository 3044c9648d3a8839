// A library encrypts a request, the page's code opens it and decides, and the library verifies that.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openArtifact } from "../../web/core/artifact.js";
import { parse } from "../../web/core/canonical.js";
import { decideOpened } from "../../web/core/decision.js";
import { verifyOutcome } from "../../web/core/outcome.js";
import { RANDOM } from "../../web/core/seal.js";
import { LIBRARIES, work } from "./libraries.mjs";
import { ENFORCER, PageGateway, TENANT } from "./page_gateway.mjs";

let page;
let choice;
let opened;

before(async () => {
	page = await PageGateway.start();
	page.gateway.onSubmit = async ({ requestId, body }) => {
		const node = parse("answer", body);
		const text = (name) => node.value.get(name).value;
		const context = {
			requestId,
			artifactType: text("artifactType"),
			artifactHash: text("artifactHash"),
			expiresAt: text("expiresAt"),
			enforcerId: ENFORCER,
		};
		const { device, enforcer, gateway } = page;
		const sealed = node.value.get("ciphertext");
		opened = await openArtifact(device, enforcer, context, sealed);
		const signing = { keys: device, random: RANDOM, now: Date.now() };
		const decision = await decideOpened(opened, enforcer, choice, signing);
		gateway.decide(requestId, decision);
	};
});

after(() => page?.stop());

/** The outcome that the library signed, as the page verifies it. */
async function confirmed() {
	const { requestId } = opened;
	const about = {
		tenantId: TENANT,
		enforcerId: ENFORCER,
		decision: page.gateway.decisionOf(requestId),
	};
	return verifyOutcome(page.gateway.outcomeOf(requestId), opened, about);
}

const REASON = "fine é\u{1f600}";

for (const library of LIBRARIES) {
	test(`${library} encrypts, the page opens and approves`, async () => {
		choice = { verdict: "approve", reason: REASON };
		const said = await work(library, page.profiles, "ask");
		assert.equal(said, `approved: ${REASON}`);
		assert.equal(opened.payload.tool, "pay");
		assert.deepEqual(opened.payload.input, {
			amount: 7,
			note: 'é\u{1f600}\n"</script>',
			deep: [null, 0.1],
		});
		assert.equal(await confirmed(), "allowed");
	});

	test(`${library} encrypts, the page opens and rejects`, async () => {
		choice = { verdict: "reject", reason: REASON };
		assert.equal(await work(library, page.profiles, "ask"), "rejected");
		assert.equal(await confirmed(), "rejected");
	});

	test(`${library} refuses a decision that the page signed about another artifact`, async () => {
		choice = { verdict: "approve" };
		const { gateway } = page;
		const { decide } = gateway;
		gateway.decide = (id, text) => {
			const other = text.replace(/("artifactHash":")./, "$1x");
			decide.call(gateway, id, other);
		};
		assert.equal(await work(library, page.profiles, "ask"), "untrusted");
		gateway.decide = decide;
	});
}
