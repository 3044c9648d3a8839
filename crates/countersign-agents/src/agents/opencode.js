// Countersign: asks a person before opencode uses a tool. Written by `countersign install opencode`, which overwrites changes.
import { spawn } from "node:child_process"

const PROGRAM_PATH = "PROGRAM"
const CALL_ARGUMENTS = "CALL"
const SESSION_ARGUMENTS = "SESSION"
const ALLOWED = '{"decision":"allow"}'
// After the hook's own deadline.
const CALL_SECONDS = 570
const SESSION_SECONDS = 10
const LARGEST_ANSWER = 1 << 20

// Resolves only if the hook ends with status 0 and says nothing but that the call is allowed. Everything else rejects: a
// program that is missing, killed or hanging, and every other answer.
function ask(words, event, seconds) {
  return new Promise((resolve, reject) => {
    const refuse = (reason) => reject(new Error(`Countersign: ${reason}`))
    let out = ""
    let err = ""
    let child
    try {
      child = spawn(PROGRAM_PATH, words, { stdio: ["pipe", "pipe", "pipe"] })
    } catch (error) {
      return refuse(`the hook cannot be started: ${error}`)
    }
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      refuse("the hook did not answer in time")
    }, seconds * 1000)
    child.on("error", (error) => {
      clearTimeout(timer)
      refuse(`the hook cannot be started: ${error}`)
    })
    child.stdout.on("data", (data) => {
      out += data
      if (out.length > LARGEST_ANSWER) child.kill("SIGKILL")
    })
    child.stderr.on("data", (data) => {
      if (err.length < LARGEST_ANSWER) err += data
    })
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      if (code === 0 && out.trim() === ALLOWED) return resolve()
      let reason
      try {
        const answer = JSON.parse(out)
        if (answer.decision === "deny") reason = answer.reason
      } catch {}
      refuse(reason || err.trim() || `the hook failed (${signal || code})`)
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

function freeze(value) {
  if (value && typeof value === "object") {
    Object.values(value).forEach(freeze)
    Object.freeze(value)
  }
}

export const Countersign = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    // What is asked about is what happens: a plugin that changes it later fails, and so does the call.
    freeze(output.args)
    Object.freeze(output)
    const { tool, sessionID, callID } = input
    const event = { event: "tool.execute.before", sessionID, callID, tool, args: output.args ?? {}, directory }
    await ask(CALL_ARGUMENTS, event, CALL_SECONDS)
  },
  event: async ({ event }) => {
    if (event.type !== "session.created" && event.type !== "session.deleted") return
    const sessionID = event.properties?.info?.id ?? event.properties?.sessionID
    // Only for display: opencode does not wait, and goes on whatever the answer is.
    ask(SESSION_ARGUMENTS, { event: event.type, sessionID, directory }, SESSION_SECONDS).catch(() => {})
  },
})
