import { z } from 'zod';
import { type Heartbeat, type UptimeMonitor, UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { handPush } from '../../machines/uptime/push.ts';
import { pushEventOf } from './answer.ts';
import { PushClient, type PushSeen } from './push-client.ts';

/** What `push` and `push doctor` post to. */
export const PUSH_PATH = '/uptime/push';
const ACTOR = 'uptime.push';

const asked = z.object({
  monitor: z.string().regex(/^[\w.-]{1,64}$/),
  beat: z.object({
    status: z.enum(['up', 'down']),
    msg: z.string().max(1_000),
    ping: z.int().min(0).optional(),
    probe: z.boolean().optional(),
  }),
});

/** A push by hand, and where it went. */
export interface PushedByHand extends PushSeen {
  readonly place: string;
}

/** Registers pushes by hand: the running instance makes them, for it has the tokens and keeps the answers. */
export function registerByHand(context: PluginContext): void {
  context.actor(defineActor({ type: ACTOR, machine: handPush, version: 1, describe: describeHandPush }));
  context.control((surface) => {
    serveOperation(surface, PUSH_PATH, asked, ({ monitor, beat }) =>
      pushByHand(context.services, monitor, beat),
    );
  });
}

/** Pushes, and records the answer with its body (O15). @throws HF_UPTIME_TOKEN */
async function pushByHand(
  { actors, clock, get }: Services,
  monitor: string,
  beat: Heartbeat,
): Promise<PushedByHand> {
  const client = get(UptimeMonitorToken);
  const seen = await sendBy(client, monitor, beat);
  await actors.send(actorRef(ACTOR, monitor), pushEventOf(seen.answer, clock.now())).durable();
  return { place: client.place, ...seen };
}

/** Another plugin's client shows no headers. */
async function sendBy(client: UptimeMonitor, monitor: string, beat: Heartbeat): Promise<PushSeen> {
  if (client instanceof PushClient) return client.send(monitor, beat);
  return { answer: await client.push(monitor, beat), headers: [] };
}

function describeHandPush({ event }: LogRecord): string | undefined {
  switch (event.type) {
    case 'init':
      return '';
    case 'PUSHED':
      return 'a push by hand arrived';
    case 'PUSH_REFUSED':
      return `a push by hand was refused, HTTP ${String(event.status)}: ${String(event.msg ?? event.body)}`;
    case 'PUSH_FAILED':
      return `a push by hand did not arrive: ${String(event.reason)}`;
  }
  return undefined;
}
