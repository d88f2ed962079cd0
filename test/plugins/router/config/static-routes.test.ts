import test from 'ava';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { validateConfig } from '../../../../src/plugins/router/config/validate.ts';
import { type Config, exampleConfig, Rig } from '../rig.ts';

const route = { destination: '10.9.0.0/16', via: '10.77.10.9' };
const places: [path: string, post: (config: Config) => void][] = [
  ['routing.global.static', (c) => (c.routing.global.static = { routes: [route] })],
  ['routing.global.routes', (c) => (c.routing.global.routes = [route])],
  ['routing.static', (c) => (c.routing.static = [route])],
  ['routing.eth1.10.staticRoutes', (c) => (c.routing['eth1.10'] = { staticRoutes: [route] })],
  ['routing.global.extra.0', (c) => (c.routing.global.extra = [{ dst: 'fd00::/8', viaIntf: 'eth1.10' }])],
  ['routing.global.10.9.0.0/16', (c) => (c.routing.global['10.9.0.0/16'] = { via: '10.77.10.9' })],
  ['interface.vlan.eth1.10.routes', (c) => (c.interface.vlan['eth1.10'].routes = [route])],
  ['static_routes', (c) => (c.static_routes = [route])],
];
for (const [path, post] of places) {
  test(`[R37] a static route is refused by name, and the lever that lasts is said: ${path}`, (t) => {
    const config = exampleConfig();
    post(config);
    const error = t.throws(() => validateConfig(config), { instanceOf: HoldfastError });
    t.is(error?.code, 'HF_ROUTER_STATIC_ROUTE');
    t.true(error?.what.includes(`at ${path}:`), error?.what);
    t.regex(error?.what ?? '', /addressing is the durable lever/);
  });
}

test('[R37] the WAN default policy and empty leftovers are no static routes', (t) => {
  const config = exampleConfig();
  config.routing.eth0 = { default: { type: 'static', viaIntf: 'eth0', gateway: '192.0.2.1' } };
  config.routing.global.static = {};
  config.routing.global.routes = [];
  t.notThrows(() => validateConfig(config));
});

test.serial(
  '[R37] a posted static route is answered 400 with that sentence, and nothing is applied',
  async (t) => {
    const rig = await Rig.start(t);
    const config = exampleConfig();
    config.routing.global.static = { routes: [route] };
    const { status, body } = await rig.set(config);
    t.is(status, 400);
    t.is(body.code, 'HF_ROUTER_STATIC_ROUTE');
    t.regex(
      body.errors[0],
      /routing\.global\.static: routing carries the WAN default policy only.*durable lever/,
    );
    t.is((await rig.active()).ncid, exampleConfig().ncid);
  },
);
