import type { ConsolePage, PageMoment, PageSection, PageStatus } from '../../core/contracts/console.ts';
import { contextOf, dueOf, requestedEffects } from '../../core/host/history/page-states.ts';
import { stateName } from '../../core/host/terminal.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { isObject } from '../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import type { ConfigContext } from '../../machines/router/config-shapes.ts';
import { CONFIG_ACTOR } from './embedded/pending-transaction.ts';
import { observedSections } from './observed-sections.ts';

/** Records of the config that are read: a write is some three. */
const MOST_READ = 1_500;
/** Writes that are listed. */
const MOST_LISTED = 300;

/** What was asked of the config, or happened to it. */
interface Write {
  readonly seq: number;
  readonly at: number;
  readonly what: string;
  readonly who: string;
  readonly paths: readonly string[];
  readonly ncid: string | null;
  readonly transID: string | null;
  readonly problem: string;
  readonly status?: PageStatus;
}

/**
 * The router's config at a moment: the change that waits for its commit, with what is left of its window, and every write
 * that the log holds; or what a router elsewhere was seen to serve. Whole configs are sealed beside the log, so that this page
 * has the paths that changed and no value.
 */
export const routerPage: ConsolePage = {
  name: 'router',
  title: 'Config and pending change',
  data: async (moment) => {
    const state = moment.states.get(CONFIG_ACTOR);
    if (!state) return observedSections(moment);
    const { records, more } = await moment.records({ actors: [CONFIG_ACTOR], limit: MOST_READ });
    const writes = writesOf(records.toReversed());
    const { pending } = contextOf<Partial<ConfigContext>>(state);
    const touched = pathsOf(pending?.transID, writes);
    return [
      facts(state, moment, writes),
      ...(pending
        ? [
            {
              kind: 'table' as const,
              title: 'What the pending change touches',
              columns: [{ name: 'path', title: 'Path' }],
              rows: touched.map((path) => ({ cells: { path } })),
            },
          ]
        : []),
      history(writes.toReversed(), more),
      {
        kind: 'text',
        text:
          'Whole configs are sealed beside the log, and an export leaves them out: values before and after are shown of a running ' +
          'instance alone, by its page Config versions and by `holdfast router diff`, secrets as fingerprints.',
      },
    ];
  },
};

function facts(state: ActorState, moment: PageMoment, writes: readonly Write[]): PageSection {
  const { active, pending, last, queue = [] } = contextOf<Partial<ConfigContext>>(state);
  const opened = pending && writes.findLast(({ transID }) => transID === pending.transID);
  const first = pending && writes.find(({ transID, ncid }) => transID === pending.transID && ncid !== null);
  const due = dueOf(moment, state, 'window');
  const source = writes.findLast(({ ncid }) => ncid !== null && ncid === active?.ncid);
  return {
    kind: 'facts',
    facts: [
      {
        label: 'config in force',
        value: active?.ncid || 'not read yet',
        actor: state.ref,
        ...(source && { since: source.at, seq: source.seq }),
      },
      pending
        ? {
            label: 'pending change',
            value: `${pending.transID}, by ${pending.who}`,
            status: 'degraded',
            ...(first && { since: first.at }),
            ...(opened && { seq: opened.seq }),
            ...(moment.isNow && { page: { name: 'router-versions', title: 'values before and after' } }),
          }
        : { label: 'pending change', value: 'none', status: 'ok' },
      ...(pending
        ? [
            due === undefined
              ? {
                  label: 'its window',
                  value: `is over; it ${stateName(state.value).includes('retrying') ? 'could not be reverted yet, and is tried again' : 'is being reverted'}`,
                  status: 'failing' as const,
                }
              : { label: 'reverts unless it is committed', value: '', until: due },
          ]
        : []),
      ...(last ? [{ label: 'last transaction', value: `${last.transID} was ${last.outcome}` }] : []),
      ...(queue.length > 0 ? [{ label: 'writes that wait', value: queue.length }] : []),
    ],
  };
}

/** What the writes of a transaction changed, each against the config before it. */
function pathsOf(transID: string | undefined, writes: readonly Write[]): string[] {
  const own = writes.filter((write) => write.transID === transID && write.ncid !== null);
  return transID === undefined ? [] : [...new Set(own.flatMap(({ paths }) => paths))].sort();
}

