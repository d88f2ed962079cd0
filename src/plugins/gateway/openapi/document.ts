/** Reads the text of an OpenAPI document. Runs in a worker: a hostile document may take long, and must hold up nothing. */

import SwaggerParser from '@apidevtools/swagger-parser';
import { parse as parseYaml } from 'yaml';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';

/** Levels of nesting, and values in all. */
const DEEPEST = 64;
const MOST_VALUES = 1_000_000;

/** Why a document, or an operation of it, is refused: a part of a sentence. */
export class Refusal extends Error {}

export type Node = Readonly<Record<string, unknown>>;

/** A document whose structure is valid. References of schemas stay; all others are resolved. */
export interface ParsedDocument {
  readonly root: Node;
  /** `3.0` or `3.1`. */
  readonly version: string;
}

/** @throws Refusal */
export async function parseDocument(text: string): Promise<ParsedDocument> {
  const root = parsed(text);
  if (!isObject(root)) throw new Refusal('it is no object');
  refuseUnsafe(root);
  const { openapi } = root;
  const version = typeof openapi === 'string' ? /^3\.[01](?=\.\d+$)/.exec(openapi)?.[0] : undefined;
  if (version === undefined) throw new Refusal('it is no OpenAPI document of version 3.0 or 3.1');
  try {
    const api = await SwaggerParser.validate(root as Parameters<typeof SwaggerParser.validate>[0] & object, {
      resolve: { external: false },
      dereference: { circular: false, excludedPathMatcher: isInSchema },
    });
    return { root: api as Node, version };
  } catch (error) {
    if (error instanceof ReferenceError) throw new Refusal('its references go round in a circle');
    const [first = '', second = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new Refusal(`it is not valid: ${(second.trim() || first).slice(0, 300)}`);
  }
}

/** Schemas keep their references: they may go round in a circle, and many that refer to each other would grow without bound. */
const isInSchema = (path: string): boolean => /\/schemas?(?:\/|$)/.test(path);

function parsed(text: string): unknown {
  const isJson = /^\s*\{/.test(text);
  if (isJson && nestsDeeper(text, DEEPEST)) throw new Refusal(`it is nested deeper than ${DEEPEST} levels`);
  try {
    // No aliases in YAML: a few lines of them make a document of any size.
    return isJson ? JSON.parse(text) : parseYaml(text, { maxAliasCount: 0, logLevel: 'silent' });
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '').slice(0, 200) : '';
    throw new Refusal(`it is neither JSON nor YAML: ${reason}`);
  }
}

/** References that leave the document would read files and addresses that its digest does not cover. */
function refuseUnsafe(root: object): void {
  const left: { readonly value: object; readonly depth: number }[] = [{ value: root, depth: 1 }];
  let values = 0;
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, depth } = next;
    if (depth > DEEPEST) throw new Refusal(`it is nested deeper than ${DEEPEST} levels`);
    for (const [key, child] of Object.entries(value)) {
      values += 1;
      if (values > MOST_VALUES) throw new Refusal(`it has more than ${MOST_VALUES} values`);
      if (key === '__proto__') throw new Refusal('a name in it is __proto__');
      if (key === '$ref' && typeof child === 'string' && !child.startsWith('#/'))
        throw new Refusal(`it refers to ${child.slice(0, 200)}, which is not in the document`);
      if (typeof child === 'object' && child !== null) left.push({ value: child, depth: depth + 1 });
    }
  }
}

/**
 * @param pointer of a `$ref`, e.g. `#/components/schemas/Pet`
 * @throws Refusal there is nothing
 */
export function valueAt(root: unknown, pointer: string): unknown {
  let value: unknown = root;
  for (const part of pointer.slice(2).split('/')) {
    const key = decoded(part, pointer).replaceAll('~1', '/').replaceAll('~0', '~');
    const holder = value;
    if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key))
      throw new Refusal(`it refers to ${pointer.slice(0, 200)}, which is not there`);
    value = (holder as Node)[key];
  }
  return value;
}

function decoded(part: string, pointer: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refusal(`its reference ${pointer.slice(0, 200)} is not valid`);
  }
}
