import { z } from 'zod';
import { durationFlag } from '../../core/host/duration.ts';
import { askInstance, operatorName } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { Monitors } from './monitors.ts';
import type { MonitorView } from './view.ts';

const PATH = '/uptime-monitor';

const fields = z.object({
  monitor: z.string().max(64),
  by: z.string().min(1).max(64),
  note: z.string().max(200).optional(),
  forMs: z.number().int().min(60_000).max(2_592_000_000).default(3_600_000),
});

/** Registers the commands `holdfast uptime …` and the operations that serve them. */
export function registerOperations(context: PluginContext<{ readonly monitors: Monitors }>): void {
  context.control((surface, { monitors: all }) => {
    serveOperation(surface, `${PATH}/list`, z.object({}), () => ({ monitors: all.all() }));
    for (const [verb, type] of [
      ['ack', 'ACK'],
      ['pause', 'PAUSE'],
      ['resume', 'UNPAUSE'],
    ] as const) {
      serveOperation(
        surface,
        `${PATH}/${verb}`,
        fields,
        async ({ monitor, by, note, forMs }, { correlation }) => {
          const action =
            type === 'ACK' ? { type, by, forMs, ...(note !== undefined && { note }) } : { type, by };
          return { monitors: [await all.act(monitor, action, correlation)] };
        },
      );
    }
  });
  for (const command of commands) context.command(command);
}

const commands: readonly CommandDefinition[] = [
  {
    name: 'uptime list',
    summary: 'Lists the push monitors of the running instance with their states and reasons',
    example: 'holdfast uptime list',
    run: async (_args, _flags, command) => {
      const monitors = await ask(command, 'list', {});
      show(monitors, command);
      return monitors.some(({ state }) => state === 'down') ? 1 : 0;
    },
  },
  {
    name: 'uptime ack <monitor>',
    summary: 'Acknowledges that a monitor is down: no reminders for a time',
    example: 'holdfast uptime ack clickstack-watchdog --for 2h --note "disk is being replaced"',
    flags: [
      { flags: '--for <time>', summary: 'e.g. 30m, 2h or 1d', default: '1h' },
      { flags: '--note <text>', summary: 'shown on the status page' },
      { flags: '--by <name>', summary: 'who; the user unless given' },
    ],
    run: async ([monitor = ''], { for: time, note, by }, command) => {
      const forMs = durationFlag('--for', time, { least: '1m', most: '30d', command: 'uptime ack' });
      show(
        await ask(command, 'ack', {
          monitor,
          by: by ?? operatorName(),
          forMs,
          ...(note !== undefined && { note }),
        }),
        command,
      );
    },
  },
  {
    name: 'uptime pause <monitor>',
    summary: 'Pauses a monitor: its beats are refused and no alerts are raised',
    example: 'holdfast uptime pause router-ula',
    run: async ([monitor = ''], _flags, command) => {
      show(await ask(command, 'pause', { monitor, by: operatorName() }), command);
    },
  },
  {
    name: 'uptime resume <monitor>',
    summary: 'Watches a paused monitor again',
    example: 'holdfast uptime resume router-ula',
    run: async ([monitor = ''], _flags, command) => {
      show(await ask(command, 'resume', { monitor, by: operatorName() }), command);
    },
  },
];

async function ask(command: CommandContext, verb: string, body: object): Promise<MonitorView[]> {
  const missing = 'it runs no uptime monitor';
  const { monitors } = await askInstance<{ monitors: MonitorView[] }>(
    command,
    `${PATH}/${verb}`,
    body,
    missing,
  );
  return monitors;
}

function show(monitors: readonly MonitorView[], { json, print, terminal }: CommandContext): void {
  if (json) {
    print(JSON.stringify({ monitors }));
    return;
  }
  const width = Math.max(0, ...monitors.map(({ name }) => name.length));
  for (const { name, state, since, lastBeat, reason, acknowledged, downAt } of monitors) {
    const colour = state === 'up' ? 'green' : state === 'down' ? 'red' : 'yellow';
    const facts = [
      since && `since ${short(since)}`,
      lastBeat ? `last beat ${short(lastBeat.at)}${lastBeat.msg ? ` (${lastBeat.msg})` : ''}` : 'no beat yet',
      state === 'late' && downAt && `down at ${short(downAt)}`,
      acknowledged && `acknowledged by ${acknowledged.by} until ${short(acknowledged.until)}`,
    ];
    print(
      `${name.padEnd(width)}  ${terminal.paint(colour, state.padEnd(7))}  ${facts.filter(Boolean).join(', ')}`,
    );
    if (reason) print(`${' '.repeat(width)}  ${reason}`);
  }
}

function short(at: string): string {
  return at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
}
