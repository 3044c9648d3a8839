// The interface of a view, and its arguments.

/**
 * @typedef {object} Context
 * @property {import('../core/approver.js').Approver | null} approver null: this browser has not
 *   joined
 * @property {import('../core/approver.js').Place} place
 * @property {string[]} args what follows the name in the address
 * @property {(hash: string, replace?: boolean) => void} go
 * @property {(approver: import('../core/approver.js').Approver) => void} joined a new approver is
 *   in charge
 * @property {() => URLSearchParams | null} answer what the sign-in service has put into the page's
 *   address; once
 * @property {() => void} enrolled this device is in force now
 */

/**
 * @typedef {object} View
 * @property {string} title
 * @property {HTMLElement} element
 * @property {boolean} [wide] it needs the width of a desktop
 * @property {Record<string, () => void>} [keys] what single keys do
 * @property {() => void} [dispose]
 */

/** @typedef {Context & { approver: import('../core/approver.js').Approver }} JoinedContext */

export {};
