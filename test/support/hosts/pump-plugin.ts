import { appendFileSync } from 'node:fs';
import { setTimeout as passing } from 'node:timers/promises';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { serveOperation } from '../../../src/core/host/operations/serve.ts';
import { defineActor, definePlugin, defineTopic } from '../../../src/index.ts';

/**
 * A singleton of tests: a pump that makes a stroke after each pause, on one host at a time, and that any host may ask for more.
 * What it does is written into a journal, as a device at the other end of a wire would see it.
 */
interface PumpContext {
  readonly stroke: number;
  readonly wanted: number;
}

type PumpEvent =
  | { readonly type: 'WANTED'; readonly by: string }
  | { readonly type: 'STROKE_DONE'; readonly stroke: number };

interface StrokeParams {
  readonly stroke: number;
}

const pump = setup({
  types: { context: {} as PumpContext, events: {} as PumpEvent },
  actions: {
    'pump.stroke': (_: unknown, _params: StrokeParams) => {},
    next: assign(({ context }) => ({ stroke: context.stroke + 1 })),
    want: assign(({ context }) => ({ wanted: context.wanted + 1 })),
  },
  delays: { pause: 150 },
}).createMachine({
  id: 'pump',
  context: { stroke: 0, wanted: 0 },
  initial: 'resting',
  on: { WANTED: { actions: 'want' } },
  states: {
    resting: { after: { pause: 'stroking' } },
    stroking: {
      entry: [
        'next',
        {
          type: 'pump.stroke',
          params: ({ context }: { context: PumpContext }) => ({ stroke: context.stroke }),
        },
      ],
      on: { STROKE_DONE: 'resting', 'effect.failed': 'resting' },
    },
  },
});

/** A line of the journal. */
export interface Stroke {
  readonly host: string;
  readonly token: string;
  /** Of the effect: the same when it is tried again, also by another host. */
  readonly id: string;
  readonly stroke: number;
  readonly phase: 'begun' | 'done';
  /** Nanoseconds of the machine's monotonic clock, which all processes share. */
  readonly at: string;
}

export const pumpActor = defineActor({ type: 'pump.pump', machine: pump, version: 1 });
const pumpWanted = defineTopic('pump.wanted', z.object({ by: z.string() }), 'Somebody wants water.');

export const pumpPlugin = definePlugin({
  name: 'pump',
  singleton: 'pump',
  options: z.strictObject({ journal: z.string(), host: z.string(), strokeMs: z.int().default(20) }),
  register(context, { journal, host, strokeMs }) {
    context.actor(pumpActor);
    context.effect<StrokeParams>(
      'pump.stroke',
      async ({ stroke }, { id, fencingToken = '', signal }) => {
        const line = (phase: Stroke['phase']) => {
          const entry: Stroke = {
            host,
            token: fencingToken,
            id,
            stroke,
            phase,
            at: String(process.hrtime.bigint()),
          };
          appendFileSync(journal, `${JSON.stringify(entry)}\n`);
        };
        line('begun');
        await passing(strokeMs, undefined, { signal });
        line('done');
        return { type: 'STROKE_DONE', stroke };
      },
      { onRecovery: 'retry' },
    );
    context.route(pumpWanted, pumpActor, ({ payload: { by } }) => [
      { key: 'main', event: { type: 'WANTED', by } },
    ]);
    context.onReady(({ bus }) => {
      bus.publish(pumpWanted, { by: host });
    });
  },
});

/** Runs on every host, and asks the pump for more wherever it is. */
export const bucketPlugin = definePlugin({
  name: 'bucket',
  options: z.strictObject({ host: z.string() }),
  register(context, { host }) {
    context.control((surface, { bus }) => {
      serveOperation(
        surface,
        '/bucket/fill',
        z.strictObject({ times: z.int().default(1) }),
        async ({ times }) => {
          for (let i = 0; i < times; i += 1) bus.publish(pumpWanted, { by: host });
          return { asked: times };
        },
      );
    });
  },
});
