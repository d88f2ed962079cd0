import type { Decision } from '../actors/transition.ts';
import { jsonEqual } from '../json.ts';
import type { LogEvent } from '../log/record.ts';
import type { Candidate } from './guards.ts';

/** A decision that comes out otherwise. */
export interface Difference {
  /** The recorded number; of what nobody recorded, that of the record before it. */
  readonly seq: number;
  readonly at: number;
  readonly actor: string;
  readonly event: LogEvent;
  /** `timer` went off only now, `inserted` and `dropped` are the changes themselves. */
  readonly kind: 'decided' | 'timer' | 'inserted' | 'dropped';
  readonly expected?: Decision;
  readonly got?: Decision;
  /** The guards that were asked for `got`; absent beyond the first differences. */
  readonly guards?: readonly Candidate[];
}

/** A recorded input that would perhaps, or certainly, not have come as it did. */
export interface Untrusted {
  readonly seq: number;
  readonly actor: string;
  readonly event: string;
  readonly reason: string;
}

/** How many of each kind are listed: everything in a large log may be different. */
const LISTED = 5_000;

/** What is found while a log runs again with something changed: the first of it, and how much more there is. */
export class Findings {
  readonly differences: Difference[] = [];
  /** Decisions where only the context differs, e.g. counters and times: they are kept apart, so as not to bury the others. */
  readonly remembered: Difference[] = [];
  readonly untrusted: Untrusted[] = [];
  /** How many more there are of each kind. */
  readonly more = { differences: 0, remembered: 0, untrusted: 0 };

  differ(difference: Difference): void {
    const kind = isRemembered(difference) ? 'remembered' : 'differences';
    if (this[kind].length < LISTED) this[kind].push(difference);
    else this.more[kind] += 1;
  }

  distrust(input: Untrusted): void {
    if (this.untrusted.length < LISTED) this.untrusted.push(input);
    else this.more.untrusted += 1;
  }
}

/** Same state, same effects, and both took the event, or it is an answer that nobody waits for any more. */
function isRemembered({ expected, got }: Difference): boolean {
  if (!expected || !got) return false;
  const taken = got.stale || expected.ignored === got.ignored;
  const failed = (expected.failed === undefined) !== (got.failed === undefined);
  return (
    taken && !failed && jsonEqual(expected.to.value, got.to.value) && jsonEqual(expected.effects, got.effects)
  );
}
