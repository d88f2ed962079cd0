import { useEffect, useState } from 'preact/hooks';
import type { RecordAnswer, WhatIfAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { ApiError, get, post } from '../api.ts';
import { Differences } from '../components/differences.tsx';
import { Problem } from '../components/states.tsx';
import { address, params } from '../location.ts';
import { Time } from '../text.tsx';

/** One thing that is imagined otherwise; all fields as they are typed. */
interface Row {
  readonly key: number;
  readonly kind: 'drop' | 'alter' | 'insert';
  /** The record; of an insertion the one after which it comes. */
  readonly seq: string;
  readonly actor: string;
  readonly event: string;
}

const KINDS = [
  ['drop', 'did not happen'],
  ['alter', 'had other fields'],
  ['insert', 'an event came after'],
] as const;

const json = (value: unknown): string => JSON.stringify(value, null, 1);

/** Drop, alter and insert events, and see which decisions would have been others. Nothing is carried out. */
export function WhatIfPage() {
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [outcome, setOutcome] = useState<WhatIfAnswer | undefined>(undefined);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [running, setRunning] = useState(false);
  const add = (row: Omit<Row, 'key'>) =>
    setRows((known) => [...known, { ...row, key: Math.max(0, ...known.map(({ key }) => key)) + 1 }]);
  const edit = (key: number, changes: Partial<Row>) =>
    setRows((known) => known.map((row) => (row.key === key ? { ...row, ...changes } : row)));
  /** A row from a record: with its actor and its event, so that only what differs has to be typed. */
  const prefill = async (kind: Row['kind'], seq: string) => {
    const { row, record } = await get<RecordAnswer>(`/api/records/${seq}`);
    const { event } = record as { event?: object };
    add({ kind, seq, actor: row.actor, event: json(event) });
  };
  const from = KINDS.map(([kind]) => params.value.get(kind)).join(' ');
  useEffect(() => {
    setRows([]);
    for (const [kind] of KINDS) {
      for (const seq of (params.value.get(kind) ?? '').split(/[\s,]+/).filter(Boolean)) {
        prefill(kind, seq).catch(() => add({ kind, seq, actor: '', event: '' }));
      }
    }
  }, [from]);
  const run = async () => {
    setRunning(true);
    setError(undefined);
    try {
      setOutcome(await post<WhatIfAnswer>('/api/what-if', questionOf(rows)));
    } catch (problem) {
      setOutcome(undefined);
      setError(problem instanceof ApiError ? problem : new ApiError(0, 'json', String(problem)));
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <h1>What if</h1>
      <p class="sandbox">
        <strong>No effect is carried out,</strong> and nothing is recorded: the log runs again with your
        changes in a sandbox.
      </p>
      <form
        class="card what-if"
        onSubmit={(submitted) => {
          submitted.preventDefault();
          void run();
        }}
      >
        {rows.length === 0 && (
          <p class="quiet">
            Nothing is changed yet. <kbd>e</kbd> on any record brings it here with its event.
          </p>
        )}
        {rows.map((row) => (
          <ChangeRow
            key={row.key}
            row={row}
            edit={(changes) => edit(row.key, changes)}
            remove={() => setRows((known) => known.filter(({ key }) => key !== row.key))}
            insertAfter={() => add({ ...row, kind: 'insert' })}
          />
        ))}
        <p class="actions">
          {KINDS.map(([kind]) => (
            <button key={kind} type="button" onClick={() => add({ kind, seq: '', actor: '', event: '' })}>
              + {kind === 'drop' ? 'drop a record' : kind === 'alter' ? 'alter an event' : 'insert an event'}
            </button>
          ))}
          <button type="submit" class="main" disabled={running || rows.length === 0}>
            {running ? 'Runs again …' : 'Run it again'}
          </button>
        </p>
      </form>
      {error && <Problem error={error} />}
      {outcome && <Differences outcome={outcome} />}
    </>
  );
}

/** @throws an error with what to type instead */
function questionOf(rows: readonly Row[]): object {
  const of = (kind: Row['kind']) => rows.filter((row) => row.kind === kind && row.seq !== '');
  const event = (row: Row): unknown => {
    try {
      return JSON.parse(row.event);
    } catch {
      throw new ApiError(
        0,
        'json',
        `The event of record ${row.seq} is no JSON object.`,
        'Write {"type": "…"}.',
      );
    }
  };
  return {
    drop: of('drop').map(({ seq }) => Number(seq)),
    alter: of('alter').map((row) => ({ seq: Number(row.seq), event: event(row) })),
    insert: of('insert').map((row) => ({ after: Number(row.seq), actor: row.actor, event: event(row) })),
  };
}

interface RowProps {
  readonly row: Row;
  readonly edit: (changes: Partial<Row>) => void;
  readonly remove: () => void;
  readonly insertAfter: () => void;
}

function ChangeRow({ row: { key, kind, seq, actor, event }, edit, remove, insertAfter }: RowProps) {
  const isRecord = /^\d{1,15}$/.test(seq) && Number(seq) > 0;
  const { data } = useAnswer<RecordAnswer>(isRecord ? `/api/records/${seq}` : undefined, {}, 'fixed');
  return (
    <fieldset class={`change ${kind}`}>
      <legend>
        {kind === 'insert' ? 'After record' : 'Record'} {seq || '…'}
      </legend>
      <div class="change-head">
        <label>
          <span class="hidden">Number of the record</span>
          <input
            value={seq}
            inputMode="numeric"
            placeholder="number"
            onInput={(typed) => edit({ seq: typed.currentTarget.value })}
          />
        </label>
        <label>
          <span class="hidden">What is imagined</span>
          <select
            value={kind}
            onChange={(chosen) => {
              const found = KINDS.find(([one]) => one === chosen.currentTarget.value);
              if (found) edit({ kind: found[0] });
            }}
          >
            {KINDS.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {data && (
          <span class="quiet">
            <a href={address(`/records/${seq}`, { at: Number(seq) })}>{data.row.event}</a> of {data.row.actor}
            , <Time ms={data.row.time} />: {data.row.text}
          </span>
        )}
        <span class="change-ways">
          {kind !== 'insert' && (
            <button type="button" onClick={insertAfter}>
              Insert after it
            </button>
          )}
          <button type="button" aria-label={`Take this change out (${kind} ${seq})`} onClick={remove}>
            ×
          </button>
        </span>
      </div>
      {kind === 'insert' && (
        <label>
          To the actor
          <input
            value={actor}
            placeholder="e.g. reconciler.leg/lan"
            onInput={(typed) => edit({ actor: typed.currentTarget.value })}
          />
        </label>
      )}
      {kind !== 'drop' && (
        <label>
          {kind === 'alter' ? 'Its fields, as JSON: null takes one out' : 'The event, as JSON with its type'}
          <textarea
            id={`event-${key}`}
            rows={Math.min(10, Math.max(3, event.split('\n').length))}
            value={event}
            onInput={(typed) => edit({ event: typed.currentTarget.value })}
          />
        </label>
      )}
    </fieldset>
  );
}
