import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import { jsonText } from '../../../../core/host/terminal.ts';
import { jsonEqual } from '../../../../core/kernel/json.ts';
import { dotted, type Leaf, leavesOf, pointer } from './leaves.ts';

/** One differing path of two configs. */
export interface Change {
  readonly path: string;
  readonly op: 'added' | 'removed' | 'changed';
  /** As text; a secret as its fingerprint. */
  readonly before?: string;
  readonly after?: string;
}

/** Names a secret without telling it: equal secrets have equal names. */
export type Fingerprint = (value: unknown) => string;

/** Enough to tell secrets of one config apart, and to compare by eye. */
const SHOWN = 'fp_'.length + 12;

/**
 * Where two configs differ, path by path, in the order of the first with what is new behind; equal configs have no
 * change. The ncid, which every write changes, is left out.
 */
export function differenceOf(
  before: NetworkConfig,
  after: NetworkConfig,
  fingerprint: Fingerprint,
): Change[] {
  const [old, now] = [byPath(before), byPath(after)];
  const leaves = [...old.values(), ...now.values()];
  // A secret stays one also where somebody put it in a field of another name.
  const secrets = new Set(leaves.flatMap(({ value, secret }) => (secret ? [value] : [])));
  const text = ({ value, secret }: Leaf) =>
    secret || secrets.has(value) ? `secret ${fingerprint(value).slice(0, SHOWN)}` : jsonText(value);
  const changes: Change[] = [];
  for (const [key, leaf] of old) {
    const other = now.get(key);
    const path = dotted(leaf.path);
    if (!other) changes.push({ path, op: 'removed', before: text(leaf) });
    else if (!jsonEqual(leaf.value, other.value)) {
      // A value that is secret on one side is on both: its path is the same.
      const secret = leaf.secret || other.secret;
      const [from, to] = [leaf, other].map((side) => text({ ...side, secret }));
      changes.push({ path, op: 'changed', before: from ?? '', after: to ?? '' });
    }
  }
  for (const [key, leaf] of now)
    if (!old.has(key)) changes.push({ path: dotted(leaf.path), op: 'added', after: text(leaf) });
  return changes;
}

/** Lines for a terminal, without colours. */
export function changeLines(changes: readonly Change[]): { mark: '+' | '-' | '~'; text: string }[] {
  const width = Math.min(60, Math.max(0, ...changes.map(({ path }) => path.length)));
  return changes.map(({ path, op, before = '', after = '' }) => {
    const name = path.padEnd(width);
    if (op === 'added') return { mark: '+', text: `${name}  ${after}` };
    if (op === 'removed') return { mark: '-', text: `${name}  ${before}` };
    return { mark: '~', text: `${name}  ${before} → ${after}` };
  });
}

function byPath({ ncid: _, ...config }: NetworkConfig): Map<string, Leaf> {
  // The top of an empty config is a leaf, too, and says nothing.
  const leaves = leavesOf(config).filter(({ path }) => path.length > 0);
  return new Map(leaves.map((leaf) => [pointer(leaf.path), leaf]));
}
