import test from 'ava';
import { advertisementNotes, advertisements } from '../../../../src/plugins/router/config/advertisements.ts';
import { exampleConfig } from '../rig.ts';

const PAIR = { name: 'the resolver pair', prefixes: ['fc00::/7'], lifetime: 7200 };
const legs = (sources = [PAIR]) => advertisements(exampleConfig(), sources);
const leg = (intf: string, sources?: (typeof PAIR)[]) => legs(sources).find((one) => one.intf === intf)!;

test('[R20] a leg advertises the prefixes of its global-scope addresses, ULAs among them, for 86400 s', (t) => {
  const held = (intf: string) =>
    intf === 'eth1.10' ? ['fd5e:21aa:90c4:10::1/64', '2001:db8:1:10::1/64', 'fe80::1/64'] : undefined;
  const [main] = advertisements(exampleConfig(), [], held);
  t.deepEqual(main, {
    intf: 'eth1.10',
    label: 'Main',
    advertises: true,
    interval: 200,
    routerLifetime: 3600,
    prefixes: [
      {
        prefix: 'fd5e:21aa:90c4:10::/64',
        ula: true,
        sources: [{ name: 'the router', lifetime: 86_400 }],
        conflict: false,
      },
      {
        prefix: '2001:db8:1:10::/64',
        ula: false,
        sources: [{ name: 'the router', lifetime: 86_400 }],
        conflict: false,
      },
    ],
  });
});

test('[R20] two sources of one prefix are a conflict: both lifetimes, the last received wins, the pair cannot deprecate', (t) => {
  for (const intf of ['eth1.10', 'eth1.20', 'eth1.50', 'eth1.70']) {
    const [prefix] = leg(intf).prefixes;
    t.true(prefix?.conflict, intf);
    t.deepEqual(prefix?.sources, [
      { name: 'the router', lifetime: 86_400 },
      { name: 'the resolver pair', lifetime: 7200 },
    ]);
    const notes = advertisementNotes(leg(intf)).join('\n');
    t.regex(
      notes,
      /conflict: \S+::\/64 has 2 sources \(the router 86400 s, the resolver pair 7200 s\); the last advertisement received sets the lifetime/,
    );
    t.regex(notes, /the resolver pair can no longer deprecate/);
  }
});

test('[R20] Lab has no dhcp6: it does not advertise, its clients get nothing from the router, and the pair is alone', (t) => {
  const lab = leg('eth1.40');
  t.false(lab.advertises);
  t.deepEqual(lab.prefixes[0]?.sources, [{ name: 'the resolver pair', lifetime: 7200 }]);
  t.false(lab.prefixes[0]?.conflict);
  t.regex(
    advertisementNotes(lab).join('\n'),
    /^Lab has no dhcp6 section.*neither a global address nor an IPv6 default router/,
  );
});

test('[R20] a lease and other sources are taken from where they are set; without others there is no conflict', (t) => {
  t.false(legs([]).some(({ prefixes }) => prefixes.some(({ conflict }) => conflict)));
  const config = exampleConfig();
  config.dhcp6['eth1.10'].lease = 3600;
  const [main] = advertisements(config, [
    { name: 'ns1', prefixes: ['fd5e:21aa:90c4:10::/64'], lifetime: 600 },
  ]);
  t.deepEqual(main?.prefixes[0]?.sources, [
    { name: 'the router', lifetime: 3600 },
    { name: 'ns1', lifetime: 600 },
  ]);
});

test('[R20] what the kernel received is a source: the pair where lifetime and prefix are its own, else another sender', (t) => {
  const intf = 'eth1.10';
  const prefix = 'fd5e:21aa:90c4:10::/64';
  const main = (...received: { intf: string; prefix: string; lifetime: number }[]) =>
    advertisements(exampleConfig(), [PAIR], undefined, received).find((one) => one.intf === intf)!;
  const [router, pair] = [
    { name: 'the router', lifetime: 86_400 },
    { name: 'the resolver pair', lifetime: 7200 },
  ];
  t.deepEqual(main({ intf: 'eth1.20', prefix, lifetime: 7200 }).prefixes[0]?.sources, [router, pair]);
  t.deepEqual(
    main({ intf, prefix, lifetime: 86_400 }).prefixes[0]?.sources,
    [router, pair],
    "the router's own",
  );
  t.deepEqual(main({ intf, prefix, lifetime: 7200 }).prefixes[0]?.sources, [
    router,
    { ...pair, received: true },
  ]);
  const third = { name: 'another sender', lifetime: 1800, received: true };
  t.deepEqual(main({ intf, prefix, lifetime: 1800 }).prefixes[0]?.sources, [router, pair, third]);
  const other = main({ intf, prefix: '2001:db8:bad::/64', lifetime: 1800 });
  t.deepEqual(other.prefixes[1], {
    prefix: '2001:db8:bad::/64',
    ula: false,
    sources: [third],
    conflict: false,
  });
  const silent = advertisements(exampleConfig(), [], undefined, [
    { intf: 'eth1.40', prefix: 'fd5e:21aa:90c4:40::/64', lifetime: 86_400 },
  ]).find((one) => one.intf === 'eth1.40');
  t.deepEqual(
    silent?.prefixes[0]?.sources,
    [{ name: 'another sender', lifetime: 86_400, received: true }],
    'where the router does not advertise nothing is its own',
  );
});
