/** Describes records of the reconciler for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import { counted } from '../../core/host/terminal.ts';
import {
  DEFAULT_WORDS,
  HIDDEN,
  problemEvents,
  type RecordOf,
  type RecordWords,
  routineWords,
} from '../../core/kernel/actors/definition.ts';
import type { adoption } from '../../machines/reconciler/adoption.ts';
import type { appSave } from '../../machines/reconciler/app-save.ts';
import type { heartbeat } from '../../machines/reconciler/heartbeat.ts';
import type { leg } from '../../machines/reconciler/leg.ts';
import type { reapply } from '../../machines/reconciler/reapply.ts';
import type { saves } from '../../machines/reconciler/saves.ts';
import type { unit } from '../../machines/reconciler/unit.ts';

export const words: RecordWords = {
  'reconciler.leg': describeLegRecord,
  'reconciler.adoption': describeAdoption,
  'reconciler.reapply': describeReapply,
  'reconciler.app_save': describeAppSave,
  'reconciler.saves': describeSaves,
  'reconciler.heartbeat': describeHeartbeat,
  'reconciler.unit': describeUnit,
};

/** States that a reading leads to which found no address. */
const LACKING: ReadonlySet<string> = new Set(['adding', 'observing', 'backingOff', 'refused', 'gaveUp']);

/** Routine, unless it changed something. */
const LEG = {
  LOOKED: 'was looked at, and nothing differs',
  LINK_READ: 'has its address on the link',
  settle: 'is read: the changes have settled',
  secondLook: 'is read a second time',
  linkSettle: 'is looked at on the link: the changes have settled',
  linkPause: 'is looked at on the link again',
  backOff: 'is tried again',
  wait: 'is tried again after the wait',
  resync: 'is read again by its schedule',
};
const REAPPLY = { wait: 'is tried again after the wait', rest: 'may be applied again' };
const APP_SAVE = { pause: 'tries again to put the config back' };
const HEARTBEAT = {
  START: 'begins',
  STOP: 'ends',
  HEARD: 'heard of an event, which the next beat tells',
  DUE: 'a beat is due',
  PUSHED: 'a beat arrived',
  warmUp: 'the first beat is due',
  idle: 'a beat is due',
  batch: 'a beat tells what was heard',
  retry: 'the beat is sent again',
};

export function describeLegRecord(record: RecordOf<typeof leg>): string | undefined {
  const { event, to, effects } = record;
  const what = to.context?.keep === undefined ? 'address' : 'value';
  const requests = (type: string) => effects.some((effect) => effect.type === type);
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return HIDDEN;
    case 'CHANGED':
      return `will be checked: ${event.intf ?? 'an interface'} was reapplied`;
    case 'RESYNC':
      return `is checked: ${event.reason}`;
    case 'LOOKED':
      return event.differs === undefined ? routineWords(record, LEG) : `is read again: ${event.differs}`;
    case 'CONFIGURE':
      return `is configured with ${textOf(event.leg?.address)}`;
    case 'RELEASE':
      return 'is no longer listed';
    case 'LEG_READ':
      if (requests('reconciler.leg_recovered')) return `has its ${what} again in ${ncidText(event)}`;
      if (requests('reconciler.would_add'))
        return `lacks its ${what} in ${ncidText(event)}, and is not adopted`;
      if (requests('reconciler.add_address')) return `lacks its ${what} in ${ncidText(event)}, adds it`;
      // The context says only what changed: it may have lacked it before.
      return to.context?.missing || LACKING.has(String(to.value))
        ? `still lacks its ${what} in ${ncidText(event)}`
        : `has its ${what} in ${ncidText(event)}`;
    case 'LEG_REFUSED':
      return what === 'value'
        ? `is refused: ${event.name}`
        : `is refused: its network is named ${event.name}`;
    case 'LINK_READ':
      if (requests('reconciler.link_recovered')) return 'has its address on the link again';
      return event.present ? routineWords(record, LEG) : 'has its address in the config and not on the link';
    case 'LINK_UNKNOWN':
      return `cannot be looked at on the link: ${event.reason}`;
    case 'LEG_ABSENT':
      return `has no ${what === 'value' ? 'section' : 'interface'} in ${ncidText(event)}`;
    case 'UNREACHABLE':
      return `cannot be read: ${event.reason}`;
    case 'ADDED':
      return `posted ${listText(event.posted, ', ')}: ${ncidText(event)}`;
    case 'CONFLICT':
      return 'lost the race for the ncid';
    case 'PENDING':
      return 'waits for a pending transaction';
    case 'REFUSED':
      return `was refused: ${listText(event.errors, '; ')}`;
    case 'UNKNOWN':
      return `does not know whether it was applied: ${event.reason}`;
    default:
      return routineWords(record, LEG);
  }
}
describeLegRecord.problem = problemEvents('LEG_REFUSED', 'LEG_ABSENT', 'UNREACHABLE', 'REFUSED', 'UNKNOWN');

