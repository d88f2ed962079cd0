import type { ErrorData } from '../../kernel/errors/holdfast-error.ts';
import type { PrunePlan, PruneRequest } from './plan.ts';

/** What the archiving thread is told. */
export interface ArchiverData {
  readonly dataDir: string;
  readonly request: PruneRequest;
  readonly folder: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** What it answers: the plan with the file, then the states where what stays begins; or why not. */
export type ArchiverMessage =
  | { readonly kind: 'archived'; readonly plan: PrunePlan; readonly file?: string }
  | { readonly kind: 'states'; readonly rows: readonly string[] }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly error: ErrorData };
