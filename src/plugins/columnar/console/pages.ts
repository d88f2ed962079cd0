import {
  type ConsolePage,
  consolePages,
  type PageMoment,
  type PageSection,
} from '../../../core/contracts/console.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { Database } from '../database.ts';
import { ColumnarError } from '../errors.ts';
import type { ColumnarOptions } from '../options.ts';
import { logInputs, oneTraceInputs, sqlInputs, traceInputs } from './inputs.ts';

type Sections = (database: Database, moment: PageMoment) => Promise<PageSection[]>;

const common = { isCostly: true, needsInstance: true } as const;

/** What each page is, and what makes its sections; that is loaded when somebody looks. */
const PAGES: readonly (readonly [page: Omit<ConsolePage, 'data'>, load: () => Promise<Sections>])[] = [
  [
    { ...common, name: 'logs', title: 'Logs', inputs: logInputs },
    async () => (await import('./logs.ts')).logSections,
  ],
  [
    { ...common, name: 'traces', title: 'Traces', inputs: traceInputs },
    async () => (await import('./traces.ts')).traceSections,
  ],
  [
    { ...common, name: 'trace', title: 'Trace', inputs: oneTraceInputs, isListed: false },
    async () => (await import('./trace.ts')).oneTraceSections,
  ],
  [
    { ...common, name: 'sql', title: 'SQL', inputs: sqlInputs },
    async () => (await import('./sql.ts')).sqlSections,
  ],
];

/** Lets the console search logs and traces, and ask statements; where the plugin does not run, the pages say why. */
export function contributePages(
  context: PluginContext<{ readonly database: Database }>,
  { url }: Pick<ColumnarOptions, 'url'>,
): void {
  for (const [page, load] of PAGES) {
    context.contribute(consolePages, { ...page, data: () => sayWhyNot(url) });
    context.contribute(consolePages, ({ database }) => ({
      ...page,
      data: async (moment) => (await load())(database, moment),
    }));
  }
}

/** @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_NOT_RUNNING */
async function sayWhyNot(url: string | undefined): Promise<never> {
  if (url === undefined) (await import('../engine/folder.ts')).findEngine();
  const reason = 'the plugin columnar did not start; `holdfast status` says why';
  throw new ColumnarError('HF_COLUMNAR_NOT_RUNNING', { reason });
}
