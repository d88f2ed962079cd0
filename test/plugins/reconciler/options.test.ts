import test from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import type { HoldfastError } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { legSettings, reconcilerOptions } from '../../../src/plugins/reconciler/options.ts';

type Options = Parameters<typeof reconciler>[0];

const MAIN = { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' };
const settings = (options: Options = {}) => legSettings(reconcilerOptions.parse(options));

function refusal(options: Options): HoldfastError {
  try {
    resolveConfig({ plugins: [reconciler(options)] }, { env: {} });
  } catch (error) {
    return error as HoldfastError;
  }
  throw new Error('it was not refused');
}

test('[R24] without options the legs of the example config are held, Guest and Telework not among them', (t) => {
  const legs = settings();
  t.deepEqual(
    legs.map(({ intf, label, address }) => `${intf} ${label} ${address}`),
    [
      'eth1.10 Main fd5e:21aa:90c4:10::1/64',
      'eth1.20 IoT fd5e:21aa:90c4:20::1/64',
      'eth1.40 Lab fd5e:21aa:90c4:40::1/64',
      'eth1.50 Core fd5e:21aa:90c4:50::1/64',
      'eth1.70 MainWireless fd5e:21aa:90c4:70::1/64',
    ],
  );
  t.is(reconcilerOptions.parse({}).batchMs, 5, 'what comes within 5 ms is one read, or one post');
  t.like(legs[0], { settleMs: 25, secondLookMs: 1_000, maxTries: 5, waitMs: 5_000, resyncMs: 240_000 });
});

test('[R24] the role’s own setting name is understood', (t) => {
  t.like(settings({ router_ula_reconciler_addresses: [MAIN] }), { 0: MAIN, length: 1 });
  const error = refusal({ legs: [MAIN], router_ula_reconciler_addresses: [MAIN] });
  t.is(error.code, 'HF_CONFIG_OPTION');
  t.regex(error.message, /option router_ula_reconciler_addresses: it means the same as legs/);
});

test('[R24] addresses are brought into one form, and a leg without a label goes by its interface', (t) => {
  t.like(settings({ legs: [{ intf: 'br0', address: 'FD5E:21AA::0010:0:0:0:1/64' }] })[0], {
    intf: 'br0',
    label: 'br0',
    address: 'fd5e:21aa:0:10::1/64',
  });
});

const refused: [what: string, options: Options, message: RegExp][] = [
  [
    'Guest, by its interface',
    { legs: [{ ...MAIN, intf: 'eth1.30' }] },
    /legs\[0\]\.intf: it must not be eth1\.30/,
  ],
  [
    'Telework, by its interface',
    { legs: [{ ...MAIN, intf: 'eth1.60' }] },
    /legs\[0\]\.intf: it must not be eth1\.60/,
  ],
  [
    'Guest, by its name',
    { legs: [{ ...MAIN, label: 'guest' }] },
    /legs\[0\]\.label: it must not be guest: that network is never touched/,
  ],
  [
    'Telework, by its name, whatever is allowed',
    { never: [], legs: [MAIN, { ...MAIN, intf: 'eth1.61', label: 'Telework', address: 'fd00::1/64' }] },
    /legs\[1\]\.label: it must not be Telework/,
  ],
  [
    'an interface of one’s own list',
    { never: ['eth1.10'], legs: [MAIN] },
    /legs\[0\]\.intf: it must not be eth1\.10/,
  ],
  [
    'a leg that is listed twice',
    { legs: [MAIN, { ...MAIN, address: 'fd00::1/64' }] },
    /legs\[1\]\.intf: eth1\.10 is listed twice/,
  ],
  [
    'an address that is listed twice, in another spelling',
    { legs: [MAIN, { intf: 'eth1.20', address: 'FD5E:21AA:90C4:10:0::1/64' }] },
    /legs\[1\]\.address: fd5e:21aa:90c4:10::1\/64 is listed twice/,
  ],
  [
    'an address without a prefix',
    { legs: [{ ...MAIN, address: 'fd00::1' }] },
    /legs\[0\]\.address: it must be an IPv6 address with its prefix/,
  ],
  [
    'an IPv4 address',
    { legs: [{ ...MAIN, address: '10.0.0.1/24' }] },
    /legs\[0\]\.address: it must be an IPv6 address/,
  ],
  [
    'nonsense',
    { legs: [{ ...MAIN, address: 'fd00::1/129' }] },
    /legs\[0\]\.address: it must be an IPv6 address/,
  ],
  [
    'a link-local address',
    { legs: [{ ...MAIN, address: 'fe80::1/64' }] },
    /legs\[0\]\.address: it must be a unique local or global address, this one is linkLocal/,
  ],
  ['a multicast address', { legs: [{ ...MAIN, address: 'ff02::1/64' }] }, /this one is multicast/],
  [
    'a name that is no interface',
    { legs: [{ ...MAIN, intf: '__proto__' }] },
    /legs\[0\]\.intf: it must be the name of an interface/,
  ],
  ['an empty list', { legs: [] }, /option legs: /],
  ['a misspelt option', { setleMs: 5 } as Options, /option setleMs: there is no such option.*$/],
  ['a time below zero', { settleMs: -1 }, /option settleMs: /],
];
for (const [what, options, message] of refused) {
  test(`[R24] refused at load: ${what}`, (t) => {
    const error = refusal(options);
    t.is(error.code, 'HF_CONFIG_OPTION');
    t.regex(error.message, message);
  });
}
