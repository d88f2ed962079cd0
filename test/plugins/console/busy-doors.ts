import { z } from 'zod';
import {
  type ConsoleAction,
  type ConsolePage,
  consoleActions,
  consolePages,
} from '../../../src/core/contracts/console.ts';
import { serveOperation } from '../../../src/core/host/operations/serve.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { door } from '../../support/door.ts';
import { until } from '../../support/until.ts';
import type { ConsoleRig } from './console-rig.ts';

export const CANARY = 'canary-7c1f0b93e2d84a55';
export const DOORS = 4;
export const ROUNDS = 40;

const doorsPage: ConsolePage = {
  name: 'doors',
  title: 'Doors',
  inputs: [{ name: 'state', title: 'State', kind: 'choice', choices: ['all', 'none'], value: 'all' }],
  data: ({ states, time, isNow, inputs }) => [
    {
      kind: 'table',
      columns: [
        { name: 'door', title: 'Door' },
        { name: 'state', title: 'State' },
      ],
      rows: [...states.values()]
        .filter(({ ref }) => ref.startsWith('test.door/') && inputs.state === 'all')
        .map(({ ref, value }) => ({ cells: { door: ref, state: String(value) }, actor: ref })),
    },
    { kind: 'facts', facts: [{ label: 'password', value: isNow, since: time, status: 'ok' }] },
    { kind: 'text', text: `authorization: Bearer ${CANARY}` },
    { kind: 'chart', series: [{ name: 'a', points: [[time, 1]] }] },
    { kind: 'changes', changes: [{ path: 'lock', from: 'open', to: { by: 'ada' } }, { path: 'bell' }] },
    {
      kind: 'waterfall',
      spans: [
        {
          id: '2',
          parent: '1',
          name: 'ring',
          by: 'bell',
          start: time + 2,
          duration: 1.5,
          status: 'failing',
        },
        { id: '1', name: 'visit', by: 'door', start: time, duration: 8, facts: { rooms: 3 } },
      ],
    },
  ],
};

export const doors = definePlugin({
  name: 'test',
  options: z.strictObject({}),
  register(context) {
    context.actor(door);
    context.contribute(consolePages, doorsPage);
    context.contribute(
      consoleActions,
      (): ConsoleAction => ({
        name: 'knock',
        title: 'Knock',
        confirm: 'Knocks at a door.',
        fields: [
          { name: 'door', title: 'Door', kind: 'choice', choices: ['door-1', 'door-2'], required: true },
          { name: 'wait', title: 'Wait', kind: 'duration', required: false },
        ],
        operation: '/test/knock',
        body: (fields, by) => ({ ...fields, by }),
      }),
    );
    context.control((surface, { actors }) => {
      const body = z.strictObject({ door: z.string(), wait: z.number().optional(), by: z.string() });
      serveOperation(surface, '/test/knock', body, ({ door: key, wait = 0, by }, { correlation }) => {
        const { record } = actors.send(door, key, { type: 'KNOCK' }, { correlation });
        return { seq: record?.seq ?? 0, wait, by };
      });
    });
    context.effect('bell.ring', () => ({ type: 'RANG', loud: true }), { onRecovery: 'fail' });
    context.effect(
      'lamp.on',
      () => {
        throw new Error('the lamp is broken');
      },
      { onRecovery: 'fail' },
    );
  },
});

/** The log of some doors: stories with effects that are done, and such that fail; timers that are cancelled; a secret. */
export async function busyDoors(rig: ConsoleRig): Promise<number> {
  const { actors } = rig.runtime.services;
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = `door-${round % DOORS}`;
    actors.send(door, key, { type: 'OPEN', by: round % 5 === 0 ? 'stranger' : `guest-${round}` });
    actors.send(door, key, { type: 'CLOSE' });
    actors.send(door, key, { type: 'KNOCK' });
  }
  actors.deliver('test.door/door-1', { type: 'OPEN', by: '<img src=x onerror=alert(1)>', password: CANARY });
  await until('every effect has ended', () =>
    actors.states(door.type).every(({ effects }) => Object.keys(effects).length === 0),
  );
  return rig.durable();
}
