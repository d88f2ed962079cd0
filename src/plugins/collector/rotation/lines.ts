import type { RotationView } from './view.ts';

export interface RotationPlan {
  readonly maker: 'own' | 'api' | 'operator';
  readonly old?: string;
  readonly producers: readonly { readonly producer: string; readonly at: number }[];
  readonly external: readonly string[];
  readonly canForce: boolean;
  readonly source: string;
  readonly store: string;
  readonly storeIsWritable: boolean;
  readonly refreshMinutes: number;
  readonly overlapMinutes: number;
}

const MAKERS = {
  own: 'Holdfast makes a new key; the old one stays accepted beside it',
  api: 'the UI is asked for a new key; the collector replaces the old one at once',
  operator:
    'you make a new key in the UI (Team Settings → API Keys); the collector replaces the old one at once',
} as const;

const STEPS: Readonly<Record<string, string>> = {
  regenerate: 'regenerated',
  adopt: 'adopted by the collector',
  store: 'stored',
  refresh: 'producers refreshed',
  external: 'external producers updated',
  retire: 'old key retired',
};

/** What a rotation would do. */
export function planLines(plan: RotationPlan): string[] {
  const names = plan.producers.map(({ producer }) => producer);
  const overlap =
    plan.maker === 'own'
      ? `when all have moved, at the latest after ${hours(plan.overlapMinutes)}`
      : 'at once, by the collector';
  return [
    `Nothing is changed. The key in use is ${plan.old ?? 'not known, so nothing can be rotated'} (${plan.source}).`,
    `1 regenerate  ${MAKERS[plan.maker]}`,
    `2 adopt       it is awaited in ${plan.source}`,
    `3 store       ${plan.storeIsWritable ? 'it is written to' : 'you put it in'} ${plan.store}`,
    `4 refresh     ${plan.refreshMinutes} min for ${names.join(', ') || 'producers; none was seen in the last hour'}${plan.canForce ? ', then forced in the cluster' : ''}`,
    `5 external    ${plan.external.join(', ') || 'none is listed (option externalProducers)'}`,
    `6 retire      the old key ends ${overlap}`,
  ];
}

/** A step that is done. */
export function finishedLine(
  { step, at = '' }: { readonly step: string; readonly at?: string },
  { fresh, forced }: RotationView,
): string {
  const more: Readonly<Record<string, string>> = {
    adopt: fresh ?? '',
    refresh: forced && forced.length > 0 ? `forced: ${forced.join(', ')}` : '',
  };
  return `${at.slice(11, 19)}  ${STEPS[step] ?? step}${more[step] ? `  ${more[step]}` : ''}`;
}

/** What is being waited for. */
export function nowLine({ state, steps, pending, unconfirmed, note, failure, until }: RotationView): string {
  if (state === 'idle') return 'No ingest key was rotated here yet.';
  if (failure)
    return `failed (${failure.reason}): ${failure.text} Then: holdfast stack rotate-ingest-key --resume`;
  if (state === 'done') return 'The ingest key is rotated.';
  const now = steps.find((step) => step.state === 'now')?.step ?? state;
  const left = [...new Set([...pending, ...unconfirmed])];
  const who = left.length > 0 ? `, still with the old key: ${left.join(', ')}` : '';
  const end = until === undefined ? '' : `, until ${until.slice(11, 16)}`;
  const external =
    now === 'external'
      ? '. Update them, then add --external-done; it goes on by itself when they are seen with the new key'
      : '';
  return `now: ${now}${end}${who}${external}${note === undefined ? '' : `: ${note}`}`;
}

function hours(minutes: number): string {
  return minutes >= 60 ? `${Math.round(minutes / 60)} h` : `${minutes} min`;
}
