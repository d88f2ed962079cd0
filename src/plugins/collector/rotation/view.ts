import type { ActorState } from '../../../core/kernel/actors/state.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import {
  pending,
  type RotationContext,
  STEPS,
  type Step,
  unconfirmed,
} from '../../../machines/collector/key-rotation-rules.ts';

/** How a rotation stands, without secrets. */
export interface RotationView {
  /** The machine's state. */
  readonly state: string;
  readonly maker: string;
  /** Fingerprints. */
  readonly old?: string | undefined;
  readonly fresh?: string | undefined;
  readonly startedAt?: string | undefined;
  readonly steps: readonly {
    readonly step: Step;
    readonly state: 'done' | 'now' | 'failed' | 'open';
    readonly at?: string;
  }[];
  /** Producers that were seen with the old key and not yet with the new one. */
  readonly pending: readonly string[];
  /** External producers that nobody has seen or confirmed. */
  readonly unconfirmed: readonly string[];
  readonly forced?: readonly string[] | undefined;
  /** What a person must do. */
  readonly note?: string | undefined;
  readonly failure?: { readonly step: string; readonly reason: string; readonly text: string } | undefined;
  /** When the present step ends whatever comes. */
  readonly until?: string | undefined;
}

export function rotationView(actor: Readonly<ActorState> | undefined): RotationView {
  if (!actor) return { state: 'idle', maker: 'none', steps: [], pending: [], unconfirmed: [] };
  const context = actor.context as unknown as RotationContext;
  const { maker, old, fresh, startedAt, step, done, forced, note, failure, deadlineAt } = context;
  const state = String(actor.value);
  const isWaiting = step === 'refresh' || step === 'external';
  return {
    state,
    maker,
    old,
    fresh,
    startedAt: startedAt === undefined ? undefined : iso(startedAt),
    steps: STEPS.map((name) => {
      const at = done[name];
      if (at !== undefined) return { step: name, state: 'done', at: iso(at) };
      if (name === failure?.step) return { step: name, state: 'failed' };
      return { step: name, state: name === step ? 'now' : 'open' };
    }),
    pending: pending(context),
    unconfirmed: unconfirmed(context),
    forced,
    note,
    failure,
    until: isWaiting ? iso(deadlineAt) : undefined,
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/** A record of the rotation in an operator's words; total, for any record may come. */
export function describeRotationRecord({ event, to, ignored }: LogRecord): string | undefined {
  if (ignored) return event.type === 'CONFIG_READ' ? '' : undefined;
  const state = String(to?.value ?? '');
  switch (event.type) {
    case 'ROTATE':
      return state === 'regenerating' ? `a rotation begins, ${String(event.maker)}` : 'refused';
    case 'LOOKED':
      return state.endsWith('Pause') ? '' : `producers looked at, ${state}`;
    case 'CONFIG_READ':
      return state === 'storing' ? 'the new key is adopted' : 'the old key is still the one';
    case 'STORED':
      return `stored in ${String(event.place)}`;
    case 'BY_HAND':
      return 'a person must do this step';
    case 'EXTERNAL_DONE':
      return 'a person says that the producers outside are updated';
    case 'RESUME':
      return 'a person takes it up again';
    case 'MOVED':
      return `${String(event.producer)} uses the new key`;
    default:
      // A look that is made again because its time has come.
      return state === 'refreshing' || state === 'external' ? '' : undefined;
  }
}

/** Whether a rotation waits for a producer: it was seen with the old key, or is one of those outside. */
export function isAwaited(rotation: Partial<RotationContext> | undefined, producer: string): boolean {
  const { producers = {}, external = [] } = rotation ?? {};
  const known = Object.hasOwn(producers, producer) ? producers[producer] : undefined;
  return known?.old !== undefined || external.includes(producer);
}
