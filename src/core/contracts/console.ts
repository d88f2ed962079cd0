/**
 * What plugins bring to the console. A page that is a fold over the log is contributed as it is,
 * `context.contribute(consolePages, page)`, and is shown of any log; one that asks the running plugin is made by
 * `context.contribute(consolePages, (started) => ({ … }))`, and needs an instance. A plugin may bring both under one
 * name: then the fold is shown where the plugin does not run.
 */
import type { ActorState } from '../kernel/actors/transition.ts';
import type { LogRecord } from '../kernel/log/record.ts';
import { defineContributionPoint } from './token.ts';

/**
 * How something is. `ok` only of what was looked at.
 *
 * @experimental
 */
export type PageStatus = 'ok' | 'degraded' | 'failing' | 'unknown';

/** Where a row leads: to an actor, a record, or a page with what is filled in there. */
interface Linked {
  readonly status?: PageStatus;
  /** Address of an actor. */
  readonly actor?: string;
  /** Number of a record. */
  readonly seq?: number;
  readonly page?: PageLink;
}

/**
 * A page, and what is filled in there.
 *
 * @experimental
 */
export interface PageLink {
  /** Name of a page, e.g. the one that has the link. */
  readonly name: string;
  /** What the link says; the title of the page unless set. */
  readonly title?: string;
  /** Values of the page's inputs, by name. */
  readonly inputs?: Readonly<Record<string, string>>;
}

type Cell = string | number | boolean | null;

/** How a number is written. An `instant` is a time with its milliseconds. */
type CellFormat = 'text' | 'number' | 'time' | 'instant' | 'duration' | 'bytes';

/**
 * Something that happened within a span, at one point in time.
 *
 * @experimental
 */
export interface PageMark {
  /** Epoch milliseconds, with fractions. */
  readonly time: number;
  readonly text: string;
  readonly status?: PageStatus;
}

/**
 * A part of a trace: something that took time.
 *
 * @experimental
 */
export interface PageSpan {
  readonly id: string;
  /** The span that it is a part of; absent of a root, or where that one is not known. */
  readonly parent?: string;
  readonly name: string;
  /** Who did it, e.g. a service. */
  readonly by: string;
  /** Epoch milliseconds, with fractions. */
  readonly start: number;
  /** Milliseconds, with fractions. */
  readonly duration: number;
  readonly status?: PageStatus;
  /** What happened within it, e.g. log lines. */
  readonly marks?: readonly PageMark[];
  /** What else is known of it. */
  readonly facts?: Readonly<Record<string, Cell>>;
}

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
        readonly format?: CellFormat;
        readonly since?: number;
        /** When it ends; the page counts down to it. */
        readonly until?: number;
      })[];
    }
  | {
      /**
       * A table whose first column is a time is a history; the status of every other row says how something is at the
       * moment, and counts on the first page of the console.
       */
      readonly kind: 'table';
      readonly title?: string;
      readonly columns: readonly {
        readonly name: string;
        readonly title: string;
        readonly format?: CellFormat;
      }[];
      readonly rows: readonly (Linked & {
        readonly cells: Readonly<Record<string, Cell>>;
        /** What else is known of it; shown when one opens the row. */
        readonly facts?: Readonly<Record<string, Cell>>;
      })[];
    }
  | { readonly kind: 'text'; readonly title?: string; readonly text: string }
  | {
      readonly kind: 'chart';
      readonly title?: string;
      readonly unit?: string;
      /** `bars` stand for what was counted from their time to that of the next one, the series on each other; else lines. */
      readonly form?: 'lines' | 'bars';
      readonly series: readonly {
        readonly name: string;
        /** Gives the series its colour. */
        readonly status?: PageStatus;
        readonly points: readonly (readonly [time: number, value: number])[];
      }[];
    }
  | {
      /** Names with a number each, as bars beside each other. */
      readonly kind: 'bars';
      readonly title?: string;
      readonly unit?: string;
      readonly bars: readonly (Linked & { readonly name: string; readonly value: number })[];
    }
  | {
      /** What differs between two values, e.g. between two versions of a file. */
      readonly kind: 'changes';
      readonly title?: string;
      /** A side that is absent had nothing there. */
      readonly changes: readonly { readonly path: string; readonly from?: unknown; readonly to?: unknown }[];
    }
  | {
      /** Spans on one axis of time, each below the one that it is a part of. */
      readonly kind: 'waterfall';
      readonly title?: string;
      readonly spans: readonly PageSpan[];
    };

/**
 * Something that a person fills in to choose what a page shows. It stands in the page's address, so it may hold no secret.
 *
 * @experimental
 */
export interface PageInput {
  /** Small letters, digits and dashes; not `at` or `mark`. */
  readonly name: string;
  readonly title: string;
  /** `long` has several lines. */
  readonly kind: 'text' | 'long' | 'choice';
  readonly choices?: readonly string[];
  /** What it is while nobody fills it in. */
  readonly value?: string;
  /** An example, shown while it is empty. */
  readonly example?: string;
}

/**
 * Which records a page reads.
 *
 * @experimental
 */
export interface PageRecords {
  /** Addresses of actors. */
  readonly actors: readonly string[];
  /** Types of events; all unless set. */
  readonly events?: readonly string[];
  /** The most that is returned. */
  readonly limit: number;
}

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
  /**
   * The newest records of some actors that are not after the moment, newest first. A long search ends after some 300 ms.
   *
   * @returns `more` where older ones may match, too
   */
  readonly records: (
    wanted: PageRecords,
  ) => Promise<{ readonly records: readonly LogRecord[]; readonly more: boolean }>;
  /** What is filled in, by the names of the page's inputs; empty ones are absent. */
  readonly inputs: Readonly<Record<string, string>>;
  /** Aborted when nobody waits for the page any more. */
  readonly signal: AbortSignal;
}

/**
 * A page of a plugin. A fold over the actors can be shown at any moment; a page that asks something outside shows what
 * was there at the moment's time.
 *
 * @experimental
 */
export interface ConsolePage {
  /** Small letters, digits and dashes; no two plugins bring one name. */
  readonly name: string;
  readonly title: string;
  readonly inputs?: readonly PageInput[];
  /** `false` of one that is reached by links, and not listed among the pages. */
  readonly isListed?: false;
  /** Its answer costs much: a person asks for it again, it does not follow the log. */
  readonly isCostly?: true;
  /** Of a log that nothing writes there is nothing to show. */
  readonly needsInstance?: true;
  /** Its sections at a moment; cheap, and without secrets. What it throws is shown in its place. */
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
