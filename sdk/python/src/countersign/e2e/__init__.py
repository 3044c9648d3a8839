"""End-to-end cryptography between an enforcer and the devices of approvers.

Pure: no I/O, no clock. Time and randomness are parameters. `docs/encryption.md` of the repository
describes every format and the order of the checks.

| module | contents |
|---|---|
| `strict_json`, `canonical`, `encoding`, `members`, `text`, `times` | texts with one meaning |
| `points`, `keys`, `hpke`, `seal` | keys and encryption |
| `bundle`, `statement`, `trust` | the devices that speak for an approver |
| `artifact`, `hints`, `decision`, `accept` | a request, and the checks before it is acted on |
| `outcome`, `record` | what the enforcer answered, and a decision as a file |
"""
