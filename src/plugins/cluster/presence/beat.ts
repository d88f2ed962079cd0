import { z } from 'zod';
import { json } from '../nats/body.ts';

const short = z.string().max(200);

/** What hosts of every protocol write. */
export const identity = z.object({ host: short, run: short, version: short, protocol: z.int() });

export const beatBody = identity.extend({
  /** Counts the beats of a run. */
  number: z.int().min(1),
  /** When the run began by its own wall clock; decides between two hosts of one name that have lasted nearly as long. */
  startedAt: z.int(),
  /** How long the run has lasted, by its monotonic clock. */
  upMs: z.number().min(0),
  shared: z.object({ incarnation: short, seq: z.int().min(0) }),
  lag: z.number().min(0),
  holds: z.array(short).max(256),
  announced: z.record(short, json),
});

/** What a host says of itself twice a second. */
export type Beat = z.output<typeof beatBody>;

/** What a host tells with each beat, beside who it is. */
export type BeatReport = Pick<Beat, 'shared' | 'lag' | 'holds'>;

/** Another host as its newest beat described it. */
export interface HeardHost extends Beat {
  /** When that beat arrived, by `Clock.monotonic` of this process. */
  readonly heardMs: number;
}

/** What a message between hosts says of its sender, so that an old one cannot be sent again by somebody who read it. */
export interface Stamp {
  readonly from: string;
  readonly run: string;
  readonly upMs: number;
}

/** The fields of a stamp in a message's body. */
export const stampFields = { from: short, run: short, upMs: z.number().min(0) };
