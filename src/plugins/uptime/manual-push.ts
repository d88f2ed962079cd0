import { z } from 'zod';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { type Heartbeat, type PushAnswer, UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { ConfiguredPlugin, PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { manualPush } from '../../machines/uptime/push.ts';
import { UptimeError } from './errors.ts';
import type { UptimeOptions } from './options.ts';
import { type PushClient, type PushExchange, pushEventOf } from './push-client.ts';
import { describePushRecord } from './words.ts';

/** The path that `holdfast push` and `holdfast push doctor` post to. */
const PUSH_PATH = '/uptime/push';

const pushFields = z.object({
  monitor: z.string().regex(/^[\w.-]{1,64}$/),
  beat: z.object({
    status: z.enum(['up', 'down']),
    msg: z.string().max(1_000),
    ping: z.int().min(0).optional(),
    probe: z.boolean().optional(),
  }),
});

/** The answer to a manual push, and where it was sent. */
export interface ManualPush extends PushExchange {
  readonly place: string;
}

/** The manual pushes for one monitor. */
const pushActor = defineActor({
  type: 'uptime.push',
  machine: manualPush,
  version: 1,
  describe: describePushRecord,
});

interface PushServices extends Pick<Services, 'actors' | 'clock'> {
  readonly client: PushClient;
}

/** Manual pushes are made by the running instance, which has the tokens and records the answers. */
export function registerManualPush(context: PluginContext<PushServices>): void {
  context.actor(pushActor);
  context.control((surface, services) => {
    serveOperation(surface, PUSH_PATH, pushFields, ({ monitor, beat }, { correlation }) =>
      pushAndRecord(services, monitor, beat, correlation),
    );
  });
}

/** Pushes, and records the answer with its body (O15). @throws HF_UPTIME_TOKEN */
async function pushAndRecord(
  { actors, clock, client }: PushServices,
  monitor: string,
  beat: Heartbeat,
  correlation?: string,
): Promise<ManualPush> {
  const seen = await client.send(monitor, beat);
  await actors.send(pushActor, monitor, pushEventOf(seen.answer, clock.now()), { correlation }).durable();
  return { place: client.place, ...seen };
}

const NEEDED: readonly unknown[] = [SecretsStoreToken, UptimeMonitorToken];

/**
 * Sends a push through the running instance, or without one through a runtime of the few plugins that it needs. In both
 * cases tokens are read from the configured places, and the answer is recorded.
 *
 * @throws HF_UPTIME_NONE there is neither a configured monitor nor an instance
 * @throws HF_UPTIME_TOKEN
 */
export async function sendManualPush(
  { url }: UptimeOptions,
  command: CommandContext,
  monitor: string,
  beat: Heartbeat,
): Promise<ManualPush> {
  const { dataDir } = command;
  const { lockedBy } = await import('../../core/kernel/log/lock.ts');
  if (lockedBy(dataDir) !== undefined) return ask(command, monitor, beat);
  if (url === undefined) throw new UptimeError('HF_UPTIME_NONE', { dir: dataDir });

  const { createRuntime } = await import('../../core/host/runtime/runtime.ts');
  const { createLogger } = await import('../../core/host/logging/logger.ts');
  const { plugins } = await command.config();
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins: plugins.filter(isNeeded), dataDir, logger });
  try {
    await runtime.start();
    return await ask(command, monitor, beat);
  } finally {
    await runtime.stop('the push is made');
  }
}

async function ask(command: CommandContext, monitor: string, beat: Heartbeat): Promise<ManualPush> {
  const { askInstance } = await import('../../core/host/operations/control-client.ts');
  return askInstance<ManualPush>(command, PUSH_PATH, { monitor, beat }, 'it has no push client');
}

function isNeeded({ definition }: ConfiguredPlugin): boolean {
  const { provides = [] } = definition;
  return provides.some((token) => NEEDED.includes(token));
}

/** Milliseconds. @throws HF_CLI_USAGE it is not a non-negative integer */
export function pingOf(text: unknown, command: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,12}$/.test(String(text))) return Number(text);
  const reason = `The ping must be a non-negative integer of milliseconds, not ${String(text)}.`;
  throw new HostError('HF_CLI_USAGE', { reason, command });
}

/** @throws HF_CLI_USAGE it is neither `up` nor `down` */
export function statusOf(text: unknown, command: string): Heartbeat['status'] {
  if (text === 'up' || text === 'down') return text;
  throw new HostError('HF_CLI_USAGE', {
    reason: `--status must be up or down, not ${String(text)}.`,
    command,
  });
}

/** `holdfast push`: sends one beat and shows the body of the answer. */
export const pushCommand = (options: UptimeOptions): CommandDefinition => ({
  name: 'push <monitor>',
  summary: 'Sends one beat by hand, and shows the body of the answer whatever its status',
  example: 'holdfast push clickstack-watchdog --msg "by hand" --ping 12',
  flags: [
    { flags: '--status <status>', summary: 'up or down', default: 'up' },
    { flags: '--msg <text>', summary: 'what the monitor shows', default: 'by hand' },
    { flags: '--ping <ms>', summary: 'a non-negative integer of milliseconds' },
  ],
  async run([monitor = ''], { status, msg, ping }, command) {
    const beat = { status: statusOf(status, 'push'), msg: String(msg), ping: pingOf(ping, 'push') };
    const { place, answer } = await sendManualPush(options, command, monitor, beat);
    if (command.json) command.print(JSON.stringify({ monitor, place, ...answer }));
    else for (const line of answerLines(answer)) command.print(line);
    return answer.kind === 'delivered' ? 0 : 1;
  },
});

/** An answer for a person: its body first, unchanged. */
export function answerLines(answer: PushAnswer): string[] {
  switch (answer.kind) {
    case 'delivered':
      return [answer.body];
    case 'refused':
      return [
        answer.body || '(an empty body)',
        `PUSH DELIVERY FAILED: HTTP ${answer.status}${answer.msg === undefined ? '' : `: ${answer.msg}`} (wget exit status ${answer.exitStatus})`,
      ];
    case 'failed':
      return [`PUSH DELIVERY FAILED: ${answer.reason} (wget exit status ${answer.exitStatus})`];
  }
}
