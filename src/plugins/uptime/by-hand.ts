import { z } from 'zod';
import type { Heartbeat } from '../../core/contracts/uptime.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { defineActor, type RecordOf } from '../../core/kernel/actors/definition.ts';
import { handPush } from '../../machines/uptime/push.ts';
import { pushEventOf } from './answer.ts';
import type { PushClient, PushSeen } from './push-client.ts';

/** What `push` and `push doctor` post to. */
export const PUSH_PATH = '/uptime/push';

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

/** The pushes by hand of one monitor. */
const pushActor = defineActor({
  type: 'uptime.push',
  machine: handPush,
  version: 1,
  describe: describeHandPush,
});

interface Pushing extends Pick<Services, 'actors' | 'clock'> {
  readonly client: PushClient;
}

/** Registers pushes by hand: the running instance makes them, for it has the tokens and keeps the answers. */
export function registerByHand(context: PluginContext<Pushing>): void {
  context.actor(pushActor);
  context.control((surface, pushing) => {
    serveOperation(surface, PUSH_PATH, asked, ({ monitor, beat }) => pushByHand(pushing, monitor, beat));
  });
}

/** Pushes, and records the answer with its body (O15). @throws HF_UPTIME_TOKEN */
async function pushByHand(
  { actors, clock, client }: Pushing,
  monitor: string,
  beat: Heartbeat,
): Promise<PushedByHand> {
  const seen = await client.send(monitor, beat);
  await actors.send(pushActor, monitor, pushEventOf(seen.answer, clock.now())).durable();
  return { place: client.place, ...seen };
}

function describeHandPush({ event }: RecordOf<typeof handPush>): string | undefined {
  switch (event.type) {
    case 'init':
      return '';
    case 'PUSHED':
      return 'a push by hand arrived';
    case 'PUSH_REFUSED':
      return `a push by hand was refused, HTTP ${event.status}: ${event.msg ?? event.body}`;
    case 'PUSH_FAILED':
      return `a push by hand did not arrive: ${event.reason}`;
  }
  return undefined;
}
