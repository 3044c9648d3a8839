// A call of a tool, as a person is asked about it and as it runs. Both come from one canonical text,
// so arguments that change while a person thinks change nothing.

import { canonical, parse } from "./core/canonical.js";
import { Problem } from "./core/problem.js";
import type {
	JsonObject as CoreObject,
	JsonValue as CoreValue,
} from "./core/types.js";
import { visibleText } from "./core/visible.js";
import { NotAskable } from "./errors.js";

export type JsonValue =
	| null
	| boolean
	| number
	| string
	| JsonValue[]
	| JsonObject;

export interface JsonObject {
	[name: string]: JsonValue;
}

/** A call of a tool: its name, and its arguments as plain JSON. */
export interface Call {
	name: string;
	args: object;
}

/** Anything else that a person can be asked about. */
export interface Content {
	type: ArtifactType;
	payload: object;
}

export type ArtifactType =
	| "plan.review"
	| "task.review"
	| "patch.review"
	| "command.review"
	| "checkpoint.review";

/** A call or content in canonical JSON, detached from the objects that it was made of. */
export interface Subject {
	artifactType: string;
	/** Canonical. */
	payload: string;
	/** The name of the tool, for logs. */
	tool: string | undefined;
}

const TYPES: readonly string[] = [
	"plan.review",
	"task.review",
	"patch.review",
	"command.review",
	"checkpoint.review",
];
/** As deep as the strict reader goes, less the levels of an artifact around it. */
const MAX_DEPTH = 60;
/** U+0000, or half of a surrogate pair. */
const UNFIT = /[\0\p{Cs}]/u;

/** `order` names arguments in the order of display. It is not part of the comparison of calls. */
export function subjectOf(asked: Call | Content, order?: string[]): Subject {
	if ("name" in asked) {
		if (order !== undefined && !isTexts(order))
			throw new NotAskable("show: expected a list of texts");
		const { name, args } = asked;
		if (typeof name !== "string" || name.trim() === "")
			throw new NotAskable("the name of the tool is empty");
		const payload = {
			kind: "tool",
			tool: name,
			input: JSON.parse(spell(args)),
			...(order === undefined ? {} : { order }),
		};
		return {
			artifactType: "command.review",
			payload: spell(payload),
			tool: name,
		};
	}
	if (!TYPES.includes(asked.type))
		throw new NotAskable(`type: expected one of ${TYPES.join(", ")}`);
	return {
		artifactType: asked.type,
		payload: spell(asked.payload),
		tool: undefined,
	};
}

function isTexts(value: unknown): boolean {
	return (
		Array.isArray(value) && value.every((item) => typeof item === "string")
	);
}

/**
 * The compared part of a payload. A call says nothing about the order of display, so only there it
 * is left out, and only if it can be nothing else.
 */
export function comparable(
	artifactType: string,
	payload: JsonObject,
	isCall: boolean,
): string {
	const { order, ...rest } = payload;
	const compared = isCall && isTexts(order) ? rest : payload;
	return canonical([artifactType, compared] as CoreValue);
}

/**
 * The input of a run: the arguments of a call, or the content, from the text of the signed artifact. A fresh
 * copy each time.
 */
export function argumentsOf(artifact: string, isCall: boolean): JsonObject {
	const { payload } = JSON.parse(artifact);
	return isCall ? payload.input : payload;
}

/** The canonical text of an object, read once more by the strict reader. */
export function spell(value: unknown): string {
	const json = toJson(value, "", 0);
	if (json === null || typeof json !== "object" || Array.isArray(json))
		throw new NotAskable("expected an object");
	const text = canonical(json as CoreObject);
	try {
		parse("artifact", text);
	} catch (error) {
		if (error instanceof Problem)
			throw new NotAskable("it has too many values");
		throw error;
	}
	return text;
}

/**
 * Plain JSON stays as it is, and a member that is `undefined` counts as absent. Anything that JSON
 * would show as something else is refused: dates, maps, bytes, `NaN`, big integers, instances.
 */
export function toJson(value: unknown, path: string, depth: number): JsonValue {
	if (depth > MAX_DEPTH) throw unfit(path, "is nested too deep");
	switch (typeof value) {
		case "boolean":
			return value;
		case "string":
			return textOf(value, path);
		case "number":
			if (!Number.isFinite(value)) throw unfit(path, "is no finite number");
			if (Number.isInteger(value) && !Number.isSafeInteger(value))
				throw unfit(path, "is an integer beyond 2^53 - 1");
			return value;
		case "object":
			if (value === null) return null;
			return Array.isArray(value)
				? itemsOf(value, path, depth)
				: membersOf(value, path, depth);
		default:
			throw unfit(path, `is no JSON (${typeof value})`);
	}
}

function textOf(text: string, path: string): string {
	if (UNFIT.test(text))
		throw unfit(path, "has U+0000 or half of a surrogate pair");
	return text;
}

function itemsOf(list: unknown[], path: string, depth: number): JsonValue[] {
	if (
		Object.getPrototypeOf(list) !== Array.prototype ||
		Reflect.ownKeys(list).length !== list.length + 1
	)
		throw unfit(path, "is no plain array");
	return list.map((item, place) => toJson(item, `${path}/${place}`, depth + 1));
}

function membersOf(object: object, path: string, depth: number): JsonObject {
	const prototype = Object.getPrototypeOf(object);
	if (prototype !== Object.prototype && prototype !== null)
		throw unfit(path, "is no plain object");
	const members: [string, JsonValue][] = [];
	for (const name of Reflect.ownKeys(object)) {
		if (typeof name === "symbol") throw unfit(path, "has a symbol");
		const property = Object.getOwnPropertyDescriptor(object, name);
		const inner = `${path}/${name}`;
		if (
			property === undefined ||
			!("value" in property) ||
			!property.enumerable
		)
			throw unfit(inner, "is no plain member");
		if (property.value === undefined) continue;
		members.push([
			textOf(name, path),
			toJson(property.value, inner, depth + 1),
		]);
	}
	return Object.fromEntries(members);
}

function unfit(path: string, problem: string): NotAskable {
	const place = path === "" ? "the value" : visibleText(path.slice(0, 200));
	return new NotAskable(`${place} ${problem}`);
}
