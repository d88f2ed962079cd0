import { isUtf8 } from 'node:buffer';
import { isObject, nestsDeeper } from '../../kernel/json.ts';
import { HostError } from '../errors/host-error.ts';

/** Deeper than any config or protocol message; deep nesting serves only to exhaust a stack. */
const DEEPEST = 64;

/**
 * Parses the body of a request. What its error says never quotes the body, which may hold secrets.
 *
 * @throws HF_HTTP_BODY_INVALID it is empty, not UTF-8, not JSON, or has a key that could change the prototype of what it is
 * copied into; HF_HTTP_BODY_DEEP it is nested deeper than 64 levels
 */
export function parseJsonBody(body: Buffer): unknown {
  return readJsonBody(body).value;
}

/** Parses a body as `parseJsonBody` does, and also returns its text. @throws HF_HTTP_BODY_INVALID, HF_HTTP_BODY_DEEP */
export function readJsonBody(body: Buffer): { readonly value: unknown; readonly text: string } {
  if (body.length === 0) refuse('it is empty');
  if (!isUtf8(body)) refuse('it is not UTF-8');
  const text = body.toString('utf8');
  if (nestsDeeper(text, DEEPEST)) throw new HostError('HF_HTTP_BODY_DEEP', { limit: DEEPEST });
  const value = parse(text);
  // Both names may hide behind escapes; without either there is nothing to look for.
  if (/__proto__|constructor|\\u/.test(text) && isPoisoned(value)) {
    refuse('it has a key __proto__ or constructor.prototype');
  }
  return { value, text };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    const position = /at position (\d+)/.exec(message)?.[1];
    if (position !== undefined) return refuse(`it goes wrong at character ${position}`);
    return refuse(/end of JSON|Unterminated/.test(message) ? 'it ends too early' : 'it is not JSON');
  }
}

function isPoisoned(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isPoisoned);
  if (!isObject(value)) return false;
  if (Object.hasOwn(value, '__proto__')) return true;
  const maker = Object.hasOwn(value, 'constructor') ? value.constructor : undefined;
  if (isObject(maker) && Object.hasOwn(maker, 'prototype')) return true;
  return Object.values(value).some(isPoisoned);
}

function refuse(reason: string): never {
  throw new HostError('HF_HTTP_BODY_INVALID', { reason });
}
