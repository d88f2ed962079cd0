import type { RouterChange } from '../../../core/contracts/router.ts';
import { isObject } from '../../../core/kernel/json.ts';

/** What a message says, and what of it could not be understood. */
export interface Understood {
  readonly change: RouterChange;
  /** Undefined when nothing was wrong. */
  readonly fault?: string;
}

const FIELDS = ['ncid', 'transID', 'intf'] as const;
/** No event says more; a larger one is not parsed. */
const LARGEST = 64 * 1024;

/**
 * Understands the payload of a router's channel: nothing, or JSON of which only our fields count. The channel is the
 * news and the payload a remark, so a bad one takes nothing away.
 *
 * @param at when it was received, epoch milliseconds; a router's own clock is not ours
 */
export function understand(text: string, at: number): Understood {
  if (text.trim() === '') return { change: { at } };
  if (text.length > LARGEST) return { change: { at }, fault: `it is ${text.length} characters long` };
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { change: { at }, fault: 'it is no JSON' };
  }
  if (!isObject(body)) return { change: { at }, fault: 'it is no JSON object' };
  const given = body;
  const wrong = FIELDS.filter((field) => given[field] !== undefined && typeof given[field] !== 'string');
  const said = FIELDS.filter((field) => typeof given[field] === 'string');
  const { up } = given;
  const change = {
    ...Object.fromEntries(said.map((field) => [field, given[field]])),
    ...(typeof up === 'boolean' && { up }),
    at,
  };
  return wrong.length === 0 ? { change } : { change, fault: `${wrong.join(', ')} is no text` };
}
