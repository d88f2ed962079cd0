import type { ChangesAnswer, RecordAnswer } from '../api/types.ts';
import { ApiError, get } from './api.ts';
import { zoomTo } from './components/brush.tsx';
import { cursor, say } from './cursor.ts';
import type { Shortcut } from './keys.ts';
import { log, newest } from './live.ts';
import { address, at, change, go, here, mark, params, path, travel } from './location.ts';

/** Goes to the record before or after the one that is shown. */
export function step(direction: 1 | -1): void {
  const facts = log.value;
  if (!facts) return;
  const to = (at.value ?? newest.value + 1) + direction;
  if (to < facts.first) say('This is the first record of the log.');
  else travel(to > newest.value ? undefined : to);
}

/** @param text of a field for a time, in the zone of the browser */
export async function goToTime(text: string): Promise<void> {
  const time = new Date(text).getTime();
  if (Number.isNaN(time)) return;
  const { seq } = await get<{ seq: number }>('/api/records/at', { time });
  travel(seq);
}

const detailOf = (seq: number) => get<RecordAnswer>(`/api/records/${seq}`);

/** Goes to the neighbour of the record that is shown, of the same actor. */
async function stepOfActor(direction: 1 | -1): Promise<void> {
  const { row, ...neighbours } = await detailOf(cursor.value);
  const to = direction === 1 ? neighbours.nextOfActor : neighbours.previousOfActor;
  if (to !== undefined) travel(to);
  else say(`Record ${row.seq} is the ${direction === 1 ? 'last' : 'first'} of ${row.actor}.`);
}

/** Why: first the explanation of the record, then with each press one cause further back. */
async function why(): Promise<void> {
  const seq = cursor.value;
  if (!path.value.startsWith('/records/')) {
    go(address(`/records/${seq}`, { at: seq }));
    return;
  }
  const { cause, row } = await detailOf(seq);
  if (cause) go(address(`/records/${cause.seq}`, { at: cause.seq }));
  else say(`Record ${seq} has no cause in this log: ${row.event} came from outside.`);
}

/** The actor whose value is chosen on its page. */
export function chosenValue(): { readonly actor: string; readonly path: string } | undefined {
  const value = params.value.get('value');
  const actor = /^\/actors\/(.+)$/s.exec(path.value)?.[1];
  return value === null || actor === undefined ? undefined : { actor, path: value };
}

/** Goes to the next or previous record that changed the chosen value. */
async function stepOfValue(direction: 1 | -1): Promise<void> {
  const chosen = chosenValue();
  if (!chosen) {
    say('Choose a value of the context of an actor first.');
    return;
  }
  const side = direction === 1 ? 'after' : 'before';
  let from = direction === 1 ? (at.value ?? newest.value) : cursor.value;
  for (;;) {
    const { changes, next } = await get<ChangesAnswer>('/api/changes', { ...chosen, [side]: from, limit: 1 });
    const [found] = changes;
    if (found) return travel(found.seq);
    if (next === undefined) break;
    from = next;
  }
  say(`No ${direction === 1 ? 'later' : 'earlier'} record changed ${chosen.path}.`);
}

function markMoment(): void {
  change({ mark: cursor.value });
  say(`Record ${cursor.value} is marked: c compares it with the moment that is shown.`);
}

function compareMoments(): void {
  if (mark.value === undefined) say('Mark another moment first: m.');
  else go(address('/compare', { at: cursor.value }));
}

async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied: ${what}`);
  } catch {
    say(text); // a browser that does not let a page copy: it can be copied from here
  }
}

async function copySummary(): Promise<void> {
  const { row } = await detailOf(cursor.value);
  const time = new Date(row.time).toISOString();
  const line = `record ${row.seq}, ${time}, ${row.actor} ${row.event}: ${row.text} (${row.from ?? 'nothing'} → ${row.to})`;
  await copy(line, line);
}

/** A blur where somebody types, else what is chosen is let go. */
function letGo(): void {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  if (params.value.has('value')) change({ value: undefined });
}

/** Runs a command of which the answer may not come. */
const tried = (run: () => Promise<unknown>) => () => {
  run().catch((error: unknown) => {
    if (error instanceof ApiError) say(`${error.message} ${error.action ?? ''}`);
    else throw error;
  });
};

/** What keys do on every page: the sheet of `?` and the palette list the same. */
export const COMMANDS: readonly Shortcut[] = [
  { keys: 'j', what: 'Next record', run: () => step(1) },
  { keys: 'k', what: 'Previous record', run: () => step(-1) },
  { keys: 'J', what: 'Next record of the same actor', run: tried(() => stepOfActor(1)) },
  { keys: 'K', what: 'Previous record of the same actor', run: tried(() => stepOfActor(-1)) },
  { keys: 'g g', what: 'The beginning of the log', run: () => travel(log.value?.first) },
  { keys: 'G', what: 'The newest record', run: () => travel(newest.value || undefined) },
  { keys: 'l', what: 'Back to now, live', run: () => change({ at: undefined, top: undefined }) },
  { keys: 'w', what: 'Why: the record, then one cause further back', run: tried(why) },
  { keys: 'n', what: 'Next record that changed the chosen value', run: tried(() => stepOfValue(1)) },
  { keys: 'N', what: 'Previous record that changed the chosen value', run: tried(() => stepOfValue(-1)) },
  { keys: 'm', what: 'Mark this moment', run: markMoment },
  { keys: 'c', what: 'Compare with the marked moment', run: compareMoments },
  {
    keys: 'e',
    what: 'What if: edit or drop this record, or insert an event after it',
    run: () => go(address('/what-if', { alter: cursor.value })),
  },
  { keys: 'f', what: 'Fit: the whole log', run: () => zoomTo(undefined, undefined) },
  {
    keys: 'y',
    what: 'Copy a link to what is shown',
    run: tried(() => copy(new URL(here(), location.href).href, here())),
  },
  { keys: 'Y', what: 'Copy a line about this record', run: tried(copySummary) },
  { keys: 'Escape', what: 'Let go of what is chosen', run: letGo },
];
