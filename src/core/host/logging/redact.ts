import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { Json } from '../../kernel/json.ts';
import { maskText, REDACTED } from './mask-text.ts';
import { isSecretField, isSecretName, type Scope, scopeInside } from './secret-fields.ts';

/** How much of a value is processed; the rest is cut off and never passed on. */
export interface Bounds {
  readonly depth: number;
  /** Values of any kind. */
  readonly values: number;
  /** Characters of one text, and of all. */
  readonly text: number;
  readonly allText: number;
}

const LINE: Bounds = { depth: 16, values: 5_000, text: 8_192, allText: 262_144 };
/** For a page that shows a whole network config. */
export const PAGE: Bounds = { depth: 64, values: 200_000, text: 65_536, allText: 16_777_216 };

const CUT = '[cut]';

/**
 * The one redactor (R32): a copy of `value` as plain JSON, with secrets replaced by `[redacted]`. Log lines, spans,
 * error answers and pages pass through it. It never throws and never runs on for long: cycles, getters that throw
 * and endless structures come out as short notes.
 *
 * @param document which document the value is, of those that plugins declare (`SecretFields.inside`)
 */
export function redact(value: unknown, bounds: Bounds = LINE, document?: Scope): Json {
  return new Walk(bounds).visit(value, document, 0) ?? null;
}

class Walk {
  readonly #bounds: Bounds;
  readonly #ancestors = new Set<object>();
  #values: number;
  #text: number;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.#values = bounds.values;
    this.#text = bounds.allText;
  }

  /** @returns undefined for what JSON leaves out: functions, symbols, undefined */
  visit(value: unknown, scope: Scope, depth: number): Json | undefined {
    this.#values -= 1;
    if (this.#values < 0) return CUT;
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'string') return this.#string(value, scope, depth);
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
    if (typeof value === 'bigint') return value.toString();
    if (typeof value !== 'object') return undefined;
    if (this.#ancestors.has(value)) return '[circular]';
    if (depth >= this.#bounds.depth) return CUT;
    this.#ancestors.add(value);
    try {
      return this.#object(value, scope, depth);
    } catch {
      return '[unreadable]'; // a getter, a proxy or a toJSON threw
    } finally {
      this.#ancestors.delete(value);
    }
  }

  #string(text: string, scope: Scope, depth: number): Json | undefined {
    if (this.#text <= 0) return CUT;
    const document = text.length <= this.#bounds.text ? parsedJson(text) : undefined;
    // JSON inside a text is redacted by the same rules.
    const masked =
      document && depth < this.#bounds.depth
        ? maskText(JSON.stringify(this.visit(document, scope, depth + 1)), this.#bounds.text)
        : maskText(text, this.#bounds.text);
    this.#text -= masked.length;
    return masked;
  }

  #object(value: object, scope: Scope, depth: number): Json | undefined {
    if (Array.isArray(value)) return this.#array(value, scope, depth);
    if (ArrayBuffer.isView(value) || isBuffer(value)) return `[${value.byteLength} bytes]`;
    if (value instanceof Error) return this.#fields(errorFields(value), scope, depth);
    if (value instanceof Map) return this.#fields(Object.fromEntries(value), scope, depth);
    if (value instanceof Set) return this.#array([...value], scope, depth);
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      return this.visit(value.toJSON(), scope, depth + 1);
    }
    return this.#fields(value as Record<string, unknown>, scope, depth);
  }

  #fields(object: Record<string, unknown>, scope: Scope, depth: number): Json {
    const entries: [string, Json][] = [];
    for (const key of Object.keys(object)) {
      if (this.#values <= 0) {
        entries.push([CUT, true]);
        break;
      }
      const value = isSecretField(scope, object, key)
        ? REDACTED
        : this.visit(object[key], scopeInside(scope, key), depth + 1);
      if (value !== undefined) entries.push([maskText(key, 256), value]);
    }
    return Object.fromEntries(entries); // defines, so that `__proto__` stays a mere key
  }

  #array(items: readonly unknown[], scope: Scope, depth: number): Json {
    const result: Json[] = [];
    for (const [index, item] of items.entries()) {
      if (this.#values <= 0) {
        result.push(CUT);
        break;
      }
      // Raw headers and arguments: a name, and its value behind it.
      const named = typeof item === 'string' && namesSecret(items[index - 1]);
      result.push(named ? REDACTED : (this.visit(item, scope, depth + 1) ?? null));
    }
    return result;
  }
}

/** Also one of another realm, such as a test's. */
function isBuffer(value: object): value is ArrayBuffer | SharedArrayBuffer {
  const kind = Object.prototype.toString.call(value);
  return kind === '[object ArrayBuffer]' || kind === '[object SharedArrayBuffer]';
}

function namesSecret(item: unknown): boolean {
  return typeof item === 'string' && item.length <= 64 && /^[\w-]+$/.test(item) && isSecretName(item);
}

function parsedJson(text: string): object | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // it only looked like JSON; the text patterns see to it
  }
}

function errorFields(error: Error): Record<string, unknown> {
  const { stack, cause, name, message } = error;
  const errors = error instanceof AggregateError ? { errors: error.errors } : {};
  if (isCoded(error)) {
    const { code, what, remedy } = error;
    return { code, what, remedy, stack, cause };
  }
  return { name, code: 'code' in error ? error.code : undefined, message, stack, cause, ...errors };
}
