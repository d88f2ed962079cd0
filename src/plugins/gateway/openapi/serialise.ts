/** Parameters as text, by their style (OpenAPI 3.1, "Style Values"; RFC 6570). */
import { isObject, type Json } from '../../../core/kernel/json.ts';
import type { Parameter } from './model.ts';

/** Why a value can't be sent: a sentence for the caller. */
export class UnusableArgument extends Error {}

type Serialised = Pick<Parameter, 'argument' | 'name' | 'style' | 'explode'>;

/** @throws UnusableArgument @returns `name=value` pairs, percent-encoded */
export function queryPairs(parameter: Serialised, value: Json): string[] {
  const { name, style, explode } = parameter;
  const key = encoded(name, parameter);
  const pair = (text: string): string => `${key}=${text}`;
  if (style === 'json') return [pair(encoded(JSON.stringify(value), parameter))];
  if (Array.isArray(value)) {
    const items = value.map((item) => encoded(scalar(item, parameter), parameter));
    if (explode) return items.map(pair);
    return items.length === 0 ? [] : [pair(items.join(separatorOf(style)))];
  }
  if (!isObject(value)) return [pair(encoded(scalar(value, parameter), parameter))];
  const fields = fieldsOf(value, parameter);
  if (style === 'deepObject')
    return fields.map(
      ([field, text]) => `${key}${encodeURIComponent('[')}${field}${encodeURIComponent(']')}=${text}`,
    );
  if (explode) return fields.map(([field, text]) => `${field}=${text}`);
  return fields.length === 0 ? [] : [pair(fields.flat().join(separatorOf(style)))];
}

function separatorOf(style: Parameter['style']): string {
  if (style === 'spaceDelimited') return '%20';
  return style === 'pipeDelimited' ? '%7C' : ',';
}

/** @throws UnusableArgument @returns what stands in the path in place of the parameter, percent-encoded */
export function pathText(parameter: Serialised, value: Json): string {
  const { name, style, explode } = parameter;
  const key = encoded(name, parameter);
  const encode = (one: Json): string => encoded(segment(scalar(one, parameter), parameter), parameter);
  const { first, joint } = PATH_STYLES[style] ?? { first: '', joint: ',' };
  if (style === 'json') return encoded(segment(JSON.stringify(value), parameter), parameter);
  const isMatrix = style === 'matrix';
  if (Array.isArray(value)) {
    if (value.length === 0) throw unusable(parameter, 'must not be empty');
    const items = value.map(encode);
    if (isMatrix)
      return explode ? items.map((item) => `;${key}=${item}`).join('') : `;${key}=${items.join(',')}`;
    return first + items.join(explode ? joint : ',');
  }
  if (isObject(value)) {
    const fields = Object.entries(value).map(([field, one]) => [
      encoded(segment(field, parameter), parameter),
      encode(one),
    ]);
    if (fields.length === 0) throw unusable(parameter, 'must not be empty');
    const pairs = fields.map(([field, text]) => `${field}=${text}`);
    if (isMatrix && !explode) return `;${key}=${fields.flat().join(',')}`;
    return first + (explode ? pairs.join(joint) : fields.flat().join(','));
  }
  return isMatrix ? `;${key}=${encode(value)}` : first + encode(value);
}

/** What a path style writes first, and between exploded values. */
const PATH_STYLES: Partial<Record<Parameter['style'], { readonly first: string; readonly joint: string }>> = {
  label: { first: '.', joint: '.' },
  matrix: { first: ';', joint: ';' },
};

/** @throws UnusableArgument @returns the value of a header: one line of printable ASCII */
export function headerText(parameter: Serialised, value: Json): string {
  const text = headerValue(parameter, value);
  if (!/^[\x20-\x7e]*$/.test(text))
    throw unusable(parameter, 'is sent in a header, and may have printable ASCII characters only');
  return text;
}

function headerValue(parameter: Serialised, value: Json): string {
  if (parameter.style === 'json') return JSON.stringify(value);
  if (Array.isArray(value)) return value.map((item) => scalar(item, parameter)).join(',');
  if (!isObject(value)) return scalar(value, parameter);
  const fields = Object.entries(value).map(([field, one]) => [field, scalar(one, parameter)]);
  return parameter.explode ? fields.map((pair) => pair.join('=')).join(',') : fields.flat().join(',');
}

function fieldsOf(value: Readonly<Record<string, Json>>, parameter: Serialised): string[][] {
  return Object.entries(value).map(([field, one]) => [
    encoded(field, parameter),
    encoded(scalar(one, parameter), parameter),
  ]);
}

function scalar(value: Json, parameter: Serialised): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw unusable(
    parameter,
    value === null ? 'must not be null' : 'must not hold arrays or objects within others',
  );
}

function encoded(text: string, parameter: Serialised): string {
  if (!text.isWellFormed()) throw unusable(parameter, 'is no valid text');
  return encodeURIComponent(text);
}

/** A value that is empty, or leads out of its place in the path, would make another request of this one. */
function segment(text: string, parameter: Serialised): string {
  if (text === '') throw unusable(parameter, 'is sent in the path, and must not be empty');
  if (/\p{Cc}/u.test(text))
    throw unusable(parameter, 'is sent in the path, and must not have control characters');
  const parts = decodedTwice(text).split(/[/\\]/);
  // Many servers take away what follows a semicolon.
  if (parts.some((part) => /^\.\.?(?:;|$)/.test(part)))
    throw unusable(parameter, 'is sent in the path, and must not have . or .. between slashes');
  return text;
}

/** A server may decode more often than once. */
function decodedTwice(text: string): string {
  const once = (from: string): string =>
    from.replace(/%(2e|2f|5c|3b|25)/gi, (code) => decodeURIComponent(code));
  return once(once(text));
}

const unusable = ({ argument }: Serialised, reason: string): UnusableArgument =>
  new UnusableArgument(`The argument ${argument} ${reason}.`);