function history(writes: readonly Write[], more: boolean): PageSection {
  const columns = [
    { name: 'at', title: 'When', format: 'time' },
    { name: 'what', title: 'What' },
    { name: 'who', title: 'Who' },
    { name: 'paths', title: 'Changed' },
    { name: 'ncid', title: 'ncid' },
    { name: 'problem', title: 'Why not' },
  ] as const;
  const rows = writes.slice(0, MOST_LISTED).map(({ seq, at, what, who, paths, ncid, problem, status }) => ({
    seq,
    ...(status && { status }),
    cells: { at, what, who, paths: paths.join(', '), ncid, problem },
  }));
  const isCut = more || writes.length > MOST_LISTED;
  return { kind: 'table', title: isCut ? 'Writes, the newest' : 'Writes', columns, rows };
}

/** @param records oldest first */
function writesOf(records: readonly LogRecord[]): Write[] {
  const applies = requestedEffects(records, 'router.apply');
  const verifies = requestedEffects(records, 'router.verify');
  /** Paths by the config that was posted, and by the transaction, all of which a revert takes back. */
  const changedBy = new Map<string, readonly string[]>();
  const changedWithin = new Map<string | null, readonly string[]>();
  return records.flatMap((record): Write[] => {
    const { event, seq, at } = record;
    const nothing = { seq, at, paths: [], ncid: null, transID: null, problem: '' };
    if (event.type === 'SET') {
      const changed = Array.isArray(event.changed) ? event.changed.map(String) : [];
      if (typeof event.fingerprint === 'string') changedBy.set(event.fingerprint, changed);
      const transID = textOf(event.transID);
      const asked = {
        ...nothing,
        who: String(event.who),
        transID,
        what: whatOf(event.op ?? 'save', transID),
      };
      const reply = replyTo(record, event.request);
      if (!reply) return [];
      if (reply.status !== 200)
        return [{ ...asked, paths: changed, problem: reply.errors, status: 'degraded' as const }];
      return [{ ...asked, ncid: reply.ncid }];
    }
    const params = jobOf(record, applies, verifies);
    const transID = textOf(params.transID);
    if (event.type === 'APPLIED' && params.op !== 'reapply') {
      const isOver = params.op === 'revert' && params.who === 'holdfast';
      const changed = changedBy.get(String(event.fingerprint)) ?? [];
      const within = changedWithin.get(transID) ?? [];
      if (params.op === 'append') changedWithin.set(transID, [...new Set([...within, ...changed])]);
      return [
        {
          ...nothing,
          what: isOver ? `reverts ${transID ?? ''}: its window was over` : whatOf(params.op, transID),
          who: String(params.who ?? ''),
          ncid: textOf(event.ncid),
          transID,
          paths: params.op === 'revert' ? within : params.op === 'commit' ? [] : changed,
        },
      ];
    }
    if (event.type === 'APPLY_FAILED') {
      const problem = Array.isArray(event.errors) ? event.errors.join('; ') : '';
      const what = `could not apply: ${whatOf(params.op, transID)}`;
      return [{ ...nothing, what, who: String(params.who ?? ''), transID, problem, status: 'failing' }];
    }
    if (event.type === 'OVERTAKEN' || (event.type === 'LOADED' && raisesStoreChanged(record)))
      return [
        {
          ...nothing,
          what: 'the store was changed by somebody else',
          who: 'not known',
          ncid: textOf(event.ncid),
          status: 'degraded',
        },
      ];
    if (delayOf(event.type) === 'window')
      return [
        { ...nothing, what: 'the window of the pending change is over', who: 'holdfast', status: 'degraded' },
      ];
    return [];
  });
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

function whatOf(op: unknown, transID: string | null): string {
  switch (op) {
    case 'append':
      return `changes within ${transID ?? 'a transaction'}`;
    case 'commit':
      return `commits ${transID ?? ''}`;
    case 'revert':
      return `reverts ${transID ?? ''}`;
    default:
      return 'saves';
  }
}

/** What an outcome is the outcome of: the parameters of its apply. */
function jobOf(
  { outcome }: LogRecord,
  ...requested: readonly ReturnType<typeof requestedEffects>[]
): Readonly<Record<string, unknown>> {
  const params = requested.map((effects) => effects.get(outcome ?? '')?.params).find(isObject);
  return params ?? {};
}

/** The answer that a request got with its own record. */
function replyTo({ effects }: LogRecord, request: unknown) {
  for (const { type, params } of effects) {
    if (type !== 'http.reply' || !isObject(params) || params.to !== request) continue;
    const body = isObject(params.body) ? params.body : {};
    const errors = Array.isArray(body.errors) ? body.errors.join('; ') : '';
    return { status: params.status, errors, ncid: textOf(body.ncid) };
  }
  return undefined;
}

const raisesStoreChanged = ({ effects }: LogRecord): boolean =>
  effects.some(
    ({ type, params }) =>
      type === 'alerts.raise' && isObject(params) && params.name === 'router.store_changed',
  );