export function describeAdoption({ event }: RecordOf<typeof adoption>): string | undefined {
  switch (event.type) {
    case 'LISTED':
      return `lists ${Array.isArray(event.legs) ? counted(event.legs.length, 'leg') : 'legs'} for ${String(event.place)}`;
    case 'ADOPT':
      return `are adopted by ${String(event.by)}`;
    case 'init':
      return HIDDEN;
    default:
      return DEFAULT_WORDS;
  }
}

export function describeReapply(record: RecordOf<typeof reapply>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'WANTED':
      return `is wanted for ${event.intf}, whose address is not on the link`;
    case 'SETTLED':
      return `is no longer needed for ${event.intf}`;
    case 'REAPPLIED':
      return 'the router has applied its current config again';
    case 'PENDING':
      return 'waits for a pending transaction';
    case 'NOT_REAPPLIED':
      return `had no effect: ${event.reason}`;
    case 'init':
      return HIDDEN;
    default:
      return routineWords(record, REAPPLY);
  }
}
describeReapply.problem = problemEvents('NOT_REAPPLIED');

export function describeAppSave(record: RecordOf<typeof appSave>): string | undefined {
  const { event, to } = record;
  switch (event.type) {
    case 'BEGIN':
      return `${String(event.by)} drills an app save of ${String(event.label)} (${String(event.intf)})`;
    case 'ABORT':
      return `is stopped by ${String(event.by)}`;
    case 'SAVED':
      return 'has saved the leg without its address';
    case 'RETURNED':
      return to.value === 'passed' ? 'passed: the address came back twice' : 'sees the address again';
    case 'NOT_SAVED':
    case 'NOT_RETURNED':
      return `fails: ${String(event.reason)}`;
    case 'RESTORED':
      return 'has put the config back';
    case 'NOT_RESTORED':
      return `could not put the config back: ${String(event.reason)}`;
    case 'init':
    case 'effect.done':
      return HIDDEN;
    default:
      return routineWords(record, APP_SAVE);
  }
}

export function describeSaves({ event }: RecordOf<typeof saves>): string | undefined {
  if (event.type === 'init') return HIDDEN;
  return event.type === 'DROPPED' ? `a save dropped ${listText(event.paths, ', ')}` : DEFAULT_WORDS;
}

export function describeUnit(record: RecordOf<typeof unit>): string | undefined {
  const { event } = record;
  if (event.type === 'PAUSE') return `is stopped for a while by ${String(event.by)}`;
  if (event.type === 'RESUME') return `is started again by ${String(event.by)}`;
  return routineWords(record, { bound: 'starts again: the longest stop is over' });
}

/** A beat that arrives is routine, so its record is hidden. */
export function describeHeartbeat(record: RecordOf<typeof heartbeat>): string | undefined {
  const { event } = record;
  switch (event.type) {
    case 'PUSH_REFUSED':
      return `no beat arrives: HTTP ${event.status}: ${event.msg ?? event.body}`;
    case 'PUSH_FAILED':
      return `no beat arrives: ${event.reason}`;
    case 'init':
    case 'effect.done':
      return HIDDEN;
    default:
      return routineWords(record, HEARTBEAT);
  }
}

// Fields of an imported record may have any type.

function ncidText({ ncid }: { readonly ncid: string }): string {
  return `ncid ${textOf(ncid).slice(0, 8)}…`;
}

function listText(items: readonly string[], separator: string): string {
  return Array.isArray(items) ? items.map(textOf).join(separator) : '?';
}

/** A log that somebody made may hold anything, also an object that no text can be made of. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '?';
}
