/**
 * Watches a UPS by Network UPS Tools: a machine that decides, a timer, an effect that reads, and a check of
 * `holdfast doctor ups`.
 *
 *     npx holdfast start --config examples/ups/plugins.config.ts --data-dir /tmp/ups
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { type CheckResult, defineActor, defineErrors, definePlugin, defineTopic } from 'holdfast';
import { z } from 'zod';
import { type UpsReading, ups } from './machine.ts';

export const UpsError = defineErrors({
  HF_UPS_UNREACHABLE: {
    status: 502,
    what: 'The UPS {name} at {host}:{port} cannot be read: {reason}.',
    remedy: 'Look whether upsd runs there and knows a UPS of this name: `upsc -l`.',
  },
});

const LONGEST_WAIT_MS = 5_000;

const started = defineTopic('ups.started', z.object({ name: z.string() }), 'The watch of a UPS begins.');
const upsActor = defineActor({
  type: 'ups.unit',
  machine: ups,
  version: 1,
  describe: ({ event }) =>
    event.type === 'READ' ? `says ${event.status}, ${event.charge} % charged` : undefined,
});

/** @example ups({ name: 'cellar', host: '192.168.1.5' }) */
export const upsWatch = definePlugin({
  name: 'ups',
  options: z.strictObject({
    /** As upsd calls it. */
    name: z.string().regex(/^[\w-]+$/),
    host: z.string().default('127.0.0.1'),
    port: z.int().min(1).max(65_535).default(3493),
  }),
  errors: UpsError,
  start: (services) => services,
  register(context, place) {
    context.actor(upsActor);
    context.route(started, upsActor, ({ payload }) => [{ key: payload.name, event: { type: 'START' } }]);
    // Once in the life of the log: from then on the machine reads by its own timers, which outlive a restart.
    context.onReady(({ actors, bus }) => {
      if (!actors.get(upsActor, place.name)) bus.publish(started, { name: place.name });
    });
    context.effect(
      'ups.read',
      async (_params: undefined, { signal }) => ({ type: 'READ', ...(await readUps(place, signal)) }),
      { onRecovery: 'retry' },
    );
    context.check({ name: 'ups.reading', run: ({ signal }) => check(place, signal) });
  },
});

interface Place {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** Asks upsd for two variables of a UPS. @throws HF_UPS_UNREACHABLE */
export async function readUps({ name, host, port }: Place, signal: AbortSignal): Promise<UpsReading> {
  const socket = connect({
    host,
    port,
    signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_WAIT_MS)]),
  });
  const answers: Record<string, string> = {};
  try {
    await once(socket, 'connect');
    socket.write(`GET VAR ${name} ups.status\nGET VAR ${name} battery.charge\n`);
    for await (const line of createInterface({ input: socket })) {
      const [, variable = '', value = ''] = /^VAR \S+ (\S+) "(.*)"$/.exec(line) ?? [];
      if (variable === '') throw new Error(line);
      answers[variable] = value;
      if (Object.keys(answers).length === 2) break;
    }
    const { 'ups.status': status, 'battery.charge': charge } = answers;
    if (status === undefined || charge === undefined) throw new Error('it closed the connection');
    return { status, charge: Number(charge) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UpsError('HF_UPS_UNREACHABLE', { name, host, port, reason });
  } finally {
    socket.destroy();
  }
}

async function check(place: Place, signal: AbortSignal): Promise<CheckResult> {
  const { status, charge } = await readUps(place, signal);
  const lookedAt = `${place.name} at ${place.host}:${place.port}`;
  const found = `it says ${status}, ${charge} % charged`;
  if (status.split(' ').includes('OL')) return { state: 'ok', lookedAt, found };
  return { state: 'warn', lookedAt, found, remedy: 'Look why the power is out.' };
}
