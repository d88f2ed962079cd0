import type { ActorSnapshot } from '../../../core/kernel/actors/transition.ts';
import { isoTime } from '../../../core/kernel/clock.ts';
import type { keyRotation } from '../../../machines/collector/key-rotation.ts';
import type { RefreshCheck } from '../../../machines/collector/key-rotation-rules.ts';
import {
  type Adoption,
  pending,
  type RotationContext,
  STEPS,
  type Step,
  unconfirmed,
} from '../../../machines/collector/key-rotation-rules.ts';

/** The state of a rotation, without secrets. */
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
  /** Producers outside of the cluster, and whether a person has said that they are updated. */
  readonly external: readonly string[];
  readonly isConfirmed: boolean;
  /** Results of the checks after the new key was stored, and which could not be made. */
  readonly checks: readonly RefreshCheck[];
  /** How the key in use was stored without being rotated. */
  readonly adoption?: (Omit<Adoption, 'at'> & { readonly at: string }) | undefined;
  readonly forced?: readonly string[] | undefined;
  /** What a person must do. */
  readonly note?: string | undefined;
  readonly failure?: { readonly step: string; readonly reason: string; readonly text: string } | undefined;
  /** When the present step ends at the latest. */
  readonly until?: string | undefined;
}

/** What a rotation would do. */
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

export function rotationView(actor: ActorSnapshot<typeof keyRotation> | undefined): RotationView {
  if (!actor)
    return {
      state: 'idle',
      maker: 'none',
      steps: [],
      pending: [],
      unconfirmed: [],
      external: [],
      isConfirmed: false,
      checks: [],
    };
  const { context } = actor;
  const { maker, old, fresh, startedAt, step, done, forced, note, failure, deadlineAt } = context;
  const { adoption, checks = [] } = context;
  const isWaiting = step === 'refresh' || step === 'external';
  return {
    state: String(actor.value),
    maker,
    old,
    fresh,
    startedAt: startedAt === undefined ? undefined : isoTime(startedAt),
    steps: STEPS.map((name) => {
      const at = done[name];
      if (at !== undefined) return { step: name, state: 'done', at: isoTime(at) };
      if (name === failure?.step) return { step: name, state: 'failed' };
      return { step: name, state: name === step ? 'now' : 'open' };
    }),
    pending: pending(context),
    unconfirmed: unconfirmed(context),
    external: context.external,
    isConfirmed: context.confirmed === true,
    checks,
    adoption: adoption && { ...adoption, at: isoTime(adoption.at) },
    forced,
    note,
    failure,
    until: isWaiting ? isoTime(deadlineAt) : undefined,
  };
}

/** Whether a rotation waits for a producer: it was seen with the old key, or is external. */
export function isAwaited(rotation: RotationContext | undefined, producer: string): boolean {
  const { producers = {}, external = [] } = rotation ?? {};
  const times = Object.hasOwn(producers, producer) ? producers[producer] : undefined;
  return times?.old !== undefined || external.includes(producer);
}
