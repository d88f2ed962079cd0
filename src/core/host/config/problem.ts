import { closest, distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import { isObject } from '../../kernel/json.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** One thing that is wrong with options, in words for the person who wrote them. Never shows a value. */
export interface OptionProblem {
  readonly path: Path;
  /** The path as it is written: `legs[0].intf`. */
  readonly option: string;
  /** Completes "option x: …". */
  readonly reason: string;
  /** ` Did you mean "port"?`, or nothing. */
  readonly hint: string;
}

/**
 * Turns a schema's issues into problems: an unknown key is named by itself with the nearest known one, a union
 * reports the problems of its one branch that fits the value's kind.
 *
 * @param value what was parsed, for the nearest allowed value
 */
export function problemsOf(schema: z.ZodType, value: unknown, issues: readonly Issue[]): OptionProblem[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      const optionNames = optionNamesAt(schema, issue.path);
      return issue.keys.map((key) =>
        problem([...issue.path, key], 'there is no such option', nearest(key, optionNames)),
      );
    }
    if (issue.code === 'invalid_value') {
      const given = valueAt(value, issue.path);
      const allowed = issue.values.map(String);
      const hint = typeof given === 'string' ? nearest(given, allowed) : '';
      return [problem(issue.path, `it must be ${orList(allowed.map((one) => `"${one}"`))}`, hint)];
    }
    if (issue.code === 'invalid_union' && issue.errors.length > 0) {
      const matching = issue.errors.filter((branch) =>
        branch.every(({ path }) => path.length > 0 || !isRoot(branch)),
      );
      const branch = matching.length === 1 ? matching[0] : undefined;
      if (branch) {
        return problemsOf(
          schema,
          value,
          branch.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })),
        );
      }
      const reasons = issue.errors.flatMap((inner) => inner.map(sentence));
      return [problem(issue.path, orList([...new Set(reasons)]), '')];
    }
    return [problem(issue.path, sentence(issue), '')];
  });
}

/** @returns ` Did you mean "…"?` when one of the words is near enough to be meant */
export function nearest(word: string, words: readonly string[]): string {
  if (words.length === 0) return '';
  const lower = word.toLowerCase();
  const found = closest(
    lower,
    words.map((candidate) => candidate.toLowerCase()),
  );
  const match = words.find((candidate) => candidate.toLowerCase() === found);
  const near = distance(lower, found) <= Math.max(2, Math.floor(found.length / 3));
  return near ? ` Did you mean "${match}"?` : '';
}

/** `['legs', 0, 'intf']` as `legs[0].intf`. */
function pathText(path: Path): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text.replace(/^\./, '') || '(all)';
}

function problem(path: Path, reason: string, hint: string): OptionProblem {
  return { path, option: pathText(path), reason, hint };
}

function sentence(issue: Issue): string {
  if (issue.code === 'invalid_type' && /received undefined$/.test(issue.message)) {
    return `it is required (${issue.expected})`;
  }
  const text = issue.message.replace(/^Invalid input: /, '').replace(/\.$/, '');
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** Whether a union's branch was not meant at all: the value is of another type than the branch. */
function isRoot(branch: readonly Issue[]): boolean {
  return branch.some(({ code, path }) => code === 'invalid_type' && path.length === 0);
}

function orList(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      isObject(inner) || Array.isArray(inner) ? (inner as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  );
}

/** The part of zod's definitions that leads to a nested object. */
interface Definition {
  readonly innerType?: z.ZodType;
  readonly in?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
}

/** The keys of the objects that a schema allows at a path. */
function optionNamesAt(schema: z.ZodType, path: Path): string[] {
  let schemas = unwrap(schema);
  for (const key of path) {
    schemas = schemas.flatMap((one) => {
      const { shape, element, valueType } = definition(one);
      const next = shape ? shape[String(key)] : (element ?? valueType);
      return next ? unwrap(next) : [];
    });
  }
  return schemas.flatMap((one) => Object.keys(definition(one).shape ?? {}));
}

/** Looks through optional, default, transform and union to the schemas inside. */
function unwrap(schema: z.ZodType): z.ZodType[] {
  const { innerType, in: input, options } = definition(schema);
  if (options) return options.flatMap(unwrap);
  const inner = innerType ?? input;
  return inner ? unwrap(inner) : [schema];
}

function definition(schema: z.ZodType): Definition {
  return schema.def as Definition;
}
