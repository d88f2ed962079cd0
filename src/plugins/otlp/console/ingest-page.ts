import {
  type ConsolePage,
  consolePages,
  type PageInput,
  type PageMoment,
  type PageSection,
  type PageStatus,
} from '../../../core/contracts/console.ts';
import { keyOf, statesOf } from '../../../core/host/history/page-states.ts';
import { type RANGES, USUAL_RANGE } from '../../../core/host/history/time-ranges.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { stateName } from '../../../core/host/terminal.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { IntakeContext } from '../../../machines/otlp/intake.ts';
import { intakeActor } from '../intake-actor.ts';
import type { IngestParts } from './ingest-live.ts';

/** Actors whose states say how telemetry comes in, beside the receiver's own. */
const OTHERS = ['columnar.connection', 'collector.key_rotation', 'collector.finding', 'collector.probe'];

const REQUESTS: Readonly<Record<string, readonly [status: PageStatus, what: string]>> = {
  taken: ['ok', 'requests are taken'],
  limited: ['degraded', 'some requests are refused: there is no memory for more'],
  refused: ['failing', 'every request is refused'],
};
const DATABASE: Readonly<Record<string, readonly [status: PageStatus, what: string]>> = {
  unknown: ['unknown', 'nothing was inserted yet'],
  available: ['ok', 'takes rows'],
  unavailable: ['degraded', 'takes no rows: they are kept on disk'],
  reported: ['failing', 'takes no rows, and an alert was raised: they are kept on disk'],
};

/** Those of all ranges that this page offers. */
const OFFERED: readonly (keyof typeof RANGES)[] = ['1 hour', '6 hours', '1 day', '7 days'];
const inputs: readonly PageInput[] = [
  {
    name: 'range',
    title: 'Time',
    kind: 'choice',
    choices: OFFERED,
    value: USUAL_RANGE,
  },
];
const page: Omit<ConsolePage, 'data'> = { name: 'ingest', title: 'Ingest', inputs };

/** What the log says of ingest at a moment. */
function ingestFold(moment: PageMoment): PageSection[] {
  const [receiver] = statesOf(moment, intakeActor.type);
  if (!receiver) return [];
  const { requests = '', database = '' } = isObject(receiver.value) ? receiver.value : {};
  const {
    place,
    unavailable,
    unavailableSince,
    blocked,
    refused = 0,
  } = receiver.context as Partial<IntakeContext>;
  const [taken, found] = [REQUESTS[String(requests)], DATABASE[String(database)]];
  const facts = [
    {
      label: 'Receiver',
      status: taken?.[0] ?? ('unknown' as const),
      value: [taken?.[1] ?? String(requests), ...(blocked === undefined ? [] : [blocked])].join(': '),
      actor: receiver.ref,
    },
    {
      label: 'Database',
      status: found?.[0] ?? ('unknown' as const),
      value: [place, found?.[1] ?? String(database), unavailable]
        .filter((text) => text !== undefined)
        .join(': '),
      ...(unavailable !== undefined && unavailableSince !== undefined && { since: unavailableSince }),
    },
    ...(refused > 0 ? [{ label: 'Refused in the last overload', value: `${refused} requests` }] : []),
  ];
  return [{ kind: 'facts', title: 'Receiver', facts }, ...othersTable(moment)];
}

/** Each with its state, and the way to it: what it means, its own page says. */
function othersTable(moment: PageMoment): PageSection[] {
  const rows = OTHERS.flatMap((type) => statesOf(moment, type)).map(({ ref, value, context, seq }) => ({
    actor: ref,
    seq,
    ...(stateName(value) === 'lost' && { status: 'failing' as const }),
    cells: { what: keyOf({ ref }), state: stateName(value).replaceAll('_', ' '), text: textOf(context) },
  }));
  if (rows.length === 0) return [];
  const columns = [
    { name: 'what', title: 'What' },
    { name: 'state', title: 'State' },
    { name: 'text', title: 'Why' },
  ] as const;
  return [{ kind: 'table', title: 'Keys, config and connection', columns, rows }];
}

/** What an actor of another plugin says of itself; its shape is not ours. */
function textOf(context: unknown): string | null {
  if (!isObject(context)) return null;
  const { reason, note, end, finding } = context;
  const said = reason ?? note ?? end ?? (isObject(finding) ? finding.text : undefined);
  return typeof said === 'string' ? said : null;
}

/** Lets the console show how telemetry comes in: from the log at any moment, and more where the receiver runs. */
export function contributePage(context: PluginContext<{ readonly parts: IngestParts }>): void {
  context.contribute(consolePages, { ...page, data: ingestFold });
  context.contribute(consolePages, ({ parts }) => ({
    ...page,
    data: async (moment) => {
      const { liveSections } = await import('./ingest-live.ts');
      const [live, stored] = await liveSections(parts, moment);
      return [...ingestFold(moment), ...live, ...stored];
    },
  }));
}
