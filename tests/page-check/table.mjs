// Rows as a table for a terminal.

export function table(title, rows) {
	const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
	const cells = [
		names,
		...rows.map((row) => names.map((name) => String(row[name] ?? ""))),
	];
	const widths = names.map((_, column) =>
		Math.max(...cells.map((line) => line[column].length)),
	);
	const lines = cells.map((line) =>
		line
			.map((cell, column) =>
				column === 0
					? cell.padEnd(widths[column])
					: cell.padStart(widths[column]),
			)
			.join("  "),
	);
	return `\n${title}\n${lines.map((text) => `  ${text.trimEnd()}`).join("\n")}\n`;
}
