/** What the API answers, as far as its own types do not say it yet. */
import type { RecordRow } from '../api/types.ts';

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

export interface StoryRow {
  readonly id: string;
  readonly title: string;
  readonly first: number;
  readonly last: number;
  readonly start: number;
  readonly end: number;
  readonly records: number;
  readonly actors: readonly string[];
  readonly failed: boolean;
}

export interface StoryPage {
  readonly stories: readonly StoryRow[];
  readonly next?: number;
}

export interface EffectSpan {
  readonly id: string;
  readonly type: string;
  readonly actor: string;
  readonly asked: number;
  readonly ended?: number;
  readonly outcome?: string;
}

export interface TimerSpan {
  readonly actor: string;
  readonly name: string;
  readonly armed: number;
  readonly due: number;
  readonly fired?: number;
}

export interface StoryDetail {
  readonly id: string;
  readonly title: string;
  readonly records: readonly RecordRow[];
  readonly effects: readonly EffectSpan[];
  readonly timers: readonly TimerSpan[];
}

export interface Bucket {
  readonly first: number;
  readonly last: number;
  readonly start: number;
  readonly end: number;
  readonly records: number;
  readonly failed: number;
}

export interface ActorRow {
  readonly id: string;
  readonly plugin: string;
  readonly machine: string;
  readonly state: string;
  readonly lastSeq: number;
  readonly lastTime: number;
  readonly lastEvent: string;
}

export interface ActorPage {
  readonly actors: readonly ActorRow[];
  readonly next?: string;
}

export interface TransitionCount {
  readonly from: string;
  readonly event: string;
  readonly to: string;
  readonly count: number;
}

export interface ActorDetail {
  readonly at: number;
  readonly time: number;
  readonly id: string;
  readonly machine: string;
  readonly state: string;
  /** As XState has it. */
  readonly value: unknown;
  readonly context: unknown;
  readonly effects: readonly { readonly id: string; readonly type: string; readonly since?: number }[];
  readonly timers: readonly { readonly name: string; readonly due: number }[];
  readonly last?: RecordRow;
  readonly taken: readonly TransitionCount[];
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
