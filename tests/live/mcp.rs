//! The smallest MCP server that the agents accept. Its one tool, `write`, writes a text to a file.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// Makes this program the server.
pub const ARGUMENT: &str = "mcp-server";

pub fn serve() -> anyhow::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        let Some(id) = request.get("id") else {
            continue;
        };
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result(&request)? });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn result(request: &Value) -> anyhow::Result<Value> {
    let parameters = &request["params"];
    Ok(match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "files", "version": "1.0.0" },
        }),
        Some("tools/list") => json!({ "tools": [{
            "name": "write",
            "description": "Writes a text to a file.",
            "inputSchema": {
                "type": "object",
                "properties": { "path": { "type": "string" }, "text": { "type": "string" } },
                "required": ["path", "text"],
            },
        }] }),
        Some("tools/call") => {
            let given = |name: &str| parameters["arguments"][name].as_str().unwrap_or_default();
            std::fs::write(given("path"), given("text"))?;
            json!({ "content": [{ "type": "text", "text": "written" }] })
        }
        _ => json!({}),
    })
}
