/** What plugins bring to the console: `context.contribute(consolePages, (started) => ({ … }))`. */
import type { ActorState } from '../kernel/actors/transition.ts';
import { defineContributionPoint } from './token.ts';

/**
 * How something is. `ok` only of what was looked at.
 *
 * @experimental
 */
export type PageStatus = 'ok' | 'degraded' | 'failing' | 'unknown';

/** Where a row leads: to an actor, or to a record. */
interface Linked {
  readonly status?: PageStatus;
  /** Address of an actor. */
  readonly actor?: string;
  /** Number of a record. */
  readonly seq?: number;
}

type Cell = string | number | boolean | null;

/**
 * A part of a page. The console draws it: a plugin brings no script. Times are epoch milliseconds.
 *
 * @experimental
 */
export type PageSection =
  | {
      readonly kind: 'facts';
      readonly title?: string;
      readonly facts: readonly (Linked & {
        readonly label: string;
        readonly value: Cell;
        readonly since?: number;
      })[];
    }
  | {
      readonly kind: 'table';
      readonly title?: string;
      readonly columns: readonly {
        readonly name: string;
        readonly title: string;
        readonly format?: 'text' | 'number' | 'time' | 'duration' | 'bytes';
      }[];
      readonly rows: readonly (Linked & { readonly cells: Readonly<Record<string, Cell>> })[];
    }
  | { readonly kind: 'text'; readonly title?: string; readonly text: string }
  | {
      readonly kind: 'chart';
      readonly title?: string;
      readonly unit?: string;
      readonly series: readonly {
        readonly name: string;
        readonly points: readonly (readonly [time: number, value: number])[];
      }[];
    };

/**
 * The moment that a page shows.
 *
 * @experimental
 */
export interface PageMoment {
  /** The newest record that counts. */
  readonly seq: number;
  /** Its time, or now; epoch milliseconds. */
  readonly time: number;
  /** Whether it is now: what no record knows, such as a connection, can be shown only then. */
  readonly isNow: boolean;
  /** Every actor at that moment, by address. */
  readonly states: ReadonlyMap<string, Readonly<ActorState>>;
}

/**
 * A page of a plugin. It is a fold over the actors, so it can be shown at any moment.
 *
 * @experimental
 */
export interface ConsolePage {
  /** Small letters, digits and dashes; no two plugins bring one name. */
  readonly name: string;
  readonly title: string;
  /** Its sections at a moment; cheap, and without secrets. */
  readonly data: (moment: PageMoment) => readonly PageSection[] | Promise<readonly PageSection[]>;
}

/**
 * Where the console collects pages.
 *
 * @experimental
 */
export const consolePages = defineContributionPoint<ConsolePage>('console.pages');

/**
 * Something that a person fills in before an action.
 *
 * @experimental
 */
export interface ActionField {
  readonly name: string;
  readonly title: string;
  /** A `duration` is written as `15m` or `2h`, and handed on in milliseconds. */
  readonly kind: 'text' | 'number' | 'duration' | 'choice';
  readonly choices?: readonly string[];
  readonly required: boolean;
}

/**
 * Something that can be done from the console: by the operation of the control socket that its command uses.
 *
 * @experimental
 */
export interface ConsoleAction {
  /** Small letters, digits and dashes; no two plugins bring one name. */
  readonly name: string;
  readonly title: string;
  /** What will happen, in words: a person confirms it. */
  readonly confirm: string;
  readonly fields: readonly ActionField[];
  /** Path on the control socket, e.g. `/alerts/ack`. */
  readonly operation: string;
  /** The operation's body, from the fields and from who acts. */
  readonly body: (fields: Readonly<Record<string, string | number>>, by: string) => object;
}

/**
 * Where the console collects actions.
 *
 * @experimental
 */
export const consoleActions = defineContributionPoint<ConsoleAction>('console.actions');
