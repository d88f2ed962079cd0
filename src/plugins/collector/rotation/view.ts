import type { ActorState } from '../../../core/kernel/actors/state.ts';
import { pending, unconfirmed } from '../../../machines/collector/key-rotation-reading.ts';
import { type RotationContext, STEPS, type Step } from '../../../machines/collector/key-rotation-shapes.ts';

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
