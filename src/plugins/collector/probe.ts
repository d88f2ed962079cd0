/** The end-to-end probe of trace ingest (O1): it sends a span, looks for it, and records the result as an event. */

import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { pinAt } from '../../core/host/http/own-surface.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { timestamp } from '../../core/host/terminal.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { type ProbeEnd, probe } from '../../machines/collector/probe.ts';
import type { StartedCollector } from './active-keys.ts';
import { NO_COLLECTOR } from './errors.ts';
import { type ProbeReport, runProbe } from './run-probe.ts';
import { describeProbeRecord } from './words.ts';

/** What a probe showed says little of the pipeline a day later. */
const OLD_MS = 24 * 3_600_000;
const PROBE_PATH = '/collector/probe';
const KEY = 'traces';
const MOST_WAIT_SECONDS = 300;
/** Exit codes by where it ended. */
const CODES = { arrived: 0, no_key: 1, unreachable: 1, refused: 1, lost: 3, database_away: 4 } as const;

const probeRequest = z.strictObject({
  endpoint: z.url({ protocol: /^https?$/ }).optional(),
  insecure: z.boolean().default(false),
  seconds: z.number().min(0.1).max(MOST_WAIT_SECONDS).default(30),
});

const probeActor = defineActor({
  type: 'collector.probe',
  machine: probe,
  version: 1,
  describe: describeProbeRecord,
});

const probed = defineTopic(
  'collector.probed',
  z.object({
    at: z.number(),
    end: z.enum(['arrived', 'no_key', 'unreachable', 'refused', 'lost', 'database_away']),
    endpoint: z.string(),
    service: z.string(),
    arrivedMs: z.number().exactOptional(),
  }),
  'A span was sent through trace ingest and looked for in the database.',
);

export function registerProbe(context: PluginContext<StartedCollector>): void {
  context.actor(probeActor);
  context.route(probed, probeActor, ({ payload }) => [{ key: KEY, event: { type: 'PROBED', ...payload } }]);
  context.control((surface, { keys, services }) => {
    serveOperation(
      surface,
      PROBE_PATH,
      probeRequest,
      async ({ endpoint, insecure, seconds }, { correlation, signal }) => {
        const surfaces = services.surfaces();
        const own = surfaces.otlpHttp?.url;
        const report = await runProbe({
          endpoint: endpoint ?? own ?? 'http://127.0.0.1:4318',
          insecure: insecure || endpoint === undefined,
          pin: pinAt(surfaces, endpoint ?? own ?? ''),
          keys: keys.ring,
          database: services.find(ColumnarDatabaseToken),
          waitMs: seconds * 1_000,
          signal: AbortSignal.any([signal, AbortSignal.timeout((seconds + 30) * 1_000)]),
        });
        const { end, service, arrivedMs } = report;
        const message = { at: services.clock.now(), end, endpoint: report.endpoint, service };
        services.bus.publish(
          probed,
          { ...message, ...(arrivedMs !== undefined && { arrivedMs }) },
          { correlation },
        );
        return report;
      },
    );
  });
  context.command(probeCommand);
  context.health('probe', ({ services }) => {
    const state = services.actors.get(probeActor, KEY);
    if (!state) return undefined;
    const { end, at, arrivedAt, arrivedMs } = state.context;
    return {
      text:
        end === undefined || at === undefined
          ? 'none was made yet'
          : `the newest span ${ENDS[end]} (${timestamp(at)})`,
      ...(end !== undefined && { end }),
      ...(at !== undefined && {
        at: new Date(at).toISOString(),
        isOld: services.clock.now() - at > OLD_MS,
      }),
      ...(arrivedAt !== undefined && { arrivedAt: new Date(arrivedAt).toISOString() }),
      ...(arrivedMs !== undefined && { arrivedMs }),
    };
  });
}

const ENDS: Readonly<Record<ProbeEnd, string>> = {
  arrived: 'arrived in the database',
  no_key: 'was not sent: there is no key',
  unreachable: 'was not sent: nobody answered at the endpoint',
  refused: 'was refused by the receiver',
  lost: 'was accepted, and not found in the database',
  database_away: 'was accepted; whether it arrived is unknown: the database did not answer',
};

const probeCommand: CommandDefinition = {
  name: 'stack probe',
  summary:
    'Sends a span and shows it arriving, or where it stopped; exit 1 not accepted, 3 accepted and not found, 4 database away',
  example: 'holdfast stack probe',
  flags: [
    {
      flags: '--endpoint <url>',
      summary: "base of an OTLP/HTTP receiver; the running instance's own unless given",
    },
    { flags: '--insecure', summary: 'the key may go to another machine over http' },
    { flags: '--wait <seconds>', summary: 'how long it is looked for', default: '30' },
  ],
  async run(_args, flags, context) {
    const seconds = Number(flags.wait);
    const isUrl = flags.endpoint === undefined || /^https?:\/\/[^@]+$/.test(String(flags.endpoint));
    if (!isUrl || !(seconds >= 0.1 && seconds <= MOST_WAIT_SECONDS)) {
      const reason = isUrl
        ? `--wait takes seconds, at most ${MOST_WAIT_SECONDS}.`
        : '--endpoint takes an http or https URL without credentials.';
      throw new HostError('HF_CLI_USAGE', { reason, command: 'stack probe' });
    }
    const { endpoint } = flags;
    context.terminal.progress('a span is sent and looked for…');
    const insecure = flags.insecure === true;
    const question = { seconds, insecure, ...(endpoint !== undefined && { endpoint }) };
    const report = await askInstance<ProbeReport>(context, PROBE_PATH, question, NO_COLLECTOR);
    context.terminal.progress('');
    if (report.warning) context.note(report.warning);
    if (context.json) context.print(JSON.stringify(report));
    else {
      const { paint } = context.terminal;
      const isWell = report.end === 'arrived';
      context.print(
        `${paint(isWell ? 'green' : 'red', isWell ? 'arrived' : `stopped (${report.end})`)}: ${report.text}`,
      );
      if (report.remedy) context.print(report.remedy);
      context.print(paint('dim', `service ${report.service}, trace ${report.traceId}`));
    }
    return CODES[report.end];
  },
};
