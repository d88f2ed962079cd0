import type { ActorsAnswer, DensityAnswer, StoriesAnswer } from '../api/types.ts';

/** Parts of answers that several pages draw. */
export type Bucket = DensityAnswer['buckets'][number];
export type Story = StoriesAnswer['stories'][number];
export type ActorLine = ActorsAnswer['actors'][number];

// What the API answers, as far as its own types do not say it yet.

export type Health = 'ok' | 'degraded' | 'failing' | 'unknown';

export interface OverviewItem {
  readonly area: string;
  readonly name: string;
  readonly status: Health;
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly actor?: string;
}

export interface Overview {
  readonly at: number;
  readonly time: number;
  readonly status: Health;
  readonly items: readonly OverviewItem[];
}

export interface Change {
  readonly path: string;
  readonly from?: unknown;
  readonly to?: unknown;
}

export interface ActorComparison {
  readonly id: string;
  readonly change: 'new' | 'gone' | 'changed';
  readonly stateFrom?: string;
  readonly stateTo?: string;
  readonly changes: readonly Change[];
}

export interface Comparison {
  readonly from: number;
  readonly to: number;
  readonly actors: readonly ActorComparison[];
}
