// The parts of a client that a request needs.

import type { Clock } from "./clock.js";
import type { Gateway } from "./gateway.js";
import type { EncryptionKeys } from "./keys.js";
import type { SpanRecorder } from "./spans.js";
import type { UseJournal } from "./state.js";
import type { TrustStore } from "./trust.js";

export interface Enforcer {
	enforcerId: string;
	tenantId: string;
	keys: EncryptionKeys;
	gateway: Gateway;
	trust: TrustStore;
	clock: Clock;
	/** Takes each request once: for its one use, or for its denial. */
	journal: UseJournal;
	spans: SpanRecorder;
}
