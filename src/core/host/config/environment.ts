import type { z } from 'zod';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { isObject } from '../../kernel/json.ts';
import { HostError } from '../errors/host-error.ts';
import type { PluginDefinition } from '../plugin/definition.ts';
import { problemsOf } from './problem.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Options overridden by the environment, and the values that could not be used. */
export interface Overridden {
  readonly options: unknown;
  readonly problems: readonly HoldfastError[];
}

/**
 * Lays the variables that a plugin's definition names over its options. A variable's text is taken as whatever
 * its option's schema accepts: text, a number, a boolean (`true`, `yes`, `on`, `1` and their opposites) or JSON.
 * An empty variable counts as unset. Values are never shown: they may be secrets.
 *
 * @param file named where the definition itself is wrong
 */
export function overrideFromEnvironment(
  definition: PluginDefinition,
  options: unknown,
  env: Environment,
  file: string,
): Overridden {
  const problems: HoldfastError[] = [];
  let result = options;
  for (const [name, option] of Object.entries(definition.env ?? {})) {
    const text = env[name];
    if (text === undefined || text === '') continue;
    const path = option.split('.');
    const taken = take(definition.options, result, path, text);
    if ('options' in taken) result = taken.options;
    else if (taken.unknown) {
      const reason = `plugin ${definition.name} maps ${name} to ${option}, which is none of its options`;
      problems.push(new HostError('HF_CONFIG_PLUGIN', { file, reason }));
    } else problems.push(new HostError('HF_CONFIG_ENV', { name, reason: taken.reason }));
  }
  return { options: result, problems };
}

type Taken = { readonly options: unknown } | { readonly reason: string; readonly unknown: boolean };

/** The whole options are parsed with each reading in place, so any schema may stand at the path. */
function take(schema: z.ZodType, options: unknown, path: readonly string[], text: string): Taken {
  let refused: { reason: string; unknown: boolean; misread: boolean } | undefined;
  for (const reading of readings(text)) {
    const candidate = place(options, path, reading);
    const parsed = schema.safeParse(candidate);
    const issues = parsed.error?.issues ?? [];
    const [problem] = problemsOf(schema, candidate, issues).filter((one) =>
      path.every((key, index) => one.path[index] === key),
    );
    if (!problem) return { options: candidate };
    const misread = issues.some(({ code, path: at }) => code === 'invalid_type' && at.length === path.length);
    const unknown = issues.some(
      (issue) =>
        issue.code === 'unrecognized_keys' && issue.keys.some((key) => samePath([...issue.path, key], path)),
    );
    // A number out of range says more than "expected number, received string".
    if (!refused || (refused.misread && !misread)) {
      refused = { reason: `${problem.reason} (option ${path.join('.')})`, unknown, misread };
    }
  }
  return refused ?? { reason: 'it cannot be read', unknown: false };
}

function readings(text: string): unknown[] {
  const readings: unknown[] = [text];
  const trimmed = text.trim();
  if (trimmed !== '' && Number.isFinite(Number(trimmed))) readings.push(Number(trimmed));
  if (/^(true|yes|on|1)$/i.test(trimmed)) readings.push(true);
  if (/^(false|no|off|0)$/i.test(trimmed)) readings.push(false);
  if (/^[[{]/.test(trimmed)) {
    try {
      readings.push(JSON.parse(trimmed));
    } catch {
      // then it is text, which its schema will refuse in its own words
    }
  }
  return readings;
}

function samePath(a: readonly PropertyKey[], b: readonly string[]): boolean {
  return a.length === b.length && b.every((key, index) => a[index] === key);
}

/** A copy of the options with a value at a path. */
function place(options: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  const object = isObject(options) ? options : {};
  return { ...object, [key]: place(object[key], rest, value) };
}
