/** The option `keep` of the reconciler: which fields are held, and which are refused when the configuration is loaded. */
import { z } from 'zod';
import { canonicalJson } from '../../core/kernel/canonical-json.ts';
import { isJson, jsonEqual, nestedDeeper } from '../../core/kernel/json.ts';
import { holdsSecret, networkIn } from './kept-fields.ts';
import { isNeverTouched } from './legs.ts';

/** The value stands in alerts and records, as text of at most so many characters. */
const LONGEST_VALUE = 1_024;
const LONGEST_PATH = 200;
const DEEPEST_VALUE = 8;
/** Root fields that every write sets, or that control it (R4). */
const CONTROL: readonly string[] = [
  'ncid',
  'reqId',
  'ts',
  'transactionOp',
  'transID',
  'ignoreNcid',
  'version',
];
/** The keys of an interface: section, kind, name. */
const INTERFACE_KEYS = 3;

/**
 * The keys of a path as one writes it. A part that begins with a digit belongs to the key before it, as in `eth1.10`; keys
 * for which that is wrong are given as an array.
 */
export function keysOf(path: string): string[] {
  const keys: string[] = [];
  for (const part of path.split('.')) {
    const before = /^\d/.test(part) ? keys.pop() : undefined;
    keys.push(before === undefined ? part : `${before}.${part}`);
  }
  return keys;
}

const key = z.string().regex(/^[^\p{C}]{1,64}$/u, 'a key must have 1 to 64 printable characters');

const field = z
  .strictObject({
    /** Keys from the root of the config, joined by dots or as an array: `dhcp6.eth1.10.nameservers`. */
    path: z.union([z.string().transform(keysOf).pipe(z.array(key)), z.array(key)]),
    /** JSON without secrets. */
    value: z.unknown().refine((value) => isJson(value) && value !== null, 'it must be JSON, and not null'),
    /** Of a list: whether it must have exactly these entries, or at least these. */
    match: z.enum(['equals', 'contains']).optional(),
    /** For people; the path unless set. */
    label: z.string().min(1).max(64).optional(),
  })
  .superRefine(({ path, value, match }, context) => {
    const refuse = (path: PropertyKey, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message, continue: false });
    const [section = ''] = path;
    if (CONTROL.includes(section))
      refuse('path', `it must not be ${section}: every write sets that field, or is controlled by it`);
    else if (section === 'interface' ? path.length <= INTERFACE_KEYS : path.length < 2)
      refuse('path', 'it must name a field, not a whole section or interface');
    if (path.join('.').length > LONGEST_PATH)
      refuse('path', `it must not be longer than ${LONGEST_PATH} characters`);
    if (!isJson(value)) return;
    if (nestedDeeper(value, DEEPEST_VALUE) || canonicalJson(value).length > LONGEST_VALUE)
      refuse(
        'value',
        `it must not be longer than ${LONGEST_VALUE} characters, or deeper than ${DEEPEST_VALUE} levels`,
      );
    else if (holdsSecret(path, value)) refuse('value', 'it must hold no secret, and lead to none');
    if (!Array.isArray(value) && match === 'contains') refuse('match', 'only a list can contain entries');
    if (Array.isArray(value) && match === undefined)
      refuse(
        'match',
        'say of a list whether it must have exactly these entries (equals), or at least these (contains)',
      );
    if (match === 'contains' && Array.isArray(value) && value.length === 0)
      refuse('value', 'every list contains no entries');
  })
  .transform(({ path, value, match = 'equals', label = path.join('.') }) => ({ path, value, match, label }));

export const keep = z.array(field).max(100);

type Kept = z.output<typeof keep>;
type Refuse = (path: PropertyKey[], message: string) => void;

/** Refuses fields that must not be held beside the legs, or beside one another. @param legs interfaces of the listed legs */
export function refuseFields(
  fields: Kept,
  never: readonly string[],
  legs: readonly string[],
  refuse: Refuse,
): void {
  for (const [index, { path, value, label }] of fields.entries()) {
    const at = (name: string) => ['keep', index, name];
    const network = networkIn(path, never) ?? (isNeverTouched(label) ? label : undefined);
    if (network !== undefined)
      refuse(at('path'), `it must not belong to ${network}: that network is never touched`);
    const named = networkIn(value, never);
    if (named !== undefined) refuse(at('value'), `it must not name ${named}: that network is never touched`);
    const [section, , intf = '', name] = path;
    if (section === 'interface' && name === 'ipv6' && legs.includes(intf))
      refuse(at('path'), `the address of ${intf} is held as a leg`);
    const text = path.join('.');
    if (legs.includes(text)) refuse(at('path'), `${text} is listed as a leg`);
    const other = fields
      .slice(0, index)
      .find((earlier) => isWithin(earlier.path, path) || isWithin(path, earlier.path));
    if (other || fields.slice(0, index).some((earlier) => earlier.path.join('.') === text))
      refuse(at('path'), `${text} is listed twice, or lies in another listed field`);
  }
}

/** Whether a path is another one, or lies below it. */
function isWithin(path: readonly string[], other: readonly string[]): boolean {
  return jsonEqual(path.slice(0, other.length), other);
}
