// Loaded before each test: Node 18, which Debian 12 packages, has no global `crypto`.

import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
