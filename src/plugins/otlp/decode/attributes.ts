import {
  base64,
  flag,
  given,
  ItemRefused,
  integer,
  type Message,
  message,
  messages,
  name,
  small,
  text,
} from './values.ts';

/** More than any producer's limits allow. */
const MOST_ATTRIBUTES = 1_024;
const DEEPEST = 16;

/** The kinds of a value, in the order of their field numbers. */
const KINDS = [
  'stringValue',
  'boolValue',
  'intValue',
  'doubleValue',
  'arrayValue',
  'kvlistValue',
  'bytesValue',
] as const;

/**
 * Attributes as the map of strings that every table keeps. Of a key that is given twice the last value counts.
 *
 * @throws ItemRefused they are no attributes, too many, or nested too deep
 */
export function attributes(value: unknown): Record<string, string> {
  const map: Record<string, string> = {};
  for (const pair of messages(value, 'attributes', MOST_ATTRIBUTES)) {
    put(map, name(pair.key, 'the key of an attribute'), valueText(pair.value));
  }
  return map;
}

/** Adds attributes that say how many others the producer dropped; the tables have no column for that. */
export function noteDropped(
  map: Record<string, string>,
  dropped: Readonly<Record<string, unknown>>,
): Record<string, string> {
  for (const [what, count] of Object.entries(dropped)) {
    const number = small(count, `the dropped ${what} count`);
    if (number > 0) put(map, `otel.dropped_${what}_count`, String(number));
  }
  return map;
}

/** A field that is named `__proto__` is one like any other. */
function put(map: Record<string, string>, key: string, value: string): void {
  if (key !== '__proto__') map[key] = value;
  else Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
}

/**
 * A value of any kind as one string: lists and maps as JSON, bytes as base64.
 *
 * @throws ItemRefused it is no value, or nested too deep
 */
export function valueText(value: unknown): string {
  const { kind, content } = kindOf(value);
  switch (kind) {
    case undefined:
      return '';
    case 'stringValue':
      return text(content, 'a string value');
    case 'bytesValue':
      return base64(content, 'a bytes value');
    default:
      return json(value, 0);
  }
}

function json(value: unknown, depth: number): string {
  if (depth > DEEPEST) throw new ItemRefused(`a value is nested deeper than ${DEEPEST} levels`);
  const { kind, content } = kindOf(value);
  switch (kind) {
    case undefined:
      return 'null';
    case 'stringValue':
      return JSON.stringify(text(content, 'a string value'));
    case 'boolValue':
      return String(flag(content, 'a boolean value'));
    case 'intValue':
      return integer(content, 'an integer value', true);
    case 'doubleValue':
      return doubleText(content, depth);
    case 'bytesValue':
      return JSON.stringify(base64(content, 'a bytes value'));
    case 'arrayValue': {
      const values = message(content, 'a list value').values;
      return `[${messages(values, 'values of a list')
        .map((one) => json(one, depth + 1))
        .join(',')}]`;
    }
    case 'kvlistValue': {
      const pairs = messages(message(content, 'a map value').values, 'values of a map');
      const field = ({ key, value: one }: Message) =>
        `${JSON.stringify(name(key, 'the key of a map'))}:${json(one, depth + 1)}`;
      return `{${pairs.map(field).join(',')}}`;
    }
  }
}

/** Inside of a list or a map what is no JSON number is a JSON string. */
function doubleText(content: unknown, depth: number): string {
  const number =
    typeof content === 'number' ? content : typeof content === 'string' ? Number(content) : undefined;
  if (number === undefined || (Number.isNaN(number) && typeof content === 'string' && content !== 'NaN')) {
    throw new ItemRefused('a floating-point value is no number');
  }
  const written = Object.is(number, -0) ? '-0' : String(number);
  return Number.isFinite(number) || depth === 0 ? written : `"${written}"`;
}

function kindOf(value: unknown): { kind: (typeof KINDS)[number] | undefined; content: unknown } {
  const holder = message(value, 'the value of an attribute');
  for (const kind of KINDS) {
    const content = given(holder, kind);
    if (content !== undefined) return { kind, content };
  }
  return { kind: undefined, content: undefined };
}
