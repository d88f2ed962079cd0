import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import type { UpsReading } from '../../examples/ups/machine.ts';
import { serveOwnModules } from '../../src/core/host/config/load.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { elapsed, given, impurities } from '../../src/core/host/testing/index.ts';
import { createRuntime } from '../../src/index.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

serveOwnModules();
const { ups } = await import('../../examples/ups/machine.ts');
const { readUps, upsWatch } = await import('../../examples/ups/plugin.ts');

const read = (status: string, charge = 90) => ({ type: 'READ' as const, status, charge });
const power = (state: string, severity: string, text: string) => ({
  type: 'alerts.raise',
  params: { name: 'ups.power', severity, text, labels: { state } },
});

test('[C11] the example machine raises an alert for an outage of half a minute, not for a dip, and for a low battery', (t) => {
  t.deepEqual(impurities(ups), []);
  given(ups)
    .when({ type: 'START' })
    .then({ state: 'onLine', effects: [{ type: 'ups.read' }] })
    .when(read('OB DISCHRG'))
    .then({ state: { onBattery: 'waiting' }, effects: [{ type: 'ups.read' }] })
    .when(read('OL CHRG'))
    .then({ state: 'onLine', effects: [{ type: 'ups.read' }] })
    .when(read('OB DISCHRG'))
    .then({ state: { onBattery: 'waiting' }, effects: [{ type: 'ups.read' }] })
    .when(elapsed('outage'))
    .then({
      state: { outage: 'waiting' },
      effects: [
        power('firing', 'critical', 'The power is out; the UPS feeds from its battery.'),
        { type: 'ups.read' },
      ],
    })
    .when(read('OB LB', 8))
    .then({
      state: { low: 'waiting' },
      effects: [
        power('firing', 'critical', 'The battery of the UPS is low: what it feeds will lose power soon.'),
        { type: 'ups.read' },
      ],
      context: { reading: { status: 'OB LB', charge: 8 } },
    })
    .when(read('OL CHRG', 9))
    .then({
      state: 'onLine',
      effects: [power('resolved', 'info', 'The power is back.'), { type: 'ups.read' }],
    });
});

/** A upsd that knows one UPS. */
async function upsd(t: ExecutionContext, reading: UpsReading) {
  const sockets = new Set<Socket>();
  const served = { reading, asked: 0 };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const line of data.toString().trim().split('\n')) {
        served.asked += 1;
        const [, , name, variable] = line.split(' ');
        const value = variable === 'ups.status' ? served.reading.status : String(served.reading.charge);
        socket.write(name === 'cellar' ? `VAR ${name} ${variable} "${value}"\n` : 'ERR UNKNOWN-UPS\n');
      }
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return Object.assign(served, { port: (server.address() as AddressInfo).port });
}

test('[C11] the example plugin reads a UPS over the network, also by its timer, and its check says what it found', async (t) => {
  const server = await upsd(t, { status: 'OL', charge: 100 });
  const clock = new VirtualClock();
  const { definition, options } = upsWatch({ name: 'cellar', port: server.port });
  const runtime = createRuntime({
    plugins: [{ definition, options: definition.options.parse(options) }],
    dataDir: tempDir(t),
    clock,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test'));
  await runtime.start();
  const state = () => runtime.services.actors.snapshot('ups.unit/cellar');
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await until(() => (state()?.context as any)?.reading?.charge === 100);
  server.reading = { status: 'OB', charge: 80 };
  await clock.advance(60_000);
  await until(() => JSON.stringify(state()?.value).includes('onBattery'));
  const { signal } = new AbortController();
  const [check] = runtime.registrations.checks.filter(({ name }) => name === 'ups.reading');
  t.like(await check?.run({ dataDir: '', signal }), { state: 'warn', found: 'it says OB, 80 % charged' });
  await t.throwsAsync(readUps({ name: 'attic', host: '127.0.0.1', port: server.port }, signal), {
    message: /UNKNOWN-UPS/,
  });
});
