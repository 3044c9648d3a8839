/**
 * Bytes outside shared memory, as WebCrypto takes them. TypeScript 5.7 tells the two apart by a
 * parameter that older compilers lack.
 */
type Bytes = ReturnType<Uint8Array["slice"]>;
