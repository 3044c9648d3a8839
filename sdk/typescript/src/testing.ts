// For tests of your own code: an approver with real keys and signatures, without a gateway. Its keys
// are made in memory and cannot be loaded from a profile.

export type { AskedRequest } from "./testing/asked_request.js";
export { FakeApprover, type FakeRule } from "./testing/fake_approver.js";
export type { FakeGateway } from "./testing/fake_gateway.js";
