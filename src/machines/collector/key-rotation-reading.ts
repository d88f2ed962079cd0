import type { Alert } from '../effect.ts';
import {
  type Args,
  type Failure,
  type FailureReason,
  type Producer,
  type RotationContext,
  type Seen,
  STEPS,
  type Step,
} from './key-rotation-shapes.ts';

/** What the rotation reads out of events and context: pure functions, without the statechart. */

/** The only key that is rotated; of the others, one must never be. */
const ROTATED = 'otel_ingest_api_key';
const VESTIGIAL = 'otel_ingest_token';
const MOST_PRODUCERS = 256;

/** Why a request to rotate is refused; undefined when it may begin. */
export function refusal({ context, event }: Args): string | undefined {
  if (event.type !== 'ROTATE') return undefined;
  if (event.name === VESTIGIAL) {
    return `${VESTIGIAL} admits nobody and is never rotated, emptied or deleted: a secret-sync object still refers to it`;
  }
  if (event.name !== ROTATED) return `${event.name} is not rotated here, only ${ROTATED} is`;
  if (context.step !== undefined) return 'a rotation is under way already';
  return event.old === undefined ? 'no ingest key is known that could be rotated' : undefined;
}

export function nextStep(step: Step): Step | undefined {
  return STEPS[STEPS.indexOf(step) + 1];
}

/** Those that were seen with the old key and not yet, or not since, with the new one. */
export function pending({ producers }: RotationContext): string[] {
  return Object.entries(producers)
    .filter(([, { old, fresh }]) => old !== undefined && (fresh === undefined || fresh < old))
    .map(([name]) => name);
}

/** External producers that nobody has confirmed and that were not seen with the new key. */
export function unconfirmed({ external, confirmed, producers }: RotationContext): string[] {
  return confirmed ? [] : external.filter((name) => producers[name]?.fresh === undefined);
}

/** Everybody within the cluster uses the new key, as far as our receiver sees. */
export function isRefreshed(context: RotationContext): boolean {
  const outside = new Set(context.external);
  const inside = pending(context).filter((name) => !outside.has(name));
  // Where the collector is another one we may see nobody, which proves nothing.
  const isProof = context.maker === 'own' || Object.values(context.producers).some(({ fresh }) => fresh);
  return inside.length === 0 && isProof;
}

export function isFinished(context: RotationContext): boolean {
  return unconfirmed(context).length === 0 && (context.confirmed === true || pending(context).length === 0);
}

export function merge(
  known: Readonly<Record<string, Producer>>,
  old: readonly Seen[],
  fresh: readonly Seen[],
): Readonly<Record<string, Producer>> {
  const merged: Record<string, Producer> = { ...known };
  const note = (kind: keyof Producer, { producer, at }: Seen) => {
    if (producer === '__proto__') return; // it would be no key, but another prototype
    const before = Object.hasOwn(merged, producer) ? merged[producer] : undefined;
    if (before === undefined && Object.keys(merged).length >= MOST_PRODUCERS) return;
    merged[producer] = { ...before, [kind]: Math.max(at, before?.[kind] ?? 0) };
  };
  for (const seen of old) note('old', seen);
  for (const seen of fresh) note('fresh', seen);
  return merged;
}

export const timeOf = ({ context, event }: Args): number => ('at' in event ? event.at : context.deadlineAt);

/** What an event says went wrong. */
export function wordsOf({ event }: Args): string | undefined {
  if (event.type === 'effect.failed') return event.message;
  if (event.type === 'effect.lost') return 'the process ended meanwhile, so nobody knows what came of it';
  if (event.type === 'ABANDON') return 'it was abandoned';
  if (event.type === 'BY_HAND') return event.text;
  return undefined;
}

const FAILED: Readonly<Record<Step, { readonly reason: FailureReason; readonly text: string }>> = {
  regenerate: { reason: 'not_regenerated', text: 'The UI made no new key' },
  adopt: {
    reason: 'not_adopted',
    text: "The new key was not seen in the collector's effective config in time",
  },
  store: { reason: 'not_stored', text: 'The new key could not be put in the secrets store' },
  refresh: { reason: 'abandoned', text: 'It ended while producers were refreshed' },
  external: { reason: 'abandoned', text: 'It ended while external producers were waited for' },
  retire: { reason: 'not_retired', text: 'The old key could not be taken away' },
};

/** Why the present step failed. */
export function failure(args: Args): Failure {
  const step = args.context.step ?? 'regenerate';
  if (args.event.type === 'ABANDON') return { step, reason: 'abandoned', text: 'A person abandoned it.' };
  const { reason, text } = FAILED[step];
  const why = wordsOf(args) ?? args.context.note;
  return { step, reason, text: `${text}${why === undefined ? '' : `: ${why.replace(/\.$/, '')}`}.` };
}

export function failedAlert({ context }: Args): Alert {
  const { step = '', reason = '', text = '' } = context.failure ?? {};
  return {
    name: 'ingest.rotation_failed',
    severity: 'critical',
    text: `The rotation of the ingest key stands still. ${text} Fix it, then: holdfast stack rotate-ingest-key --resume`,
    labels: { step, reason },
  };
}

export function leftBehind({ context }: Args): Alert {
  const left = [...new Set([...pending(context), ...unconfirmed(context)])].join(', ').slice(0, 500);
  return {
    name: 'ingest.rotation_left_behind',
    severity: 'warning',
    text: `The overlap of the ingest keys is over, and these were not seen with the new one: ${left}.`,
    labels: { producers: left },
  };
}
